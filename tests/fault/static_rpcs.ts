// The calls about disks that a person made.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { status } from "@grpc/grpc-js";
import { gibibyte } from "../support/controller_calls.ts";
import { growsOnline } from "../support/stack.ts";
import { type Attempt, made, notYet, type Rpc } from "./rpcs.ts";
import type { Scene } from "./scene.ts";
import { again, expanding, publishing, unpublishing } from "./volume_rpcs.ts";

const volumeContext = { static: "true" };

/** Adds a disk as a person does. Kubernetes knows it because a person wrote its PersistentVolume. */
async function addDisk(scene: Scene): Promise<string> {
  scene.newName();
  const id = scene.lastId;
  const imagePath = `/storage-pool/images/${id}`;
  const disk = {
    slot: id,
    "file-path": imagePath,
    size: String(gibibyte),
    comment: "films",
    "mount-filesystem": true,
  };
  await control(scene.simulator, "POST /disks", disk);
  scene.volumes.set(id, { sizeBytes: gibibyte, nodes: [], nqn: undefined });
  return id;
}

const publishingIt = (scene: Scene, id: string) => publishing(scene, id, "node-1", undefined, volumeContext);

async function published(scene: Scene): Promise<string> {
  const id = await addDisk(scene);
  await made(scene, publishingIt(scene, id));
  return id;
}

/** Unpublishes the volume. Without its disk the call repeats until a person restores the disk. */
function unpublishingIt(scene: Scene, id: string): Attempt {
  return {
    call: async (clients, timeoutMs) => {
      await clients.controller.call(
        "ControllerUnpublishVolume",
        { volumeId: id, nodeId: "node-1" },
        timeoutMs,
      );
      if (scene.disk(id) === undefined) throw notYet("its disk was removed by a person");
      scene.volumes.set(id, { ...scene.volumes.get(id)!, nodes: [] });
      scene.assertVolume(id);
    },
  };
}

/** Checks that a delete removes nothing of an imported volume, whatever fails. */
function keeping(scene: Scene, id: string): Attempt {
  return {
    call: async (clients, timeoutMs) => {
      try {
        await clients.controller.call("DeleteVolume", { volumeId: id }, timeoutMs);
      } catch (error) {
        if ((error as { code?: status }).code !== status.FAILED_PRECONDITION) throw error;
        if (!/it was imported/.test(String(error))) throw error;
        assert.ok(scene.disk(id) !== undefined, "an imported volume lost its disk");
        return;
      }
      // Without its disk it is no longer an imported volume; the end of the trial checks that its file exists.
      assert.equal(scene.disk(id), undefined, "an imported volume was deleted");
      throw notYet("its disk was removed by a person");
    },
  };
}

/**
 * Codes for a disk or a file that a person removes. A file without a disk has no known owner, because its name does not
 * show one. Calls that need the file are refused without it.
 */
const codes = ["NOT_FOUND", "FAILED_PRECONDITION"] as const;

/** Calls about static volumes, in every situation. */
export const rpcs: readonly Rpc[] = ([
  { name: "Publish, static", prepare: async (scene) => publishingIt(scene, await addDisk(scene)) },
  {
    name: "Publish, static, held",
    prepare: again(async (scene) => publishingIt(scene, await addDisk(scene))),
  },
  {
    name: "Unpublish, static",
    prepare: async (scene) => unpublishingIt(scene, await published(scene)),
  },
  {
    name: "Expand, static",
    options: growsOnline,
    prepare: async (scene) => expanding(scene, await published(scene)),
  },
  {
    name: "DeleteVolume, static",
    prepare: async (scene) => {
      const id = await published(scene);
      await made(scene, unpublishing(scene, id, "node-1"));
      return keeping(scene, id);
    },
  },
] satisfies readonly Rpc[]).map((rpc) => ({ ...rpc, codes }));
