import { refusal } from "../../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import {
  block,
  breakEachStep,
  call,
  epoch,
  ext4,
  FakeNode,
  nqn,
  sizeBytes,
  stagingPath,
  targetPath,
  volumeId,
} from "../../../tests/fakes/node_deps.ts";
import type { Capability } from "../../volume/model/capabilities.ts";
import { VolumeError } from "../../volume/errors.ts";

const laterEpoch = "2-22222222";
const later = nqn.replace(epoch, laterEpoch);

/** A staged volume whose connection has gone down. */
async function down(capability: Capability = ext4, offered?: () => readonly string[]): Promise<FakeNode> {
  const node = new FakeNode();
  await node.stage({ capability });
  node.connections.set(nqn, { state: "connecting", stateName: "connecting" });
  if (offered !== undefined) node.offered = offered;
  node.operations.length = 0;
  return node;
}

function steps(node: FakeNode): readonly string[] {
  return node.operations.filter((operation) =>
    ["forceDisconnect", "unmount", "disconnect"].includes(operation)
  );
}

function unreachable(): never {
  throw new VolumeError("unavailable", "no route");
}

for (const capability of [ext4, block]) {
  const kind = capability.access;

  Deno.test(`unstage() of a fenced ${kind} volume disconnects before it unmounts`, async () => {
    const node = await down(capability, () => [later]);
    await node.unstage();
    assert.deepEqual(steps(node), ["forceDisconnect", "unmount", "disconnect"]);
    assert.deepEqual([node.table, node.device.connected, node.stagingState], [[], false, undefined]);
  });

  Deno.test(`unstage() of a fenced ${kind} volume succeeds after a failure at any step`, async () => {
    await breakEachStep(() => down(capability, () => [later]), (node) => node.unstage(), async (node) => {
      await node.unstage();
      assert.deepEqual([node.table, node.device.connected, node.stagingState], [[], false, undefined]);
    });
  });
}

Deno.test("unstage() asks no target about a live connection, or when there is no connection", async () => {
  for (const connected of [true, false]) {
    const node = await down();
    node.offered = () => assert.fail("it was asked");
    node.connections.clear();
    node.device.connected = connected;
    await node.unstage();
    assert.equal(node.operations.includes("forceDisconnect"), false);
  }
});

const doubts: readonly [string, (node: FakeNode) => void][] = [
  ["is unreachable", (node) => void (node.offered = unreachable)],
  ["offers it", (node) => void (node.offered = () => [nqn])],
  ["has not brought its disks back", (node) => void (node.offered = () => [])],
  ["was connected by another host", (node) => {
    node.offered = () => [later];
    node.connections.set(nqn, { state: "connecting", hostNqn: "nqn.other" });
  }],
  ["offers it elsewhere", (node) => {
    node.offered = ({ port }) => port === 4420 ? [nqn] : [later];
    node.connections.set(nqn, { state: "connecting", port: 4421 });
  }],
];

for (const [what, doubt] of doubts) {
  Deno.test(`unstage() throws unavailable and unmounts nothing while its target ${what}`, async () => {
    const node = await down();
    doubt(node);
    await assert.rejects(node.unstage(), refusal("unavailable", /not known to be fenced/));
    assert.deepEqual(steps(node), []);
    assert.deepEqual([node.table.length, node.device.connected, node.stagingState?.staged], [1, true, true]);
  });
}

for (const [what, doubt] of doubts) {
  Deno.test(`stage() in another way throws unavailable and unmounts nothing while its target ${what}`, async () => {
    const node = await down();
    doubt(node);
    const begunAnew = node.stage({ mountFlags: ["noatime"] });
    await assert.rejects(begunAnew, refusal("unavailable", /not known to be fenced/));
    assert.deepEqual(steps(node), []);
    assert.deepEqual([node.table.length, node.device.connected, node.stagingState?.staged], [1, true, true]);
  });

  Deno.test(`a failed stage() leaves what an earlier one has mounted while its target ${what}`, async () => {
    const node = await down();
    doubt(node);
    node.setStagingState({ staged: false });
    node.before = (operation) => {
      if (operation === "connect") throw new VolumeError("unavailable", "Cannot connect: injected");
    };
    await assert.rejects(node.stage(), refusal("unavailable", /injected.*not known to be fenced/s));
    assert.deepEqual(steps(node), []);
    assert.deepEqual([node.table.length, node.device.connected, node.stagingState?.staged], [1, true, false]);
  });
}

Deno.test("stage() in another way of what its router has withdrawn disconnects it before it unmounts", async () => {
  const node = await down(ext4, () => [later]);
  await node.stage({ mountFlags: ["noatime"] });
  assert.deepEqual(steps(node), ["forceDisconnect", "unmount", "disconnect"]);
});

Deno.test("unstage() ends when its target never answers, and succeeds when nothing is left", async () => {
  const node = await down();
  node.offered = () => new Promise(() => {});
  const refused = assert.rejects(node.unstage(), refusal("unavailable", /does not answer/));
  await node.clock.advance(10_000);
  await refused;
  await assert.rejects(node.unstage(), refusal("unavailable"), "the question that hangs is not asked again");
  node.device.connected = false;
  await node.unstage();
  assert.deepEqual([node.table, node.stagingState], [[], undefined]);
});

Deno.test("unstage() of an unmounted volume succeeds while its target is away: no data is unwritten", async () => {
  const node = await down(block, unreachable);
  await node.unstage();
  assert.deepEqual(steps(node), ["unmount", "disconnect"]);
  assert.equal(node.stagingState, undefined);
});

Deno.test("unstage() remembers over restarts for how long the volume is missing, and disconnects it after ten settle times", async () => {
  let node = await down(ext4, () => []);
  for (let tries = 0; tries <= 40; tries++) {
    await assert.rejects(node.unstage(), refusal("unavailable", /does not offer/));
    assert.equal(node.stagingState?.missed?.missedForMs, tries * 30_000);
    node = await restarted(node);
    await node.clock.advance(30_000);
  }
  await node.unstage();
  assert.deepEqual(steps(node), ["forceDisconnect", "unmount", "disconnect"]);
});

Deno.test("unstage() of a published volume that its target does not offer never disconnects it", async () => {
  const node = await down(ext4, () => []);
  node.connections.clear();
  await node.publish();
  node.connections.set(nqn, { state: "connecting" });
  node.operations.length = 0;
  for (let tries = 0; tries <= 50; tries++) {
    await assert.rejects(node.unstage(), refusal("unavailable", /does not offer/));
    await node.clock.advance(30_000);
  }
  assert.deepEqual([steps(node), node.table.length], [[], 2]);
});

Deno.test("unstage() of an unmounted volume succeeds at once while its target does not offer it", async () => {
  const node = await down(block, () => []);
  await node.unstage();
  assert.deepEqual(steps(node), ["unmount", "disconnect"]);
  assert.equal(node.stagingState, undefined);
});

/** The same machine with a new process of the driver. */
async function restarted(node: FakeNode): Promise<FakeNode> {
  const next = new FakeNode();
  await next.clock.advance(node.clock.now() - next.clock.now());
  for (const [path, entry] of node.paths.nodes) next.paths.nodes.set(path, entry);
  for (const [name, device] of node.devices) next.devices.set(name, device);
  for (const [name, connection] of node.connections) next.connections.set(name, connection);
  next.table = node.table;
  next.offered = node.offered;
  return next;
}

Deno.test("unstage() keeps a connection that becomes live while its target is asked", async () => {
  const node = await down();
  node.offered = () => {
    node.connections.clear();
    return [later];
  };
  await node.unstage();
  assert.deepEqual(steps(node), ["unmount", "disconnect"]);
});

Deno.test("unstage() keeps a connection that becomes live at the last moment", async () => {
  const node = await down(ext4, () => [later]);
  const { connections } = node.deps.connector;
  let reads = 0;
  node.deps.connector.connections = (nqn, context) => {
    if (++reads === 3) node.connections.clear();
    return connections(nqn, context);
  };
  await node.unstage();
  assert.equal(reads, 3, "before it asks, after it has asked, before it cuts off");
  assert.deepEqual(steps(node), ["unmount", "disconnect"]);
});

Deno.test("unstage() of a fenced volume that is published fails its I/O, and leaves the mounts", async () => {
  const node = await down(ext4, () => [later]);
  node.connections.clear();
  await node.publish();
  node.connections.set(nqn, { state: "connecting" });
  node.operations.length = 0;
  await assert.rejects(node.unstage(), refusal("in-use", /published/));
  assert.deepEqual(steps(node), ["forceDisconnect"]);
  assert.equal(node.table.length, 2);
});

Deno.test("unstage() never disconnects what the legacy driver connected for a running VM", async () => {
  const node = new FakeNode();
  const legacy = nqn.slice(0, -epoch.length - 1);
  node.devices.set(legacy, node.newDevice({ connected: true, path: "/dev/nvme0n1", deviceNumber: "259:0" }));
  node.connections.set(legacy, { state: "connecting", hostNqn: "nqn.the-machine's" });
  node.offered = () => [later];
  node.holder = { certain: true, description: "process 7 (qemu)" };
  await assert.rejects(node.unstage(), refusal("in-use", /qemu/));
  assert.deepEqual(steps(node), []);
  assert.equal(node.devices.get(legacy)?.connected, true);
});

Deno.test("stage() of a later epoch disconnects the earlier one, without asking a target that is away", async () => {
  const node = await down(ext4, unreachable);
  node.device.exported = false;
  node.devices.set(later, node.newDevice({ path: "/dev/loop4", deviceNumber: "7:4", content: "ext4" }));
  const contents = { nqn: later, epoch: laterEpoch, mayFormat: "false", size: String(sizeBytes) };
  await node.stage({}, contents);
  assert.deepEqual(steps(node), ["forceDisconnect", "unmount", "disconnect"]);
  assert.deepEqual([node.stagingState?.nqn, node.device.connected], [later, false]);
  assert.deepEqual(node.table.map((entry) => [entry.mountPoint, entry.deviceNumber]), [[stagingPath, "7:4"]]);
});

Deno.test("stage() of an earlier epoch disconnects nothing while the target is away", async () => {
  const node = await down(ext4, unreachable);
  const contents = { nqn: nqn.replace(epoch, "0-22222222"), epoch: "0-22222222" };
  await assert.rejects(node.stage({}, contents), refusal("unavailable", /not known to be fenced/));
  assert.deepEqual([steps(node), node.table.length], [[], 1]);
});

Deno.test("releaseWhileBusy() disconnects what is fenced and writes nothing", async () => {
  const node = await down(ext4, () => [later]);
  const before = node.stagingState;
  await node.service.releaseWhileBusy(volumeId, call());
  assert.deepEqual(node.operations, ["forceDisconnect"]);
  assert.deepEqual(node.stagingState, before);
});

Deno.test("releaseWhileBusy() keeps what is not known to be fenced, and a live connection", async () => {
  for (const [, doubt] of doubts) {
    const node = await down();
    doubt(node);
    await node.service.releaseWhileBusy(volumeId, call());
    assert.deepEqual(node.operations, []);
  }
  const node = await down(ext4, () => [later]);
  node.connections.clear();
  await node.service.releaseWhileBusy(volumeId, call());
  assert.deepEqual(node.operations, []);
});

/** A published volume whose writer hangs until the connection ends, which keeps the target busy. */
async function hanging(offered: () => readonly string[], capability: Capability = ext4): Promise<FakeNode> {
  const node = new FakeNode();
  await node.stage({ capability });
  await node.publish({ capability });
  node.connections.set(nqn, { state: "connecting" });
  node.offered = offered;
  node.operations.length = 0;
  node.before = (operation) => {
    if (operation === "unmount" && node.device.connected) throw new VolumeError("in-use", "target is busy");
  };
  return node;
}

for (const capability of [ext4, block]) {
  Deno.test(`unpublish() of a fenced ${capability.access} volume whose writer hangs disconnects it, and then succeeds`, async () => {
    const node = await hanging(() => [later], capability);
    await assert.rejects(node.unpublish(), refusal("in-use", /busy/));
    assert.deepEqual(steps(node), ["unmount", "forceDisconnect"]);
    await node.unpublish();
    await node.unstage();
    assert.deepEqual([node.table, node.stagingState], [[], undefined]);
  });
}

Deno.test("unpublish() of a volume whose writer hangs, and that is not offered, disconnects it after ten settle times", async () => {
  const node = await hanging(() => []);
  for (let tries = 0; tries <= 40; tries++) {
    await assert.rejects(node.unpublish(), refusal("in-use", /busy/));
    assert.equal(node.device.connected, true);
    await node.clock.advance(30_000);
  }
  await assert.rejects(node.unpublish(), refusal("in-use", /busy/));
  assert.equal(node.device.connected, false);
  await node.unpublish();
});

Deno.test("unpublish() of one of two targets never disconnects a missing volume: the other is in use", async () => {
  const node = await hanging(() => []);
  const other = `${targetPath}-2`;
  node.addMount(node.device.deviceNumber, other);
  const published = [...node.stagingState!.published, {
    ...node.stagingState!.published[0]!,
    targetPath: other,
  }];
  node.setStagingState({ published });
  for (let tries = 0; tries <= 50; tries++) {
    await assert.rejects(node.unpublish(), refusal("in-use", /busy/));
    await node.clock.advance(30_000);
  }
  assert.equal(node.device.connected, true);
});

Deno.test("unpublish() of a busy target of a live volume asks no target and disconnects nothing", async () => {
  const node = await hanging(() => assert.fail("it was asked"));
  node.connections.clear();
  await assert.rejects(node.unpublish(), refusal("in-use", /busy/));
  assert.deepEqual(steps(node), ["unmount"]);
});

Deno.test("releaseWhileBusy() for an unpublish disconnects what is fenced while it is published there", async () => {
  const node = await hanging(() => [later]);
  await node.service.releaseWhileBusy(volumeId, call(), targetPath);
  assert.deepEqual(node.operations, ["forceDisconnect"]);
});

Deno.test("releaseWhileBusy() does not fail when it cannot read the state", async () => {
  const node = await down(ext4, () => [later]);
  node.deps.connector.connections = () => Promise.reject(new VolumeError("unavailable", "no sysfs"));
  await node.service.releaseWhileBusy(volumeId, call());
  assert.deepEqual(node.reported, ["cannot check whether a busy volume is fenced"]);
});
