// The calls that make, publish, grow and delete volumes.
import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import type { CreateVolumeRequest, VolumeCapability } from "../../src/csi/generated/csi.ts";
import type { Sent } from "../../src/csi/server/proto.ts";
import { createRequest, gibibyte, mount, publishRequest } from "../support/controller_calls.ts";
import { growsByToggle, growsOnline } from "../support/stack.ts";
import { type Attempt, made, type Rpc } from "./rpcs.ts";
import type { Scene } from "./scene.ts";

const reader: Sent<VolumeCapability> = {
  mount: { fsType: "ext4" },
  accessMode: { mode: "MULTI_NODE_READER_ONLY" },
};

/** Creates a volume of that name; the id is known after the answer. */
export function creating(
  scene: Scene,
  name: string,
  more: Sent<CreateVolumeRequest> = {},
): Attempt & { readonly id: () => string } {
  const request = createRequest(name, more);
  const sizeBytes = BigInt(String(request.capacityRange?.requiredBytes));
  let id = "";
  return {
    id: () => id,
    call: async (clients, timeoutMs) => {
      const { volume } = await clients.controller.call("CreateVolume", request, timeoutMs);
      id = volume!.volumeId;
      assert.equal(volume!.capacityBytes, String(sizeBytes));
      const before = scene.volumes.get(id);
      scene.volumes.set(id, before ?? { sizeBytes, nodes: [], nqn: undefined });
      scene.assertVolume(id);
    },
  };
}

/** Creates a volume that Kubernetes knows. */
export async function create(scene: Scene, volumeCapability = mount): Promise<string> {
  const attempt = creating(scene, scene.newName(), { volumeCapabilities: [volumeCapability] });
  await made(scene, attempt);
  return attempt.id();
}

/** Deletes a volume. */
export function deleting(scene: Scene, id: string): Attempt {
  return {
    call: async (clients, timeoutMs) => {
      await clients.controller.call("DeleteVolume", { volumeId: id }, timeoutMs);
      scene.volumes.delete(id);
      assert.notEqual(scene.disk(id)?.type, "file", "the disk of a deleted volume");
      assert.deepEqual(scene.pathsOf(id), [], "the files of a deleted volume");
    },
  };
}

/** Publishes a volume to a node, as an attempt. */
export function publishing(
  scene: Scene,
  id: string,
  nodeId: string,
  capability = mount,
  volumeContext: Record<string, string> = {},
): Attempt {
  return {
    call: async (clients, timeoutMs) => {
      const request = { ...publishRequest(id, nodeId, capability), volumeContext };
      const { publishContext } = await clients.controller.call("ControllerPublishVolume", request, timeoutMs);
      const reported = scene.volumes.get(id)!;
      const nqn = publishContext["nqn"]!;
      if (reported.nodes.length > 0) {
        assert.equal(nqn, reported.nqn, "the NQN of a volume that is held never changes");
      }
      scene.volumes.set(id, { ...reported, nodes: [...new Set([...reported.nodes, nodeId])], nqn });
      scene.assertVolume(id);
      assert.equal(String(scene.getDisk(id).port), publishContext["nvmePort"]);
      assert.equal(publishContext["size"], String(reported.sizeBytes));
    },
  };
}

/** Publishes a volume without faults. */
export async function publish(scene: Scene, id: string, nodeId: string, capability = mount): Promise<void> {
  await made(scene, publishing(scene, id, nodeId, capability));
}

/** Unpublishes a volume from a node. */
export function unpublishing(scene: Scene, id: string, nodeId: string): Attempt {
  return {
    call: async (clients, timeoutMs) => {
      await clients.controller.call("ControllerUnpublishVolume", { volumeId: id, nodeId }, timeoutMs);
      const reported = scene.volumes.get(id)!;
      const nodes = reported.nodes.filter((node) => node !== nodeId);
      scene.volumes.set(id, { ...reported, nodes });
      if (nodes.length === 0) scene.assertVolume(id);
      else assert.ok(!scene.holders(id).some((holder) => holder.nodeId === nodeId));
    },
  };
}

/** Grows a volume to 2 GiB. */
export function expanding(scene: Scene, id: string): Attempt {
  return {
    call: async (clients, timeoutMs) => {
      const request = { volumeId: id, capacityRange: { requiredBytes: String(2n * gibibyte) } };
      const answer = await clients.controller.call("ControllerExpandVolume", request, timeoutMs);
      assert.equal(answer.capacityBytes, String(2n * gibibyte));
      scene.volumes.set(id, { ...scene.volumes.get(id)!, sizeBytes: 2n * gibibyte });
      const { sizeBytes, attachedBytes, exported } = scene.getDisk(id);
      assert.equal(sizeBytes, 2n * gibibyte);
      if (exported) assert.equal(attachedBytes, sizeBytes, "what nodes see of it");
    },
  };
}

/** Grows a volume that a node holds, on a router that was not probed: refused, with nothing changed. */
function notGrowing(scene: Scene, id: string): Attempt {
  const { call } = expanding(scene, id);
  return {
    call: async (clients, timeoutMs) => {
      const sizeBytes = scene.volumes.get(id)!.sizeBytes;
      try {
        await call(clients, timeoutMs);
      } catch (error) {
        if (!/only while it is not exported/.test(String(error))) throw error;
        assert.equal((error as { code?: unknown }).code, status.FAILED_PRECONDITION);
        assert.equal(scene.getDisk(id).sizeBytes, sizeBytes);
      }
    },
  };
}

/** A person sets the export of a volume at the router. */
function switchExport(scene: Scene, id: string, exported: boolean): void {
  scene.simulator.model.disks.replace({ ...scene.getDisk(id), exported });
}

type Change = (scene: Scene, id: string) => void;
type Next = (scene: Scene, id: string) => Attempt;

const nothing: Change = () => {};
const switchedOff: Change = (scene, id) => switchExport(scene, id, false);
const leftOn: Change = (scene, id) => switchExport(scene, id, true);
const diskGone: Change = (scene, id) => scene.simulator.model.disks.remove(scene.getDisk(id).id);

/** A published volume, changed by a person afterwards. */
export function held(change: Change, next: Next): Rpc["prepare"] {
  return async (scene) => {
    const id = await create(scene);
    await publish(scene, id, "node-1");
    change(scene, id);
    return next(scene, id);
  };
}

/** A volume that is published to a node which has to have a device layer. */
async function heldByLayer(scene: Scene): Promise<string> {
  const parameters = { deviceLayer: "multipath" };
  const attempt = creating(scene, scene.newName(), { parameters });
  await made(scene, attempt);
  await made(scene, publishing(scene, attempt.id(), "node-1", mount, parameters));
  return attempt.id();
}

/** A volume that was published once, changed by a person afterwards. */
function released(change: Change, next: Next): Rpc["prepare"] {
  return async (scene) => {
    const id = await create(scene);
    await publish(scene, id, "node-1");
    await made(scene, unpublishing(scene, id, "node-1"));
    change(scene, id);
    return next(scene, id);
  };
}

/** A call that has been answered OK once before. */
export function again(prepare: Rpc["prepare"]): Rpc["prepare"] {
  return async (scene) => {
    const attempt = await prepare(scene);
    await made(scene, attempt);
    return attempt;
  };
}

const toNode = (node: string): Next => (scene, id) => publishing(scene, id, node);
const fromNode: Next = (scene, id) => unpublishing(scene, id, "node-1");
const newVolume: Rpc["prepare"] = (scene) => Promise.resolve(creating(scene, scene.newName()));

/** Calls about volumes, in every situation. */
export const rpcs: readonly Rpc[] = [
  { name: "CreateVolume, the first", alone: true, prepare: newVolume },
  {
    name: "CreateVolume",
    prepare: async (scene) => {
      await create(scene);
      return await newVolume(scene);
    },
  },
  { name: "CreateVolume, made before", prepare: again(newVolume) },
  {
    name: "DeleteVolume",
    prepare: async (scene) => deleting(scene, await create(scene)),
    unremembered: [false, true],
  },
  {
    name: "DeleteVolume, used before",
    prepare: released(nothing, deleting),
    unremembered: [false, true],
  },
  { name: "DeleteVolume, disk gone", prepare: released(diskGone, deleting), unremembered: [false, true] },
  {
    name: "DeleteVolume, export left on",
    prepare: released(leftOn, deleting),
    unremembered: [false, true, true],
  },
  { name: "DeleteVolume, gone before", prepare: again(released(nothing, deleting)) },
  {
    name: "Publish",
    prepare: async (scene) => publishing(scene, await create(scene), "node-1"),
    unremembered: [false, true],
  },
  { name: "Publish, held", prepare: held(nothing, toNode("node-1")) },
  { name: "Publish, used before", prepare: released(nothing, toNode("node-2")), unremembered: [false, true] },
  { name: "Publish, export switched off", prepare: held(switchedOff, toNode("node-1")) },
  {
    name: "Publish, export left on",
    prepare: released(leftOn, toNode("node-2")),
    unremembered: [false, true, true],
  },
  {
    name: "Publish, a second reader",
    prepare: async (scene) => {
      const id = await create(scene, reader);
      await publish(scene, id, "node-1", reader);
      return publishing(scene, id, "node-2", reader);
    },
  },
  { name: "Unpublish", prepare: held(nothing, fromNode), unremembered: [false, true] },
  {
    name: "Unpublish, one of two",
    prepare: async (scene) => {
      const id = await create(scene, reader);
      for (const node of ["node-1", "node-2"]) await publish(scene, id, node, reader);
      return fromNode(scene, id);
    },
  },
  { name: "Unpublish, export left on", prepare: released(leftOn, fromNode) },
  { name: "Unpublish, done before", prepare: released(nothing, fromNode) },
  {
    name: "Expand",
    prepare: async (scene) => expanding(scene, await create(scene)),
    unremembered: [false, true],
  },
  {
    name: "Expand, held",
    options: growsOnline,
    prepare: held(nothing, expanding),
    unremembered: [false, true],
  },
  {
    name: "Expand, held, by a toggle",
    options: growsByToggle,
    prepare: async (scene) => expanding(scene, await heldByLayer(scene)),
  },
  { name: "Expand, held, not known to grow", unprobed: true, prepare: held(nothing, notGrowing) },
  { name: "Expand, done before", options: growsOnline, prepare: again(held(nothing, expanding)) },
];
