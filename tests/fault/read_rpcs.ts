// The calls that change nothing: each answer is compared with the router at that moment.
import assert from "node:assert/strict";
import type { CsiClients } from "../../src/csi/server/client.ts";
import type { Snapshot } from "../../src/csi/generated/csi.ts";
import { mount } from "../support/controller_calls.ts";
import { made, notYet, type Rpc } from "./rpcs.ts";
import type { Scene } from "./scene.ts";
import { rpcs as snapshotRpcs } from "./snapshot_rpcs.ts";
import { held } from "./volume_rpcs.ts";

type Look = (scene: Scene, id: string, clients: CsiClients, timeoutMs: number) => Promise<void>;

/** A read of a volume that a node holds. */
function atVolume(name: string, reading: Look): Rpc {
  const nothing = () => {};
  const attempt = (scene: Scene, id: string) => ({
    call: (clients: CsiClients, timeoutMs: number) => reading(scene, id, clients, timeoutMs),
  });
  return { name, prepare: held(nothing, attempt) };
}

/** A read of a snapshot. */
function atSnapshot(name: string, reading: Look): Rpc {
  const making = snapshotRpcs.find((rpc) => rpc.name === "CreateSnapshot")!;
  return {
    name,
    prepare: async (scene) => {
      await made(scene, await making.prepare(scene));
      const id = [...scene.snapshots.keys()].at(-1);
      return { call: (clients, timeoutMs) => reading(scene, id!, clients, timeoutMs) };
    },
  };
}

/** Checks what an answer said about a snapshot. */
function assertSaid(scene: Scene, id: string, said: Snapshot): void {
  const { source, sizeBytes, createdAtSeconds } = scene.snapshots.get(id)!;
  assert.deepEqual({
    id: said.snapshotId,
    source: said.sourceVolumeId,
    sizeBytes: BigInt(said.sizeBytes),
    createdAtSeconds: Number(said.creationTime!.seconds),
    ready: said.readyToUse,
  }, { id, source, sizeBytes, createdAtSeconds, ready: true });
  scene.assertSnapshot(id);
}

/** Whether a volume has none of the problems that this test can see. */
function isWell(scene: Scene, id: string): boolean {
  const { model } = scene.simulator;
  const disk = scene.disk(id);
  const pool = model.disks.findBySlot("storage-pool")!.pool!;
  return disk !== undefined && scene.isReadable(id) && disk.exported === scene.holders(id).length > 0 &&
    model.files.find(disk.filePath.slice(1)) !== undefined && pool.mounted && pool.state === "clean";
}

/** Calls that only read. */
export const rpcs: readonly Rpc[] = [
  atVolume("ListVolumes", async (scene, _id, clients, timeoutMs) => {
    const { entries } = await clients.controller.call("ListVolumes", {}, timeoutMs);
    const seen = entries.map(({ volume, status }) => ({
      id: volume!.volumeId,
      sizeBytes: BigInt(volume!.capacityBytes),
      nodes: status!.publishedNodeIds,
    }));
    const there = [...scene.volumes.keys()].filter((id) => scene.isReadable(id));
    assert.deepEqual(seen, there.map((id) => ({ id, ...scene.use(id) })));
  }),
  atVolume("ControllerGetVolume", async (scene, id, clients, timeoutMs) => {
    const { volume, status } = await clients.controller.call(
      "ControllerGetVolume",
      { volumeId: id },
      timeoutMs,
    );
    const seen = { sizeBytes: BigInt(volume!.capacityBytes), nodes: status!.publishedNodeIds };
    assert.deepEqual(seen, scene.use(id));
  }),
  atVolume("ValidateVolumeCapabilities", async (_scene, id, clients, timeoutMs) => {
    const request = { volumeId: id, volumeCapabilities: [mount] };
    const { confirmed } = await clients.controller.call("ValidateVolumeCapabilities", request, timeoutMs);
    assert.equal(confirmed?.volumeCapabilities.length, 1);
  }),
  atVolume("GetCapacity", async (scene, _id, clients, timeoutMs) => {
    const { availableCapacity } = await clients.controller.call("GetCapacity", {}, timeoutMs);
    const { model } = scene.simulator;
    const pool = model.disks.findBySlot("storage-pool")!;
    const free = model.freeBytes({ ...pool, pool: pool.pool! });
    const promised = model.disks.list().filter(({ type }) => type === "file")
      .reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n);
    const kept = [...scene.snapshots.values()].reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n);
    const left = pool.sizeBytes - promised - kept;
    assert.equal(BigInt(availableCapacity) >> 20n, (free < left ? free : left) >> 20n);
  }),
  atVolume("ControllerGetVolumeHealth", async (scene, id, clients, timeoutMs) => {
    const { volumeHealth } = await clients.controller.call(
      "ControllerGetVolumeHealth",
      { volumeId: id },
      timeoutMs,
    );
    assert.equal(volumeHealth!.volumeId, id);
    assert.equal(volumeHealth!.healthStatuses.length === 0, isWell(scene, id));
  }),
  atVolume("ControllerListVolumeHealth", async (scene, _id, clients, timeoutMs) => {
    const sick = () => [...scene.volumes.keys()].filter((id) => !isWell(scene, id));
    const before = sick();
    const { entries } = await clients.controller.call("ControllerListVolumeHealth", {}, timeoutMs);
    // The controller looks twice, and leaves a problem that only one look has seen to the next call.
    if (before.length !== sick().length) return;
    // A volume that was taken over was attached before this router booted.
    const found = entries.filter(({ healthStatuses }) =>
      healthStatuses.some(({ reason }) => reason !== "RouterRestarted")
    );
    assert.deepEqual(found.map(({ volumeId }) => volumeId), before);
  }),
  atVolume("Probe", async (_scene, _id, clients, timeoutMs) => {
    const { ready } = await clients.identity.call("Probe", {}, timeoutMs);
    if (ready?.value !== true) throw notYet("the router is not ready");
  }),
  atSnapshot("GetSnapshot", async (scene, id, clients, timeoutMs) => {
    const { snapshot } = await clients.controller.call("GetSnapshot", { snapshotId: id }, timeoutMs);
    assertSaid(scene, id, snapshot!);
  }),
  atSnapshot("ListSnapshots", async (scene, _id, clients, timeoutMs) => {
    const { entries } = await clients.controller.call("ListSnapshots", {}, timeoutMs);
    assert.deepEqual(
      entries.map(({ snapshot }) => snapshot!.snapshotId),
      [...scene.snapshots.keys()].toSorted(),
    );
    for (const { snapshot } of entries) assertSaid(scene, snapshot!.snapshotId, snapshot!);
  }),
];
