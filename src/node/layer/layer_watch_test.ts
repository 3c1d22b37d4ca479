import assert from "node:assert/strict";
import {
  call,
  epoch,
  type FakeNode,
  injected,
  nqn,
  sizeBytes,
  targetPath,
  volumeId,
} from "../../../tests/fakes/node_deps.ts";
import { dropped, givenUp, inUse, mapName as name, watching } from "../../../tests/fakes/watched_map.ts";
import { VolumeError } from "../../volume/errors.ts";
import { LayerWatch } from "./layer_watch.ts";

const later = nqn.replace(epoch, "2-22222222");
const othersNqn = nqn.replace(volumeId, "pvc-9");

for (const kind of ["ext4", "block"] as const) {
  Deno.test(`what a pod writes to ${kind} goes on at the next check when its device came back under another identity`, async () => {
    const { node, watch } = await inUse(kind);
    dropped(node);
    assert.equal(node.mapper.write(name), "waits");
    await watch.check();
    assert.equal(node.mapper.write(name), "done");
    assert.equal(node.stagingState!.device!.uniqueId, "b".repeat(32));
    assert.equal(node.stagingState!.device!.deviceNumber, "253:0");
    assert.deepEqual([...node.events.waiting], [volumeId], "until it is seen to go on");
    assert.deepEqual((await node.service.volumeHealth(volumeId, call())).problems, []);
    await watch.check();
    assert.deepEqual(node.reported.slice(-2), [
      "writes to a volume wait",
      "writes to a volume continue",
    ]);
    assert.equal(node.events.waiting.size, 0);
  });

  Deno.test(`${kind} is connected again where the kernel has given the connection up`, async () => {
    const { node, watch } = await inUse(kind);
    givenUp(node);
    node.offered = () => [];
    await watch.check();
    assert.equal(node.mapper.write(name), "waits");
    assert.deepEqual(node.operations, [], "nothing is tried while the router does not offer it");
    node.offered = () => [nqn];
    await watch.check();
    assert.equal(node.device.connected, true);
    assert.equal(node.mapper.write(name), "done");
  });
}

Deno.test("while all is well a check starts no process and changes nothing", async () => {
  const { node, watch } = await inUse();
  const spawned = node.mapperRuns;
  for (let look = 0; look < 5; look++) {
    node.mapper.write(name);
    await watch.check();
  }
  assert.deepEqual(node.operations, []);
  assert.equal(node.mapperRuns, spawned);
});

Deno.test("a path that has failed and is live again is reloaded", async () => {
  const { node, watch } = await inUse();
  node.mapper.maps.get(name)!.table!.failed = true;
  assert.equal(node.mapper.write(name), "waits");
  node.connections.set(nqn, { state: "connecting", stateName: "connecting" });
  await watch.check();
  await watch.check();
  assert.equal(node.mapper.write(name), "waits");
  node.connections.clear();
  await watch.check();
  assert.equal(node.mapper.write(name), "done");
});

const mismatches = [
  ["another file system", { filesystemUuid: "u-2" }],
  ["no file system", { content: "blank" }],
  ["a smaller device", { sizeBytes: sizeBytes / 2n }],
  ["another namespace", { nsid: 2 }],
] as const;

for (const [what, change] of mismatches) {
  Deno.test(`what waits goes on waiting, and is reported once, when what came back is ${what}`, async () => {
    const { node, watch } = await inUse();
    dropped(node);
    Object.assign(node.device, change);
    const before = node.reported.length;
    await watch.check();
    await watch.check();
    assert.equal(node.mapper.write(name), "waits");
    assert.deepEqual(node.operations.filter((step) => step.startsWith("dmsetup")), []);
    assert.deepEqual(node.reported.slice(before), ["writes to a volume wait"]);
    await node.clock.advance(600_000);
    await watch.check();
    assert.equal(node.mapper.write(name), "fails");
    assert.deepEqual(node.events.reported.filter((each) => each === "identity mismatch"), [
      "identity mismatch",
    ]);
  });
}

Deno.test("what waits to be written goes on waiting while what came back takes no writes", async () => {
  const { node, watch } = await inUse();
  dropped(node);
  node.device.readOnly = true;
  assert.equal(node.mapper.write(name), "waits");
  await watch.check();
  assert.equal(node.mapper.maps.get(name)!.table!.path, "7:3");
  node.device.readOnly = false;
  await watch.check();
  assert.equal(node.mapper.write(name), "done");
});

Deno.test("what waits goes on waiting while another volume's stale bind shows what came back", async () => {
  for (const kind of ["ext4", "block"] as const) {
    const { node, watch } = await inUse(kind);
    dropped(node);
    node.addMount("0:6", "/bound", { filesystem: "devtmpfs", root: "/nvme9n9//deleted" });
    node.paths.nodes.set("/bound", { kind: "block", deviceNumber: node.device.deviceNumber });
    await watch.check();
    assert.equal(node.mapper.write(name), "waits");
    node.table = node.table.filter(({ mountPoint }) => mountPoint !== "/bound");
    await watch.check();
    assert.equal(node.mapper.write(name), "done");
  }
});

/** Lets the device of another volume take the device's number, unless something keeps that open. */
function overtaken(node: FakeNode): void {
  const { path, deviceNumber } = node.device;
  const tables = node.mapper.maps.values().flatMap(({ table, inactive }) => [table?.path, inactive?.path]);
  const isOpen = node.held.has(deviceNumber) || tables.toArray().includes(deviceNumber);
  node.device.connected = false;
  if (!isOpen) node.devices.set(othersNqn, node.newDevice({ path, deviceNumber, connected: true }));
  node.showDevices();
}

for (const kind of ["ext4", "block"] as const) {
  Deno.test(`what waits for ${kind} never goes to another volume's device of the same number, which appears at any step`, async () => {
    const whole = await inUse(kind);
    dropped(whole.node);
    await whole.watch.check();
    const steps = whole.node.operations;
    assert.ok(steps.includes("dmsetup load"));
    for (let at = 0; at <= steps.length; at++) {
      const { node, watch } = await inUse(kind);
      dropped(node);
      const { table } = node.deps.maps!;
      // The device was proven right before.
      node.deps.maps!.table = async (map, context) => {
        if (at === 0) overtaken(node);
        return await table.call(node.deps.maps, map, context);
      };
      node.before = (_, count) => {
        if (count === at) overtaken(node);
      };
      await watch.check();
      assert.equal(node.mapper.write(name), "waits", steps[at - 1] ?? "before all");
    }
  });
}

Deno.test("what waits for longer than ctrlLossTmo fails, and is not tried again", async () => {
  const { node, watch } = await inUse();
  givenUp(node);
  node.offered = () => {
    throw new VolumeError("unavailable", "no route");
  };
  await watch.check();
  await node.clock.advance(597_000);
  await watch.check();
  assert.equal(node.mapper.write(name), "waits");
  await node.clock.advance(4_000);
  await watch.check();
  assert.equal(node.mapper.write(name), "fails");
  assert.ok(node.events.reported.includes("wait given up"));
  assert.equal(node.events.waiting.size, 0, "it fails, and does not wait");
  node.offered = () => [nqn];
  await watch.check();
  assert.equal(node.mapper.write(name), "fails");
  await node.unpublish();
  await node.unstage();
  assert.equal(node.mapper.maps.size, 0);
});

Deno.test("an idle volume writes nothing after a reconnect before its device was proven", async () => {
  const { node, watch } = await inUse();
  node.connections.set(nqn, { state: "connecting", stateName: "connecting" });
  await watch.check();
  node.connections.clear();
  assert.equal(node.mapper.write(name), "waits");
  node.device.filesystemUuid = "u-2";
  await watch.check();
  assert.equal(node.mapper.write(name), "waits");
  node.device.filesystemUuid = "u-1";
  await watch.check();
  assert.equal(node.mapper.write(name), "done");
  const before = node.operations.length;
  await watch.check();
  assert.equal(node.operations.length, before);
});

Deno.test("a live device that fails every write is tried again until ctrlLossTmo, and reported once", async () => {
  const { node, watch } = await inUse();
  const before = node.reported.length;
  for (let look = 0; look < 60; look++) {
    node.mapper.maps.get(name)!.table!.failed = true;
    assert.equal(node.mapper.write(name), "waits", String(look));
    await watch.check();
    await node.clock.advance(10_000);
  }
  await node.clock.advance(20_000);
  node.mapper.maps.get(name)!.table!.failed = true;
  node.mapper.write(name);
  await watch.check();
  node.mapper.maps.get(name)!.table!.failed = true;
  assert.equal(node.mapper.write(name), "fails");
  assert.deepEqual(node.reported.slice(before), [
    "writes to a volume wait",
    "giving up a volume that waited for longer than its ctrlLossTmo",
  ]);
});

Deno.test("a restart of the node service does not reconnect a map that no longer queues", async () => {
  const { node } = await inUse();
  await node.deps.maps!.endQueueing((await node.deps.maps!.find(name))!, call());
  givenUp(node);
  node.offered = () => [nqn];
  await watching(node).watch.check();
  assert.equal(node.device.connected, false);
  assert.equal(node.mapper.write(name), "fails");
});

Deno.test("a restart of the node service continues with its own maps, starts ctrlLossTmo again, and leaves ended ones alone", async () => {
  const { node, watch } = await inUse();
  givenUp(node);
  node.offered = () => [];
  await watch.check();
  await node.clock.advance(500_000);
  const restarted = watching(node);
  await restarted.watch.check();
  await node.clock.advance(500_000);
  await restarted.watch.check();
  assert.equal(node.mapper.write(name), "waits");
  node.offered = () => [nqn];
  await node.clock.advance(3_000);
  await restarted.watch.check();
  assert.equal(node.mapper.write(name), "done");
  await node.deps.maps!.endQueueing((await node.deps.maps!.find(name))!, call());
  dropped(node);
  await watching(node).watch.check();
  assert.equal(node.mapper.write(name), "fails");
});

Deno.test("a map without a state file, and one of another prefix, are left alone", async () => {
  const { node, watch } = await inUse();
  node.mapper.maps.set("rds-csi-pvc-9", {
    ...structuredClone(node.mapper.maps.get(name)!),
    minor: 9,
    uuid: "RDSCSI-pvc-9:1-0a0b0c0d",
  });
  node.mapper.maps.set("vg-x", { minor: 10, uuid: "LVM-x" });
  dropped(node);
  await watch.check();
  await watch.check();
  const reported = node.reported.filter((line) => line.startsWith("left a map without a state file"));
  assert.equal(reported.length, 1);
  assert.equal(node.mapper.write(name), "done");
  assert.equal(node.mapper.maps.get("rds-csi-pvc-9")!.table!.path, "7:3");
  assert.deepEqual(node.operations.filter((step) => step.startsWith("dmsetup")), [
    "dmsetup load",
    "dmsetup resume",
  ]);
});

Deno.test("an outage within a second of a repair makes the path fail again", async () => {
  const { node, watch } = await inUse();
  const away = () => node.connections.set(nqn, { state: "connecting", stateName: "connecting" });
  away();
  await watch.check();
  await node.clock.advance(120_000);
  await watch.check();
  node.connections.clear();
  await node.clock.advance(4_000);
  await watch.check();
  assert.equal(node.mapper.write(name), "done");
  away();
  await node.clock.advance(1_000);
  await watch.check();
  node.connections.clear();
  assert.equal(node.mapper.write(name), "waits", "whatever answers there now is not proven yet");
});

Deno.test("a map whose state file was lost is brought back once the volume is staged again", async () => {
  const { node, watch } = await inUse();
  const path = `/state/volumes/${volumeId}.json`;
  const file = node.paths.nodes.get(path)!;
  node.paths.nodes.delete(path);
  dropped(node);
  await watch.check();
  assert.equal(node.mapper.write(name), "waits");
  node.paths.nodes.set(path, file);
  await watch.check();
  assert.equal(node.mapper.write(name), "done");
});

Deno.test("a repair that is killed between load and resume is finished at the next start", async () => {
  for (const step of ["dmsetup load", "dmsetup resume"]) {
    const { node, watch } = await inUse();
    dropped(node);
    node.before = (operation) => {
      if (operation === step) throw injected;
    };
    await watch.check();
    node.before = () => {};
    await watching(node).watch.check();
    assert.equal(node.mapper.write(name), "done", step);
    assert.equal(node.mapper.maps.get(name)!.inactive, undefined);
  }
});

Deno.test("a call that waits for the device does not stop the watch from bringing it back; the state file is written after it", async () => {
  const { node, locks, watch } = await inUse();
  const release = locks.tryTake([volumeId], "a call")!;
  dropped(node);
  await watch.check();
  assert.equal(node.mapper.write(name), "done");
  assert.equal(node.stagingState!.device!.uniqueId, "a".repeat(32));
  release();
  await watch.check();
  assert.equal(node.stagingState!.device!.uniqueId, "b".repeat(32));
});

Deno.test("a map that a call grows while its path is brought back keeps its new size", async () => {
  const { node, watch } = await inUse();
  const map = node.mapper.maps.get(name)!;
  const sectors = String(sizeBytes * 2n / 512n);
  dropped(node);
  node.device.sizeBytes = sizeBytes * 2n;
  node.before = (operation) => {
    if (operation === "probe") Object.assign(map, { table: { ...map.table, path: "7:9", sectors } });
  };
  await watch.check();
  await watch.check();
  assert.equal(map.table!.sectors, sectors);
  assert.equal(node.mapper.write(name), "done");
});

Deno.test("a device that the kernel has dropped is scanned for, and waited for", async () => {
  const { node } = await inUse();
  let isShown = false;
  const { connector } = node.deps;
  const find: typeof connector.find = async (nqn, context) =>
    isShown ? await connector.find(nqn, context) : undefined;
  const lock = { tryTake: () => () => {} };
  const deps = { ...node.deps, connector: { ...connector, find } };
  const watch = new LayerWatch({ deps, fencing: node.service.fencing, lock });
  dropped(node);
  const look = watch.check();
  await node.clock.advance(50);
  assert.deepEqual(node.operations, ["rescan"]);
  assert.equal(node.mapper.write(name), "waits");
  isShown = true;
  await node.clock.advance(1_000);
  await look;
  assert.equal(node.mapper.write(name), "done");
});

Deno.test("a router that is away for long is asked every few seconds", async () => {
  const { node, watch } = await inUse();
  givenUp(node);
  let asked = 0;
  node.offered = () => {
    asked++;
    return [];
  };
  for (let second = 0; second < 100; second++) {
    await watch.check();
    await node.clock.advance(1_000);
  }
  assert.ok(asked > 30 && asked < 70, `asked=${asked}`);
  node.offered = () => [nqn];
  for (let second = 0; second < 3; second++) {
    await node.clock.advance(1_000);
    await watch.check();
  }
  assert.equal(node.mapper.write(name), "done");
});

Deno.test("a volume that is in a later epoch is not connected again", async () => {
  const { node, watch } = await inUse();
  givenUp(node);
  node.offered = () => [later];
  await watch.check();
  assert.equal(node.device.connected, false);
  assert.equal(node.mapper.write(name), "waits");
});

Deno.test("a volume that hangs delays no other check, and the watch ends when it is stopped", async () => {
  const { node, watch } = await inUse();
  givenUp(node);
  let asked = 0;
  node.offered = () => {
    asked++;
    return new Promise(() => {});
  };
  watch.start();
  await node.clock.advance(5_000);
  dropped(node);
  node.device.connected = true;
  assert.equal(asked, 1, "nothing is piled up on what hangs");
  await watch.stop();
  assert.equal(node.table.some(({ mountPoint }) => mountPoint === targetPath), true);
});

Deno.test("a volume that waits and is taken down no longer waits", async () => {
  const { node, watch } = await inUse("block");
  givenUp(node);
  node.offered = () => [];
  await watch.check();
  assert.deepEqual([...node.events.waiting], [volumeId]);
  await node.unpublish();
  await node.unstage();
  await watch.check();
  assert.equal(node.events.waiting.size, 0);
});

Deno.test("a volume whose checks never finish is given up after ctrlLossTmo too", async () => {
  const { node } = await inUse();
  // The device is live, and a read from it never ends.
  const probe = (_device: unknown, { signal }: { readonly signal: AbortSignal }) =>
    new Promise<never>((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  const deps = { ...node.deps, filesystems: { ...node.deps.filesystems, probe } };
  const watch = new LayerWatch({ deps, fencing: node.service.fencing, lock: { tryTake: () => () => {} } });
  dropped(node);
  for (let minute = 0; minute < 9; minute++) {
    const look = watch.check();
    await node.clock.advance(60_000);
    await look;
    assert.equal(node.mapper.write(name), "waits", String(minute));
  }
  for (let minute = 0; minute < 3; minute++) {
    const look = watch.check();
    await node.clock.advance(60_000);
    await look;
  }
  assert.equal(node.mapper.write(name), "fails");
  assert.ok(node.events.reported.includes("wait given up"));
});
