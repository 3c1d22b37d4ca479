// Disks that belong to others, or whose record is damaged or gone: each call refuses each kind, and changes nothing on
// the router. What the driver reads from such disks is tested in src/controller/volumes/foreign_test.ts.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { status } from "@grpc/grpc-js";
import { volumeIdFor } from "../../src/volume/model/ids/ids.ts";
import { clusterHash } from "../../src/volume/model/ids/cluster_hash.ts";
import {
  changesNothing,
  cloneOf,
  create,
  gibibyte,
  publishRequest,
  rejectsWith,
  snapshot,
  state,
} from "../support/controller_calls.ts";
import { clusterId, type Stack, startStack } from "../support/stack.ts";

const folder = "/storage-pool/metal-csi";
const hash = clusterHash(clusterId);
const goDriverSlot = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";

/** A kind of disk: how it is made in a slot, and what errors say about it. */
interface Kind {
  readonly name: string;
  /**
   * Makes the disk and returns its slot. `wanted` has the form of a volume id, and is used as the slot where possible.
   */
  readonly make: (stack: Stack, wanted: string) => Promise<string>;
  readonly texts: RegExp;
  /** Whether the driver knows that no node has the volume, so that an unpublish succeeds. */
  readonly isUnpublished?: boolean;
}

async function addFileDisk(stack: Stack, slot: string, over: Record<string, unknown> = {}): Promise<string> {
  const body = { slot, "file-path": `${folder}/${slot}.img`, size: String(gibibyte) };
  await control(stack.simulator, "POST /disks", { ...body, ...over });
  return slot;
}

/** A complete record of this cluster, for a volume in another slot. */
async function aComment(stack: Stack): Promise<string> {
  const id = await create(stack, "pvc-template");
  return String((await state(stack)).disks.find((disk) => disk.slot === id)!["comment"]);
}

const kinds: readonly Kind[] = [
  {
    name: "hardware",
    make: async (stack, slot) => {
      await control(stack.simulator, "POST /disks", { slot, type: "hardware", size: String(gibibyte) });
      return slot;
    },
    texts: /something else in that slot.*type=hardware/,
  },
  {
    name: "the pool itself",
    make: () => Promise.resolve("storage-pool"),
    texts: /something else in that slot.*type=raid/,
  },
  {
    name: "somebody's file",
    make: (stack, slot) => addFileDisk(stack, slot),
    texts: /carries no record of this driver/,
    isUnpublished: true,
  },
  {
    name: "a Go driver's volume",
    make: (stack) => addFileDisk(stack, goDriverSlot, { "nvme-tcp-export": true }),
    texts: /the legacy driver/,
  },
  {
    name: "another cluster's volume",
    make: async (stack, slot) => {
      const other = await stack.another(["--cluster-id", "another cluster"]);
      const id = await create(other, "pvc-theirs");
      const { comment } = (await state(stack)).disks.find((disk) => disk.slot === id)!;
      return await addFileDisk(stack, slot, { comment });
    },
    texts: /belongs to another cluster/,
  },
  {
    name: "a volume with a damaged record",
    make: async (stack, slot) => {
      const comment = (await aComment(stack)).replace("b=1", "b=2");
      return await addFileDisk(stack, slot, { comment, "file-path": `${folder}/${slot}.${hash}.img` });
    },
    texts: /record in its disk's comment is damaged/,
  },
  {
    name: "a volume whose record is gone",
    make: (stack, slot) => addFileDisk(stack, slot, { "file-path": `${folder}/${slot}.${hash}.img` }),
    texts: /carries no record of this driver/,
  },
  {
    name: "a damaged record on another file",
    make: async (stack, slot) =>
      await addFileDisk(stack, slot, { comment: (await aComment(stack)).slice(0, -9) }),
    texts: /record in its disk's comment is damaged/,
  },
];

for (const { name, make, texts: text, isUnpublished = false } of kinds) {
  Deno.test(`${name}: no call changes it, lists it, or makes anything of it`, async (t) => {
    await using stack = await startStack();
    const { controller } = stack.clients;
    const own = await create(stack, "pvc-own");
    const wanted = volumeIdFor("pvc-wanted");
    const volumeId = await make(stack, wanted);
    const larger = { capacityRange: { requiredBytes: String(9n * gibibyte) } };
    const unpublish = (nodeId: string) => controller.call("ControllerUnpublishVolume", { volumeId, nodeId });
    const changing: Readonly<Record<string, () => Promise<unknown>>> = {
      DeleteVolume: () => controller.call("DeleteVolume", { volumeId }),
      ControllerPublishVolume: () => controller.call("ControllerPublishVolume", publishRequest(volumeId)),
      ControllerUnpublishVolume: () => unpublish("node-1"),
      "ControllerUnpublishVolume of all": () => unpublish(""),
      ControllerExpandVolume: () => controller.call("ControllerExpandVolume", { volumeId, ...larger }),
      CreateSnapshot: () => snapshot(stack, "snap", volumeId),
      "CreateVolume from it": () => cloneOf(stack, "pvc-clone", { volumeId }),
      ...volumeId === wanted ? { CreateVolume: () => create(stack, "pvc-wanted") } : {},
    };
    await changesNothing(stack, async () => {
      for (const [call, work] of Object.entries(changing)) {
        const isDone = isUnpublished && call.startsWith("ControllerUnpublishVolume");
        await t.step(call, async () => {
          if (isDone) await work();
          else await rejectsWith(status.FAILED_PRECONDITION, work(), text);
        });
      }
      const { entries } = await controller.call("ListVolumes", {});
      const ids = entries.map((entry) => entry.volume!.volumeId);
      assert.ok(ids.includes(own) && !ids.includes(volumeId), String(ids));
      assert.deepEqual((await controller.call("ListSnapshots", { sourceVolumeId: volumeId })).entries, []);
      // The id has not the form of a snapshot id, so there is nothing to delete.
      await controller.call("DeleteSnapshot", { snapshotId: volumeId });
    });
  });
}
