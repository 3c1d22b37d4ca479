import assert from "node:assert/strict";
import {
  block,
  call,
  FakeNode,
  injected,
  nqn,
  sizeBytes,
  stagingPath,
  targetPath,
} from "../../../tests/fakes/node_deps.ts";
import { reasonOf, refusal, unsettled } from "../../../tests/fakes/refusal.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { Capability } from "../../volume/model/capabilities.ts";

const before = { uniqueId: "aa00", deviceNumber: "7:3", filesystemUuid: "f5-1" };
const after = { uniqueId: "bb11", deviceNumber: "7:4" };

/**
 * A node with a volume that is staged now and was mounted in an earlier stage of the same epoch; its router reboots.
 */
async function rebooted(capability?: Capability, pods = false): Promise<FakeNode> {
  const node = new FakeNode();
  Object.assign(node.device, { ...before, content: "ext4" });
  await node.stage(capability === undefined ? {} : { capability });
  if (pods) await node.publish(capability === undefined ? {} : { capability });
  Object.assign(node.device, after);
  node.paths.nodes.set("/dev/loop3", { kind: "block", deviceNumber: after.deviceNumber });
  return node;
}

Deno.test("stage() accepts the same volume under a new UUID once nothing uses it, and formats nothing", async () => {
  const node = await rebooted();
  await node.stage();
  assert.deepEqual(node.stagingState?.device, { uniqueId: "bb11", deviceNumber: "7:4", sizeBytes });
  assert.deepEqual(node.table.map((entry) => [entry.mountPoint, entry.deviceNumber]), [[stagingPath, "7:4"]]);
  assert.deepEqual([node.formats.length, node.operations.includes("erase")], [0, false]);
  assert.equal(node.stagingState?.filesystemUuid, "f5-1");
});

Deno.test("stage() accepts a volume under a new UUID that grew while the node was down", async () => {
  const node = await rebooted();
  node.device.sizeBytes = sizeBytes * 2n;
  await node.stage();
  assert.deepEqual(node.stagingState?.device, {
    uniqueId: "bb11",
    deviceNumber: "7:4",
    sizeBytes: sizeBytes * 2n,
  });
});

Deno.test("stage() accepts a raw block volume under a new UUID", async () => {
  const node = await rebooted(block);
  await node.stage({ capability: block });
  assert.equal(node.stagingState?.device?.uniqueId, "bb11");
});

for (const capability of [undefined, block]) {
  const kind = capability?.access ?? "mount";
  Deno.test(`${kind}: stage() under a new UUID says which pods to delete while one has the old device`, async () => {
    const node = await rebooted(capability, true);
    const change = capability === undefined ? {} : { capability };
    const mounts = node.table.length;
    await assert.rejects(
      node.stage(change),
      unsettled("in-use", new RegExp(`a pod has it: .*path=${targetPath}; delete the pods that use it`)),
    );
    assert.equal(node.table.length, mounts);
    assert.equal(node.stagingState?.device?.uniqueId, "aa00");
    await node.unpublish();
    await node.stage(change);
    assert.equal(node.stagingState?.device?.uniqueId, "bb11");
  });
}

/** What else has happened to the node before its volume is staged again. */
const earlier: Readonly<Record<string, (node: FakeNode) => Promise<void>>> = {
  "": () => Promise.resolve(),
  " after an unstage that has only begun": async (node) => {
    node.before = (operation) => {
      if (operation === "disconnect") throw injected;
    };
    await assert.rejects(node.unstage());
    node.before = () => {};
  },
  " after a reboot of the node": (node) => {
    node.table = [];
    node.device.connected = false;
    return Promise.resolve();
  },
};

for (
  const [what, change] of [
    ["a smaller size", { sizeBytes: sizeBytes / 2n }],
    ["another namespace number", { nsid: 2 }],
    ["another file system", { filesystemUuid: "f5-2" }],
    ["no file system any more", { content: "garbage", filesystemUuid: undefined }],
    ["no UUID any more", { uniqueId: "" }],
  ] as const
) {
  for (const [when, happen] of Object.entries(earlier)) {
    for (const mountFlags of [[], ["noatime"]]) {
      const how = mountFlags.length === 0 ? "" : ", with other mount options";
      Deno.test(`stage() under a new UUID${when} refuses a device with ${what}, again and again${how}`, async () => {
        const node = await rebooted();
        await happen(node);
        Object.assign(node.device, change);
        const isMismatch = (error: unknown) => VolumeError.is(reasonOf(error), "identity-mismatch");
        for (let i = 0; i < 3; i++) await assert.rejects(node.stage({ mountFlags }), isMismatch);
        assert.equal(node.operations.filter((operation) => operation === "mountDevice").length, 1);
        assert.equal(node.formats.length, 0);
      });
    }
  }
}

Deno.test("stage() under a new UUID refuses a device that something has open", async () => {
  const node = await rebooted();
  node.holder = { certain: true, description: "process 7 (dd)" };
  await assert.rejects(node.stage(), unsettled("in-use", /is open: .*process 7/));
});

Deno.test("stage() in another epoch does not mistake a new UUID for the old volume: it starts over", async () => {
  const node = await rebooted();
  const state = node.stagingState!;
  node.setStagingState({ epoch: "2-0a0b0c0d", nqn: nqn.replace(":1-", ":2-") });
  await node.stage();
  assert.notEqual(node.stagingState?.epoch, "2-0a0b0c0d");
  assert.equal(node.stagingState?.device?.uniqueId, "bb11");
  assert.equal(state.device?.uniqueId, "aa00");
});

Deno.test("stage() finishes an interrupted mkfs on the same size under a new UUID, and on no other", async () => {
  for (const [change, formats] of [[{}, 1], [{ sizeBytes: sizeBytes * 2n }, 0]] as const) {
    const node = new FakeNode();
    node.device.uniqueId = "aa00";
    node.before = (operation) => {
      if (operation === "format") throw injected;
    };
    await assert.rejects(node.stage(), (error) => error === injected);
    node.before = () => {};
    Object.assign(node.device, { ...after, content: "garbage" }, change);
    if (formats === 1) await node.stage();
    else await assert.rejects(node.stage(), refusal("identity-mismatch"));
    assert.deepEqual(node.formats.map(({ lazy }) => lazy), formats === 1 ? [false] : []);
  }
});

Deno.test("stage() rescans a connection without a device", async () => {
  const node = await rebooted();
  const { connector } = node.deps;
  const { find, rescan } = connector;
  let dropped = true;
  connector.find = async (at, context) => dropped ? undefined : await find(at, context);
  connector.rescan = async (at, context) => {
    dropped = false;
    await rescan(at, context);
  };
  await node.stage();
  assert.equal(node.stagingState?.device?.uniqueId, "bb11");
  const scans = node.operations.filter((operation) => operation === "rescan").length;
  await node.service.stage(node.stageRequest(), call());
  assert.equal(node.operations.filter((operation) => operation === "rescan").length, scans, "only then");
});
