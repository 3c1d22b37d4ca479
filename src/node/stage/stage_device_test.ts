import { refusal } from "../../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { call, FakeNode, nqn, sizeBytes, targetPath, volumeId } from "../../../tests/fakes/node_deps.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { DeviceUser } from "../../volume/model/host/device_user.ts";
import { contradictorySignatures } from "../../volume/ports/node_ports.ts";

Deno.test("stage() mounts a volume again whatever a pod wrote into the last block of its file system, unless it was imported", async () => {
  const node = new FakeNode();
  node.device.filesystemUuid = "u";
  await node.stage();
  node.device.planted = "lsi_mega_raid_member";
  await node.unstage();
  await assert.rejects(
    node.stage({}, { imported: "true" }),
    refusal("precondition", /it holds lsi_mega_raid_member, not ext4/),
  );
  await node.stage({}, { mayFormat: "false" });
  assert.equal(node.formats.length, 1);
  assert.equal(node.stagingState?.filesystemUuid, "u");
});

Deno.test("stage() mounts what was imported whatever signature its data looks like, if its file system is whole", async () => {
  const node = new FakeNode();
  await node.stage();
  await node.unstage();
  node.device.planted = contradictorySignatures;
  node.device.complete = false;
  await assert.rejects(node.stage({}, { imported: "true", mayFormat: "false" }), (error) => {
    assert.ok(VolumeError.is(error, "precondition"));
    assert.match(error.message, /several contradictory signatures, not ext4/);
    assert.doesNotMatch(error.message, /delete|allow-format/);
    return true;
  });
  node.device.complete = true;
  await node.stage({}, { imported: "true", mayFormat: "false" });
  assert.equal(node.formats.length, 1);
});

Deno.test("stage() grows a file system to its device, unless it has just made it", async () => {
  const node = new FakeNode();
  const grows = () => node.operations.filter((operation) => operation === "grow").length;
  await node.stage();
  assert.deepEqual([node.formats.length, grows()], [1, 0]);
  await node.unstage();
  await node.stage({}, { mayFormat: "false" });
  assert.deepEqual([node.formats.length, grows()], [1, 1]);
});

Deno.test("stage() grows a file system whose end of mkfs is not recorded: the device may have grown since", async () => {
  const node = new FakeNode();
  await node.stage();
  node.setStagingState({ filesystem: "started", used: false, rootOpened: false });
  node.table = [];
  await node.stage();
  assert.deepEqual(node.operations.filter((operation) => operation === "grow").length, 1);
});

for (const at of ["isUnclaimed", "erase"]) {
  Deno.test(`stage() formats nothing when the device becomes another one during ${at}`, async () => {
    const node = new FakeNode();
    const renumber = () => {
      node.device.deviceNumber = "7:9";
      node.paths.nodes.set("/dev/loop3", { kind: "block", deviceNumber: "7:9" });
    };
    if (at === "erase") await interruptMkfs(node);
    node.after = (operation) => {
      if (operation === at) renumber();
    };
    const { isUnclaimed } = node.deps.devices;
    node.deps.devices.isUnclaimed = (...args) => {
      if (at === "isUnclaimed") renumber();
      return isUnclaimed(...args);
    };
    await assert.rejects(node.stage(), refusal("identity-mismatch"));
    assert.equal(node.formats.length, 0);
    assert.equal(node.operations.includes("erase"), at === "erase");
  });
}

/** The node after the driver was killed while mkfs ran. */
async function interruptMkfs(node: FakeNode): Promise<void> {
  node.before = (operation) => {
    if (operation === "format") throw new VolumeError("internal", "injected");
  };
  await assert.rejects(node.stage());
  node.before = () => {};
  Object.assign(node.devices.get(nqn)!, { content: "ext4", complete: false });
}

const somebody = { certain: true, description: "process 7 (blkid)" };
const blkid = { pid: 7, name: "blkid", pod: undefined };
const met: DeviceUser[] = [{ device: "/dev/loop3", by: "process", process: blkid }];
const perhaps: DeviceUser[] = [{ device: "/dev/loop3", by: "unseen", what: "process 8" }];

for (
  const [name, seen, reads, formats] of [
    ["nobody was met, and looks once", [[], met], 1, 1],
    ["the tool that looks for signatures was met, and is gone", [met, []], 2, 1],
    ["somebody may have been met, and looks again", [perhaps, perhaps], 2, 1],
  ] as const
) {
  Deno.test(`stage() formats when ${name}`, async () => {
    const node = new FakeNode();
    let count = 0;
    node.deps.devices.openBy = () => Promise.resolve(seen[count++]!);
    await node.stage();
    assert.deepEqual([count, node.formats.length], [reads, formats]);
  });
}

Deno.test("stage() formats nothing while the process that was seen still has the device open, and leaves no state", async () => {
  const node = new FakeNode();
  node.holder = somebody;
  await assert.rejects(
    node.stage(),
    refusal("busy", /process 7/),
  );
  assert.deepEqual([node.formats.length, node.stagingState], [0, undefined]);
});

Deno.test("stage() formats nothing when the device is claimed after no process was seen", async () => {
  const node = new FakeNode();
  node.deps.devices.isUnclaimed = () => Promise.resolve(false);
  await assert.rejects(node.stage(), refusal("busy"));
  assert.equal(node.formats.length, 0);
});

Deno.test("stage() reads again when the early read fails", async () => {
  const node = new FakeNode();
  let count = 0;
  node.deps.devices.openBy = () =>
    count++ === 0 ? Promise.reject(new VolumeError("unavailable", "injected")) : Promise.resolve([]);
  await node.stage();
  assert.deepEqual([count, node.formats.length], [2, 1]);
});

Deno.test("stage() does not wait for the search for open devices where a file system exists already", async () => {
  const node = new FakeNode();
  node.device.content = "ext4";
  let ended = false;
  node.deps.devices.openBy = (_nodes, { signal }) =>
    new Promise((_resolve, reject) =>
      signal.addEventListener("abort", () => {
        ended = true;
        reject(signal.reason);
      })
    );
  await node.stage({}, { mayFormat: "true" });
  assert.deepEqual([node.formats.length, ended], [0, true]);
});

Deno.test("a volume whose file system cannot be grown stays with its pod at the old size, and says so until it grows", async () => {
  const node = new FakeNode();
  node.device.content = "ext4";
  await node.stage();
  await node.unstage();
  node.device.sizeBytes *= 2n;
  const { grow } = node.deps.filesystems;
  const refused = new VolumeError("unavailable", "Cannot grow the file system: exit=1");
  node.deps.filesystems.grow = () => Promise.reject(refused);
  for (let stages = 0; stages < 2; stages++) {
    await node.stage();
    assert.deepEqual(node.events.health.get(volumeId), ["NotGrown"], "an event, before anybody asks");
    await node.publish();
    const { problems } = await node.service.volumeHealth(volumeId, call());
    assert.deepEqual(problems.map(({ status, reason }) => [status, reason]), [["DEGRADED", "NotGrown"]]);
    assert.match(problems[0]!.message, /could not be grown: Cannot grow the file system: exit=1/);
    await node.unpublish();
  }
  assert.match(node.reported.join(), /cannot grow a file system, which stays at its size/);
  node.deps.filesystems.grow = grow;
  await node.stage();
  assert.equal(node.stagingState?.notGrown, undefined);
  assert.deepEqual(node.events.health.get(volumeId), []);
});

Deno.test("NodeExpandVolume of what its stage could not grow is refused for good, so that a pod starts at the old size", async () => {
  for (const kind of ["unavailable", "precondition"] as const) {
    const node = new FakeNode();
    node.device.content = "ext4";
    const { grow } = node.deps.filesystems;
    const refused = new VolumeError(kind, "Cannot grow the file system: exit=1");
    node.deps.filesystems.grow = () => Promise.reject(refused);
    await node.stage();
    await node.publish();
    const request = { volumeId, volumePath: targetPath, range: { requiredBytes: sizeBytes, limitBytes: 0n } };
    await assert.rejects(
      node.service.expand(request, call()),
      refusal("precondition", /file system: exit=1/),
    );
    assert.equal(node.stagingState?.notGrown, refused.message);
    node.deps.filesystems.grow = grow;
    await node.service.expand(request, call());
    assert.equal(node.stagingState?.notGrown, undefined);
    assert.deepEqual(node.events.health.get(volumeId), []);
  }
});

Deno.test("NodeExpandVolume that fails under a running pod, which was staged at its full size, keeps its error", async () => {
  const node = new FakeNode();
  await node.stage();
  await node.publish();
  const refused = new VolumeError("unavailable", "Cannot grow the file system: exit=1");
  node.deps.filesystems.grow = () => Promise.reject(refused);
  const request = { volumeId, volumePath: targetPath, range: { requiredBytes: sizeBytes, limitBytes: 0n } };
  await assert.rejects(node.service.expand(request, call()), (error) => error === refused);
});

Deno.test("a stage whose call ends while it grows a file system is no success", async () => {
  const node = new FakeNode();
  node.device.content = "ext4";
  const ended = new AbortController();
  node.deps.filesystems.grow = () => {
    ended.abort(new VolumeError("cancelled", "The client went away"));
    return Promise.reject(new VolumeError("unavailable", "Cannot grow the file system"));
  };
  await assert.rejects(
    node.service.stage(node.stageRequest(), call(ended.signal)),
    refusal("cancelled", /went away/),
  );
});
