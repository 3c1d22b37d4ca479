import { unsettled } from "../../../tests/fakes/refusal.ts";
// Volumes whose device has a map: staged, published, grown and taken down through it, and proven down to the NQN.
import { aStagingState } from "../../../tests/fakes/staging_state.ts";
import assert from "node:assert/strict";
import { rejectsWith } from "../../../tests/fakes/volume_errors.ts";
import {
  block,
  breakEachStep,
  call,
  ext4,
  FakeNode,
  injected,
  nqn,
  sizeBytes,
  stagingPath,
  targetPath,
  volumeId,
} from "../../../tests/fakes/node_deps.ts";

const name = "rds-csi-pvc-1";
/** How a connection is made below a map, unless the StorageClass says otherwise. */
const waiting = { reconnectDelay: 2, fastIoFailTmo: 1, digests: [] };
const layered = { volumeContext: { deviceLayer: "multipath" } };

/** A reboot of the router makes the volume another device of the same export. */
function renew(node: FakeNode, change: Partial<FakeNode["device"]> = {}): void {
  Object.assign(node.device, {
    path: "/dev/loop9",
    deviceNumber: "7:9",
    uniqueId: "b".repeat(32),
    ...change,
  });
  node.paths.nodes.set(node.device.path, { kind: "block", deviceNumber: node.device.deviceNumber });
  node.showDevices();
}

async function stagedNode(change: Partial<FakeNode["device"]> = {}): Promise<FakeNode> {
  const node = new FakeNode();
  Object.assign(node.device, { uniqueId: "a".repeat(32), ...change });
  await node.stage(layered);
  return node;
}

function nothingLeft(node: FakeNode): void {
  assert.deepEqual(node.table, []);
  assert.equal(node.mapper.maps.size, 0);
  assert.equal(node.device.connected, false);
}

Deno.test("stage() makes the map before the file system, mounts the map, and says so in the state file", async () => {
  const node = await stagedNode();
  const steps = node.operations.filter((step) => /^(?:connect|dmsetup|format|mountDevice)/.test(step));
  assert.deepEqual(steps, ["connect", "dmsetup create", "format", "mountDevice"]);
  assert.equal(node.table[0]!.deviceNumber, "253:0");
  assert.equal(node.stagingState!.device!.deviceNumber, "253:0");
  assert.equal(node.stagingState!.device!.uniqueId, "a".repeat(32));
  const { map, connection } = node.stagingState!;
  assert.deepEqual([map, connection], ["multipath", waiting]);
});

Deno.test("stage() keeps in the state file what the connection was made with", async () => {
  const node = new FakeNode();
  await node.stage({
    volumeContext: { deviceLayer: "multipath", ctrlLossTmo: "600", reconnectDelay: "3", fastIoFailTmo: "2" },
  });
  assert.deepEqual(node.stagingState!.connection, {
    ...{ ctrlLossTmo: 600, reconnectDelay: 3, fastIoFailTmo: 2 },
    digests: [],
  });
});

Deno.test("a volume keeps its map when it is begun anew with other mount options, and gets one that it now needs", async () => {
  const anew = { ...layered, mountFlags: ["noatime"] };
  for (const layer of [undefined, "true"]) {
    const node = await stagedNode();
    await node.stage(anew, layer === undefined ? {} : { layer });
    assert.equal(node.mapper.maps.size, 1);
    assert.match(node.table[0]!.deviceNumber, /^253:/);
    assert.deepEqual(node.stagingState!.connection, waiting);
  }
  const node = new FakeNode();
  await node.stage();
  await node.stage(anew);
  assert.equal(node.mapper.maps.size, 1);
});

Deno.test("a volume with a map is published, unpublished and unstaged, and nothing is left", async () => {
  for (const capability of [ext4, block]) {
    const node = new FakeNode();
    await node.stage({ ...layered, capability });
    await node.publish({ capability });
    assert.equal(node.table.some(({ mountPoint }) => mountPoint === targetPath), true);
    await node.unpublish();
    await node.unstage();
    nothingLeft(node);
    const steps = node.operations.filter((step) => /^(?:unmount|dmsetup|disconnect)/.test(step));
    assert.deepEqual(steps.slice(-2), ["dmsetup remove", "disconnect"]);
    assert.ok(steps.lastIndexOf("unmount") < steps.indexOf("dmsetup remove"));
  }
});

Deno.test("stage() continues without a map for auto where the kernel has none, and refuses for multipath", async () => {
  const node = new FakeNode();
  node.mapper.hasMultipath = false;
  await rejectsWith(node.stage(layered), "precondition", /no dm-multipath/);
  assert.equal(node.stagingState, undefined);
  await node.stage({ volumeContext: { deviceLayer: "auto" } });
  assert.equal(node.stagingState!.map, undefined);
  assert.equal(node.table[0]!.deviceNumber, "7:3");
});

for (const root of ["/nvme9n9//deleted", "/loop3"]) {
  Deno.test(`stage() refuses a volume whose device below the map is bound elsewhere as ${root}`, async () => {
    for (const capability of [ext4, block]) {
      const node = new FakeNode();
      node.addMount("0:6", "/bound", { filesystem: "devtmpfs", root });
      node.paths.nodes.set("/bound", { kind: "block", deviceNumber: "7:3" });
      await rejectsWith(node.stage({ ...layered, capability }), "in-use", /is bound at/);
      assert.deepEqual([node.formats, node.mapper.maps.size, node.device.connected], [[], 0, false]);
    }
  });
}

/** The publish context for a node that must have the map. */
function needing(
  { publishContext: { nvme_nqn: _legacy, ...rest } }: { publishContext: Record<string, string> },
) {
  return { publishContext: { ...rest, layer: "true" } };
}

Deno.test("stage() makes a map where the publish context needs one, whatever the StorageClass says", async () => {
  const contexts: Record<string, string>[] = [{}, { deviceLayer: "none" }, { deviceLayer: "auto" }];
  for (const volumeContext of contexts) {
    const node = new FakeNode();
    const request = { ...needing(node.stageRequest()), volumeContext };
    await node.stage(request);
    assert.equal(node.table[0]!.deviceNumber, "253:0");
    await node.stage(request);
    const without = new FakeNode();
    without.mapper.hasMultipath = false;
    await rejectsWith(without.stage({ ...request }), "precondition", /no dm-multipath/);
    assert.equal(without.stagingState, undefined);
  }
});

Deno.test("stage() refuses a volume that is staged without a map where the publish context needs one", async () => {
  const node = new FakeNode();
  await node.stage();
  const before = node.stagingState;
  await assert.rejects(
    node.stage(needing(node.stageRequest())),
    unsettled("precondition", /without its device layer/),
  );
  assert.deepEqual(node.stagingState, before);
  await node.unstage();
  await node.stage({ ...needing(node.stageRequest()) });
  assert.equal(node.table[0]!.deviceNumber, "253:0");
});

Deno.test("a volume that was staged without a map stays so until it is unstaged", async () => {
  const node = new FakeNode();
  await node.stage();
  await node.stage(layered);
  assert.equal(node.mapper.maps.size, 0);
  assert.equal(node.stagingState!.map, undefined);
  await node.publish();
  await node.unpublish();
  await node.unstage();
  await node.stage(layered, { mayFormat: "false" });
  assert.equal(node.table[0]!.deviceNumber, "253:0");
});

Deno.test("a volume staged without a map stays usable on a node whose setting has come to need maps that it cannot make", async () => {
  const node = new FakeNode();
  await node.stage();
  node.mapper.hasMultipath = false;
  await node.stage(layered);
  await node.publish();
  await node.unpublish();
  await node.unstage();
  await rejectsWith(node.stage(layered), "precondition", /no dm-multipath/);
});

Deno.test("after a reboot of the node the map is made again", async () => {
  const node = await stagedNode();
  node.table = [];
  node.device.connected = false;
  node.mapper.maps.clear();
  node.showDevices();
  await node.stage(layered, { mayFormat: "false" });
  assert.equal(node.table[0]!.deviceNumber, "253:1");
});

Deno.test("publish() is unavailable while the map waits for its device, and refuses another device below it", async () => {
  const node = await stagedNode();
  renew(node);
  await rejectsWith(node.publish(), "unavailable", /away, and writes wait/);
  assert.equal(node.table.length, 1);
});

Deno.test("stage() puts the map onto a device that came back, under a mount that stays", async () => {
  const node = await stagedNode({ filesystemUuid: "u-1" });
  await node.unstage();
  await node.stage(layered, { mayFormat: "false" });
  await node.publish();
  const number = node.table[0]!.deviceNumber;
  renew(node);
  assert.equal(node.mapper.write(name), "waits");
  await node.stage(layered, { mayFormat: "false" });
  assert.equal(node.mapper.write(name), "done");
  assert.equal(node.table[0]!.deviceNumber, number);
  assert.equal(node.stagingState!.device!.uniqueId, "b".repeat(32));
  await node.publish();
});

Deno.test("stage() leaves the map waiting when what came back holds another file system", async () => {
  for (const change of [{ filesystemUuid: "u-2" }, { content: "xfs" }, { content: "blank" }] as const) {
    const node = await stagedNode({ filesystemUuid: "u-1" });
    await node.unstage();
    await node.stage(layered, { mayFormat: "false" });
    renew(node, change);
    const other = unsettled("identity-mismatch", /expected file system=ext4 u-1/);
    await assert.rejects(node.stage(layered, { mayFormat: "false" }), other);
    assert.equal(node.mapper.write(name), "waits");
    assert.deepEqual(node.mapper.maps.get(name)!.table!.path, "7:3");
  }
});

Deno.test("stage() leaves the map waiting when what came back is smaller, or another namespace", async () => {
  for (const change of [{ sizeBytes: sizeBytes / 2n }, { nsid: 2 }]) {
    const node = await stagedNode();
    renew(node, change);
    await assert.rejects(node.stage(layered, { mayFormat: "false" }), unsettled("identity-mismatch"));
    assert.equal(node.mapper.write(name), "waits");
  }
});

Deno.test("unstage() removes no map that a process holds open, and names the process", async () => {
  const node = await stagedNode();
  node.after = (step) => {
    if (step !== "unmount") return;
    node.holder = { certain: true, description: "process 7 (dd)" };
    node.held.add("253:0");
  };
  await rejectsWith(
    node.unstage(),
    "in-use",
    /Cannot remove the map .*is open: process 7 \(dd\); end that process/,
  );
  assert.equal(node.device.connected, true);
  node.held.clear();
  node.holder = undefined;
  node.after = () => {};
  await node.unstage();
  nothingLeft(node);
});

Deno.test("unstage() refuses while the node's multipath has the device below the map, and health says so", async () => {
  const node = await stagedNode();
  Object.assign(node, { layers: ["/dev/dm-9 (mpatha, mpath)"], layersOn: node.device.path });
  const { problems } = await node.service.volumeHealth(volumeId, call());
  assert.deepEqual(problems.map(({ reason }) => reason), ["UsedByNode"]);
  await rejectsWith(
    node.unstage(),
    "in-use",
    /itself uses \/dev\/loop3, by \/dev\/dm-9 .*multipath -f \/dev\/dm-9/,
  );
  assert.equal(node.device.connected, true);
  // The volume's own map is on that device as well.
  node.layers = ["/dev/dm-0 (rds-csi-pvc-1, mpath)"];
  await node.unstage();
  nothingLeft(node);
});

Deno.test("unstage() is unavailable while a mounted volume waits for its device, and succeeds afterwards", async () => {
  const node = await stagedNode();
  renew(node);
  await rejectsWith(node.unstage(), "unavailable", /wait for its device/);
  assert.equal(node.table.length, 1);
  await node.stage(layered, { mayFormat: "false" });
  await node.unstage();
  nothingLeft(node);
});

Deno.test("unstage() of an unused block volume ends the waiting and succeeds", async () => {
  const node = new FakeNode();
  await node.stage({ ...layered, capability: block });
  node.device.connected = false;
  node.showDevices();
  await node.unstage();
  nothingLeft(node);
});

Deno.test("a stage that fails leaves a map that waits, even when it reconnected for it", async () => {
  const node = new FakeNode();
  await node.stage({ ...layered, capability: block });
  await node.publish({ capability: block });
  node.device.connected = false;
  node.showDevices();
  node.before = (step) => {
    if (step.startsWith("dmsetup")) throw injected;
  };
  renew(node, { connected: false });
  await assert.rejects(node.stage({ ...layered, capability: block }));
  node.before = () => {};
  assert.equal(node.mapper.write(name), "waits");
  assert.equal(node.device.connected, true);
});

Deno.test("a stage that fails removes the map that it made on an existing connection", async () => {
  const node = new FakeNode();
  node.device.connected = true;
  node.paths.nodes.set(node.device.path, { kind: "block", deviceNumber: node.device.deviceNumber });
  node.showDevices();
  node.before = (step) => {
    if (step === "format") throw injected;
  };
  await assert.rejects(node.stage(layered), unsettled("internal", /injected/));
  assert.equal(node.mapper.maps.size, 0);
  assert.equal(node.device.connected, true);
});

Deno.test("a fence ends the waiting before it disconnects the volume, even where the kernel has disconnected already", async () => {
  for (const connected of [true, false]) {
    const node = await stagedNode();
    node.device.connected = connected;
    node.showDevices();
    node.connections.set(nqn, { state: "connecting", stateName: "connecting" });
    node.offered = () => [nqn.replace("1-0a0b0c0d", "2-0a0b0c0d")];
    await node.unstage();
    nothingLeft(node);
    const steps = node.operations.filter((step) => /^(?:unmount|dmsetup m|forceDisconnect)/.test(step));
    assert.deepEqual(steps, ["dmsetup message", "forceDisconnect", "unmount"]);
  }
});

Deno.test("expand() grows the map with its device", async () => {
  const node = await stagedNode();
  await node.publish();
  node.device.sizeBytes = sizeBytes * 2n;
  const range = { requiredBytes: sizeBytes * 2n, limitBytes: 0n };
  assert.equal(
    await node.service.expand({ volumeId, volumePath: targetPath, range }, call()),
    sizeBytes * 2n,
  );
  assert.equal((await node.deps.maps!.find(name))!.sizeBytes, sizeBytes * 2n);
  assert.equal(node.mapper.write(name), "done");
});

Deno.test("a map of the volume's name with another UUID is left alone", async () => {
  const node = new FakeNode();
  node.mapper.maps.set(name, { minor: 5, uuid: "LVM-x" });
  node.showDevices();
  await rejectsWith(
    node.stage(layered),
    "identity-mismatch",
    /expected uuid=RDSCSI-pvc-1:1-0a0b0c0d found LVM-x/,
  );
  assert.equal(node.mapper.maps.get(name)!.uuid, "LVM-x");
  assert.equal(node.device.connected, false);
});

Deno.test("an unstage, or a stage of a later epoch, removes a map whose state file and connection are gone", async () => {
  for (const next of ["unstage", "stage"] as const) {
    const node = new FakeNode();
    await node.stage({ ...layered, capability: block });
    node.paths.nodes.delete(`/state/volumes/${volumeId}.json`);
    node.device.connected = false;
    node.showDevices();
    if (next === "unstage") {
      await node.unstage();
      nothingLeft(node);
      continue;
    }
    const later = nqn.replace("1-0a0b0c0d", "2-0a0b0c0d");
    node.devices.set(later, node.newDevice({ path: "/dev/loop4", deviceNumber: "7:4" }));
    await node.stage({ ...layered, capability: block }, { nqn: later, epoch: "2-0a0b0c0d" });
    assert.equal(node.mapper.maps.get(name)!.uuid, "RDSCSI-pvc-1:2-0a0b0c0d");
  }
});

Deno.test("a volume keeps its map after its StorageClass changed to none and the kernel has given up the connection", async () => {
  const node = new FakeNode();
  await node.stage({ ...layered, capability: block });
  await node.publish({ capability: block });
  node.device.connected = false;
  node.showDevices();
  await node.stage({ capability: block, volumeContext: { deviceLayer: "none" } });
  assert.equal(node.mapper.write(name), "done");
  assert.equal(node.stagingState!.map, "multipath");
});

Deno.test("a stage that fails at any step is undone, map and connection", async () => {
  await breakEachStep(
    () => Promise.resolve(new FakeNode()),
    (node) => node.stage(layered),
    async (node, step) => {
      if (node.stagingState?.filesystem === "none" || node.stagingState === undefined) nothingLeft(node);
      await node.stage(layered);
      assert.equal(node.table[0]!.deviceNumber.split(":")[0], "253", step);
      assert.equal(node.mapper.write(name), "done", step);
    },
  );
});

Deno.test("a stage that is killed at any step is finished by the next one, or taken down by an unstage", async () => {
  for (const next of ["stage", "unstage"] as const) {
    await breakEachStep(
      () => Promise.resolve(new FakeNode()),
      (node) => node.stage(layered),
      async (node, step) => {
        node.held.clear(); // The process that held it open is gone.
        if (next === "unstage") {
          await node.unstage();
          nothingLeft(node);
          return;
        }
        await node.stage(layered);
        assert.equal(node.mapper.write(name), "done", step);
        assert.equal(node.table[0]!.mountPoint, stagingPath);
      },
      "crashes",
    );
  }
});

Deno.test("an unstage that is killed at any step is finished by the next one", async () => {
  await breakEachStep(() => stagedNode(), (node) => node.unstage(), async (node) => {
    await node.unstage();
    nothingLeft(node);
  }, "crashes");
});

Deno.test("volumeHealth() reports a volume under a new identity that is not proven yet", async () => {
  const node = await stagedNode();
  renew(node);
  node.mapper.maps.get(name)!.table = { ...node.mapper.maps.get(name)!.table!, path: "7:9" };
  node.mapper.show();
  const { problems } = await node.service.volumeHealth(volumeId, call());
  assert.deepEqual(problems.map(({ reason }) => reason), ["DeviceMismatch"]);
  assert.match(problems[0]!.message, /gave it a new identity/);
});

Deno.test("volumeHealth() reports a missing device of a volume whose map waits, and nothing once it is back", async () => {
  const node = await stagedNode();
  await node.publish();
  assert.deepEqual((await node.service.volumeHealth(volumeId, call())).problems, []);
  renew(node);
  const { problems } = await node.service.volumeHealth(volumeId, call());
  assert.deepEqual(problems.map(({ reason }) => reason), ["DeviceWaiting"]);
  assert.match(problems[0]!.message, new RegExp(`not proven to be the volume.*writes wait.*nqn=${nqn}`));
});

Deno.test("stage() lets an unfinished map queue again that was given up, but not under a pod", async () => {
  for (const mountedAt of [undefined, stagingPath, targetPath]) {
    const node = await stagedNode();
    const { table } = node.mapper.maps.get(name)!;
    Object.assign(table!, { queues: false, failed: true });
    const published = [{ targetPath, readOnly: false }];
    await node.deps.stagingStore.write(aStagingState({ ...node.stagingState!, staged: false, published }));
    node.table = [];
    if (mountedAt !== undefined) node.addMount("253:0", mountedAt);
    await node.stage(layered).catch(() => {});
    const { queues, failed } = node.mapper.maps.get(name)!.table!;
    const isPods = mountedAt === targetPath;
    assert.deepEqual([queues, failed], [!isPods, isPods], mountedAt);
  }
});
