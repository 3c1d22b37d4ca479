import { refusal } from "../../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { block, call, ext4, FakeNode, nqn } from "../../../tests/fakes/node_deps.ts";
import { VolumeError } from "../../volume/errors.ts";
import { awaitDevice, type ExpectedIdentity, holdingNamespace, proveDevice } from "./device.ts";
import type { FoundDevice, PathInfo, ProvenDevice } from "../../volume/ports/node_ports.ts";

function connectedNode(): FakeNode {
  const node = new FakeNode();
  node.device.connected = true;
  node.paths.nodes.set("/dev/loop3", { kind: "block", deviceNumber: "7:3" });
  return node;
}

Deno.test("awaitDevice() waits for the node of a device that the kernel shows already", async () => {
  const node = connectedNode();
  node.paths.nodes.delete("/dev/loop3");
  let found: unknown;
  const waiting = awaitDevice(node.deps, nqn, call()).then((device) => found = device);
  await node.clock.advance(1_000);
  assert.equal(found, undefined);
  node.paths.nodes.set("/dev/loop3", { kind: "block", deviceNumber: "7:3" });
  await node.clock.advance(1_000);
  assert.equal((await waiting).path, "/dev/loop3");
});

for (
  const [what, spoil, text] of [
    ["does not appear", (node) => node.device.connected = false, /does not appear, or is empty/],
    ["has no node", (node) => node.paths.nodes.delete("/dev/loop3"), /there is no \/dev\/loop3/],
  ] as const satisfies readonly (readonly [string, (node: FakeNode) => unknown, RegExp])[]
) {
  Deno.test(`awaitDevice() says before the call's deadline that the device ${what}`, async () => {
    const node = connectedNode();
    spoil(node);
    const deadlineMs = node.clock.now() + 10_000;
    let refusedMs = 0;
    const refused = awaitDevice(node.deps, nqn, { ...call(), deadlineMs }).then(
      () => assert.fail("found"),
      (error) => {
        refusedMs = node.clock.now();
        return error;
      },
    );
    await node.clock.advance(20_000);
    const error = await refused;
    assert.ok(VolumeError.is(error, "unavailable") && text.test(error.message), String(error));
    assert.ok(refusedMs < deadlineMs && refusedMs > deadlineMs - 2_000);
  });
}

const found: FoundDevice = {
  path: "/dev/nvme0n2",
  deviceNumber: "259:4",
  sizeBytes: 2048n,
  nqn: "nqn:a",
  nsid: 1,
  uniqueId: "00ff",
};
const node: PathInfo = { kind: "block", deviceNumber: "259:4" };
const expected: ExpectedIdentity = { nqn: "nqn:a", sizeBytes: 2048n, uniqueId: "00ff" };

Deno.test("proveDevice() gives back the device when everything agrees", () => {
  assert.equal(proveDevice(found, node, expected), found);
});

Deno.test("proveDevice() accepts a device that has grown, and one whose id was never seen", () => {
  assert.equal(proveDevice(found, node, { nqn: "nqn:a", sizeBytes: 1024n, uniqueId: "" }), found);
});

const mismatches: readonly [string, Partial<FoundDevice>, PathInfo | undefined][] = [
  ["another NQN", { nqn: "nqn:b" }, node],
  ["another namespace", { nsid: 2 }, node],
  ["another unique id", { uniqueId: "00fe" }, node],
  ["a unique id gone", { uniqueId: "" }, node],
  ["a smaller device", { sizeBytes: 2047n }, node],
  ["no device node", {}, undefined],
  ["a file in place of the node", {}, { kind: "file" }],
  ["a node of another number", {}, { kind: "block", deviceNumber: "259:5" }],
];

for (const [name, change, at] of mismatches) {
  Deno.test(`proveDevice() throws identity-mismatch for ${name}`, () => {
    assert.throws(
      () => proveDevice({ ...found, ...change }, at, expected),
      refusal("identity-mismatch"),
    );
  });
}

const injected = new VolumeError("internal", "injected");
/** Operations that go by the device's path or number, and that no mount protects from another device of that name. */
const byPath = ["setReadOnly", "probe", "erase", "format", "check", "mountDevice", "bind"];

for (const capability of [ext4, block]) {
  Deno.test(`stage() and publish() of a ${capability.access} volume keep its device open while tools go by its path, and no longer`, async () => {
    const node = new FakeNode();
    const seen = new Set<string>();
    node.before = (operation) => {
      if (!byPath.includes(operation)) return;
      seen.add(operation);
      assert.deepEqual([...node.held], ["7:3"], operation);
    };
    await node.stage({ capability });
    assert.deepEqual([...node.held], []);
    await node.publish({ capability });
    assert.deepEqual([...node.held], []);
    assert.ok(seen.size >= 2);
  });

  Deno.test(`stage() and publish() of a ${capability.access} volume let go of its device before they disconnect, whatever fails`, async () => {
    const whole = new FakeNode();
    await whole.stage({ capability });
    await whole.publish({ capability });
    for (let failing = 1; failing <= whole.operations.length; failing++) {
      const node = new FakeNode();
      node.before = (operation, count) => {
        if (operation === "disconnect") assert.deepEqual([...node.held], []);
        if (count === failing) throw injected;
      };
      const attempt = node.stage({ capability }).then(() => node.publish({ capability }));
      await assert.rejects(attempt, (error) => error === injected);
      assert.deepEqual([...node.held], [], whole.operations[failing - 1]);
    }
  });
}

Deno.test("stage() of a new or a read-only file system fails when its device goes before the mount", async () => {
  for (const readonly of ["false", "true"]) {
    const node = new FakeNode();
    if (readonly === "true") node.device.content = "ext4";
    const { hold } = node.deps.devices;
    node.deps.devices.hold = async (device, context) => {
      const release = await hold(device, context);
      node.device.connected = false;
      return release;
    };
    await assert.rejects(node.stage({}, { readonly }), refusal("unavailable"));
    assert.ok(!node.operations.includes("mountDevice") && !node.operations.includes("format"));
  }
});

Deno.test("holdingNamespace() does no work on a device that another one has taken the place of", async () => {
  for (const change of [{ deviceNumber: "7:9" }, { uniqueId: "b".repeat(32) }]) {
    const node = connectedNode();
    const proven = { ...await awaitDevice(node.deps, nqn, call()), ...change } as ProvenDevice;
    const work = () => assert.fail("work on another device");
    await assert.rejects(holdingNamespace(node.deps, proven, call(), work), refusal("unavailable"));
    assert.equal(node.held.size, 0);
  }
});
