// The calls that make and delete snapshots, and volumes from them: on Btrfs, and by copying without Btrfs.
import assert from "node:assert/strict";
import type { VolumeContentSource } from "../../src/csi/generated/csi.ts";
import type { Sent } from "../../src/csi/server/proto.ts";
import { gibibyte } from "../support/controller_calls.ts";
import type { StackOptions } from "../support/stack.ts";
import { misplacedImage } from "./faults.ts";
import { type Attempt, made, type Rpc } from "./rpcs.ts";
import type { Scene } from "./scene.ts";
import { again, create, creating, deleting, publish } from "./volume_rpcs.ts";

/** Makes a snapshot; its id is known after the first answer. */
function snapshotting(scene: Scene, name: string, source: string): Attempt & { readonly id: () => string } {
  let id = "";
  return {
    id: () => id,
    call: async (clients, timeoutMs) => {
      const request = { name, sourceVolumeId: source };
      const { snapshot } = await clients.controller.call("CreateSnapshot", request, timeoutMs);
      assert.equal(snapshot!.sourceVolumeId, source);
      assert.equal(snapshot!.readyToUse, true);
      id = snapshot!.snapshotId;
      const createdAtSeconds = Number(snapshot!.creationTime!.seconds);
      const reported = scene.snapshots.get(id) ??
        { source, createdAtSeconds, sizeBytes: BigInt(snapshot!.sizeBytes) };
      assert.equal(createdAtSeconds, reported.createdAtSeconds, "the time of a snapshot never changes");
      scene.snapshots.set(id, reported);
      scene.assertSnapshot(id);
    },
  };
}

/** Makes a snapshot that Kubernetes knows. */
async function snapshot(scene: Scene, source: string): Promise<string> {
  const attempt = snapshotting(scene, scene.newName(), source);
  for (;;) {
    try {
      await made(scene, attempt);
      return attempt.id();
    } catch (error) {
      if (!/still being copied/.test((error as Error).message)) throw error;
    }
  }
}

function deletingSnapshot(scene: Scene, id: string): Attempt {
  return {
    call: async (clients, timeoutMs) => {
      await clients.controller.call("DeleteSnapshot", { snapshotId: id }, timeoutMs);
      scene.snapshots.delete(id);
      assert.deepEqual(scene.pathsOf(id), [], "the files of a deleted snapshot");
    },
  };
}

/** Makes a volume from a source. */
function restoring(
  scene: Scene,
  volumeContentSource: Sent<VolumeContentSource>,
  sizeBytes = gibibyte,
): Attempt {
  const capacityRange = { requiredBytes: String(sizeBytes) };
  return creating(scene, scene.newName(), { volumeContentSource, capacityRange });
}

const fromSnapshot = (snapshotId: string): Sent<VolumeContentSource> => ({ snapshot: { snapshotId } });
const fromVolume = (volumeId: string): Sent<VolumeContentSource> => ({ volume: { volumeId } });

const newSnapshot: Rpc["prepare"] = async (scene) =>
  snapshotting(scene, scene.newName(), await create(scene));
const newClone: Rpc["prepare"] = async (scene) => restoring(scene, fromVolume(await create(scene)));
const newRestore: Rpc["prepare"] = async (scene) =>
  restoring(scene, fromSnapshot(await snapshot(scene, await create(scene))));
const snapshotToDelete: Rpc["prepare"] = async (scene) =>
  deletingSnapshot(scene, await snapshot(scene, await create(scene)));

const onBtrfs: readonly Rpc[] = [
  { name: "CreateSnapshot", prepare: newSnapshot },
  {
    name: "CreateSnapshot, volume held",
    prepare: async (scene) => {
      const id = await create(scene);
      await publish(scene, id, "node-1");
      return snapshotting(scene, scene.newName(), id);
    },
  },
  { name: "CreateSnapshot, made before", prepare: again(newSnapshot) },
  { name: "DeleteSnapshot", prepare: snapshotToDelete },
  {
    name: "DeleteSnapshot, volume gone",
    prepare: async (scene) => {
      const volume = await create(scene);
      const id = await snapshot(scene, volume);
      await made(scene, deleting(scene, volume));
      return deletingSnapshot(scene, id);
    },
  },
  { name: "DeleteSnapshot, gone before", prepare: again(snapshotToDelete) },
  {
    name: "DeleteVolume, snapshot there",
    prepare: async (scene) => {
      const volume = await create(scene);
      await snapshot(scene, volume);
      return deleting(scene, volume);
    },
  },
  { name: "CreateVolume from snapshot", prepare: newRestore },
  {
    name: "CreateVolume from snapshot, larger",
    prepare: async (scene) =>
      restoring(scene, fromSnapshot(await snapshot(scene, await create(scene))), 2n * gibibyte),
  },
  { name: "CreateVolume from snapshot, made before", prepare: again(newRestore) },
  { name: "CreateVolume from volume", prepare: newClone },
];

/** A router without subvolumes that is known to copy files. */
const copying: StackOptions = { simulator: { profile: "xfs-pool" }, probed: true };

const byCopying: readonly Rpc[] = [
  { name: "CreateSnapshot, copied", prepare: newSnapshot },
  { name: "DeleteSnapshot, copied", prepare: snapshotToDelete },
  { name: "CreateVolume from snapshot, copied", prepare: newRestore },
  {
    name: "CreateVolume from volume, copied",
    prepare: newClone,
    strands: {
      because:
        "renaming a copy and adding its disk are two commands: in between, its image looks like any other",
      says: misplacedImage,
    },
  },
];

/** Calls about snapshots and volumes made from them, in every situation. */
export const rpcs: readonly Rpc[] = [
  ...onBtrfs,
  ...byCopying.map((rpc) => ({ ...rpc, options: copying })),
];
