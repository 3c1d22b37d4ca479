// Disks that are not this cluster's volumes, or not whole: each call has its own answer for each kind of them, and changes
// nothing on the router.
import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import { clusterHash, volumeIdFor } from "../../src/volume/model/ids.ts";
import {
  changesNothing,
  cloneOf,
  create,
  gibibyte,
  mount,
  post,
  publishRequest,
  rejectsWith,
  snapshot,
  state,
} from "../support/controller_calls.ts";
import { clusterId, type Stack, startStack } from "../support/stack.ts";

const folder = "/storage-pool/metal-csi";
const hash = clusterHash(clusterId);
const goDriverSlot = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";

/** A kind of disk: how it comes to be in a slot, what errors say of it, and what reading it gives. */
interface Kind {
  readonly name: string;
  /** Gives the slot; `wanted` is one of the form of a volume id, to be taken if that can be. */
  readonly make: (stack: Stack, wanted: string) => Promise<string>;
  readonly words: RegExp;
  /** What reads answer. */
  readonly read: status;
  /** Whether it is known that no node has it, so that it is unpublished. */
  readonly isUnpublished?: boolean;
  /** What a look at its health gives: an answer or a code. */
  readonly health: "RecordDamaged" | status;
}

async function addFileDisk(stack: Stack, slot: string, over: Record<string, unknown> = {}): Promise<string> {
  const body = { slot, "file-path": `${folder}/${slot}.img`, size: String(gibibyte) };
  await post(stack, "/disks", { ...body, ...over });
  return slot;
}

/** A whole record of this cluster's, of a volume in another slot. */
async function aComment(stack: Stack): Promise<string> {
  const id = await create(stack, "pvc-template");
  return String((await state(stack)).disks.find((disk) => disk.slot === id)!["comment"]);
}

const kinds: readonly Kind[] = [
  {
    name: "hardware",
    make: async (stack, slot) => {
      await post(stack, "/disks", { slot, type: "hardware", size: String(gibibyte) });
      return slot;
    },
    words: /something else in that slot.*type=hardware/,
    read: status.NOT_FOUND,
    health: status.NOT_FOUND,
  },
  {
    name: "the pool itself",
    make: () => Promise.resolve("storage-pool"),
    words: /something else in that slot.*type=raid/,
    read: status.NOT_FOUND,
    health: status.NOT_FOUND,
  },
  {
    name: "somebody's file",
    make: (stack, slot) => addFileDisk(stack, slot),
    words: /carries no record of this driver/,
    read: status.NOT_FOUND,
    isUnpublished: true,
    health: status.NOT_FOUND,
  },
  {
    name: "a Go driver's volume",
    make: (stack) => addFileDisk(stack, goDriverSlot, { "nvme-tcp-export": true }),
    words: /the earlier driver/,
    read: status.FAILED_PRECONDITION,
    health: status.FAILED_PRECONDITION,
  },
  {
    name: "another cluster's volume",
    make: async (stack, slot) => {
      const other = await stack.another(["--cluster-id", "another cluster"]);
      const id = await create(other, "pvc-theirs");
      const { comment } = (await state(stack)).disks.find((disk) => disk.slot === id)!;
      return await addFileDisk(stack, slot, { comment });
    },
    words: /belongs to another cluster/,
    read: status.NOT_FOUND,
    health: status.NOT_FOUND,
  },
  {
    name: "a volume with a damaged record",
    make: async (stack, slot) => {
      const comment = (await aComment(stack)).replace("b=1", "b=2");
      return await addFileDisk(stack, slot, { comment, "file-path": `${folder}/${slot}.${hash}.img` });
    },
    words: /record in its disk's comment is damaged/,
    read: status.FAILED_PRECONDITION,
    health: "RecordDamaged",
  },
  {
    name: "a volume whose record is gone",
    make: (stack, slot) => addFileDisk(stack, slot, { "file-path": `${folder}/${slot}.${hash}.img` }),
    words: /carries no record of this driver/,
    read: status.FAILED_PRECONDITION,
    health: "RecordDamaged",
  },
  {
    name: "a damaged record on another file",
    make: async (stack, slot) =>
      await addFileDisk(stack, slot, { comment: (await aComment(stack)).slice(0, -9) }),
    words: /record in its disk's comment is damaged/,
    read: status.FAILED_PRECONDITION,
    health: status.FAILED_PRECONDITION,
  },
];

for (const { name, make, words, read, health, isUnpublished = false } of kinds) {
  Deno.test(`${name}: every call has its answer, and changes nothing`, async (t) => {
    await using stack = await startStack();
    const { controller } = stack.clients;
    const own = await create(stack, "pvc-own");
    const wanted = volumeIdFor("pvc-wanted");
    const volumeId = await make(stack, wanted);
    const larger = { capacityRange: { requiredBytes: String(9n * gibibyte) } };
    const changing: Readonly<Record<string, () => Promise<unknown>>> = {
      DeleteVolume: () => controller.call("DeleteVolume", { volumeId }),
      ControllerPublishVolume: () => controller.call("ControllerPublishVolume", publishRequest(volumeId)),
      ControllerUnpublishVolume: () =>
        controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "node-1" }),
      "ControllerUnpublishVolume of all": () =>
        controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "" }),
      ControllerExpandVolume: () => controller.call("ControllerExpandVolume", { volumeId, ...larger }),
      CreateSnapshot: () => snapshot(stack, "snap", volumeId),
      "CreateVolume from it": () => cloneOf(stack, "pvc-clone", { volumeId }),
      ...volumeId === wanted ? { CreateVolume: () => create(stack, "pvc-wanted") } : {},
    };
    const reading: Readonly<Record<string, () => Promise<unknown>>> = {
      ControllerGetVolume: () => controller.call("ControllerGetVolume", { volumeId }),
      ValidateVolumeCapabilities: () =>
        controller.call("ValidateVolumeCapabilities", { volumeId, volumeCapabilities: [mount] }),
    };
    await changesNothing(stack, async () => {
      for (const [call, work] of Object.entries(changing)) {
        const isDone = isUnpublished && call.startsWith("ControllerUnpublishVolume");
        await t.step(call, async () => {
          if (isDone) await work();
          else await rejectsWith(status.FAILED_PRECONDITION, work(), words);
        });
      }
      for (const [call, work] of Object.entries(reading)) await t.step(call, () => rejectsWith(read, work()));
      await t.step("ControllerGetVolumeHealth", async () => {
        const asked = controller.call("ControllerGetVolumeHealth", { volumeId });
        if (typeof health !== "string") return await rejectsWith(health, asked);
        const { volumeHealth } = await asked;
        assert.deepEqual(volumeHealth!.healthStatuses.map(({ reason }) => reason), [health]);
      });
      await t.step("lists", async () => {
        const { entries } = await controller.call("ListVolumes", {});
        const ids = entries.map((entry) => entry.volume!.volumeId);
        assert.ok(ids.includes(own) && !ids.includes(volumeId), String(ids));
        const sick = await controller.call("ControllerListVolumeHealth", {});
        const expected = typeof health === "string" ? [volumeId] : [];
        assert.deepEqual(sick.entries.map((entry) => entry.volumeId), expected);
        assert.deepEqual((await controller.call("ListSnapshots", { sourceVolumeId: volumeId })).entries, []);
      });
      await t.step("DeleteSnapshot", async () => {
        await controller.call("DeleteSnapshot", { snapshotId: volumeId });
      });
    });
  });
}
