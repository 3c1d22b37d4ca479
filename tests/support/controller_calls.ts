import assert from "node:assert/strict";
import { control } from "./control_port.ts";
import { status } from "@grpc/grpc-js";
import type { CreateVolumeRequest, Snapshot, VolumeCapability } from "../../src/csi/generated/csi.ts";
import type { Sent } from "../../src/csi/server/proto.ts";
import { plainDisk } from "../../src/simulator/model/disk.ts";
import { formatCapabilities, type VolumeCapabilities } from "../../src/volume/model/capabilities.ts";
import { nameDigest } from "../../src/volume/model/ids/ids.ts";
import { clusterHash } from "../../src/volume/model/ids/cluster_hash.ts";
import { formatComment, newComment } from "../../src/volume/model/record.ts";
import { clusterId, type Stack } from "./stack.ts";

export const gibibyte = 1n << 30n;
export const mount: Sent<VolumeCapability> = {
  mount: { fsType: "ext4" },
  accessMode: { mode: "SINGLE_NODE_WRITER" },
};
export const block: Sent<VolumeCapability> = { block: {}, accessMode: { mode: "SINGLE_NODE_WRITER" } };

export function createRequest(
  name: string,
  overrides: Sent<CreateVolumeRequest> = {},
): Sent<CreateVolumeRequest> {
  return {
    name,
    capacityRange: { requiredBytes: String(gibibyte) },
    volumeCapabilities: [mount],
    parameters: {},
    ...overrides,
  };
}

export async function create(
  stack: Pick<Stack, "clients">,
  name: string,
  overrides: Sent<CreateVolumeRequest> = {},
): Promise<string> {
  const { volume } = await stack.clients.controller.call("CreateVolume", createRequest(name, overrides));
  return volume!.volumeId;
}

export function publishRequest(volumeId: string, nodeId = "node-1", volumeCapability = mount) {
  return { volumeId, nodeId, volumeCapability, readonly: false, volumeContext: {} };
}

export async function rejectsWith(code: status, work: Promise<unknown>, text?: RegExp): Promise<void> {
  const error = await work.then(() => undefined, (error) => error as { code: number; details: string });
  assert.ok(error !== undefined, `expected ${status[code]}, but it answered OK`);
  assert.equal(status[error.code], status[code], error.details);
  if (text !== undefined) assert.match(error.details, text);
}

/** Runs `work` and returns how many execs it took, and the most statements that one of them could have had. */
export async function cost(stack: Stack, work: () => Promise<unknown>): Promise<number> {
  const before = await stack.count();
  await work();
  const after = await stack.count();
  const execs = after.execs - before.execs;
  assert.ok(after.statements - before.statements <= 4 * execs, "an exec had more than 4 statements");
  return execs;
}

export async function state(stack: Stack) {
  return await control<{
    disks: { slot: string; type: string; [key: string]: unknown }[];
    files: { name: string; type: string; size: number }[];
    subvolumes: { fullname: string; "read-only": boolean; parent?: string }[];
    exports: unknown[];
  }>(stack.simulator, "GET /state");
}

/** The parts of the router's state that a client can change. */
export async function contents(stack: Stack) {
  const { disks, files, subvolumes, exports } = await state(stack);
  return { disks, files, subvolumes, exports };
}

/** Runs `work`, and checks that it has changed nothing on the router. */
export async function changesNothing(stack: Stack, work: () => Promise<unknown>): Promise<void> {
  const before = await contents(stack);
  await work();
  assert.deepEqual(await contents(stack), before);
}

export async function snapshot(
  stack: Pick<Stack, "clients">,
  name: string,
  sourceVolumeId: string,
  timeoutMs?: number,
): Promise<Snapshot> {
  const request = { name, sourceVolumeId };
  const response = await stack.clients.controller.call("CreateSnapshot", request, timeoutMs);
  return response.snapshot!;
}

export async function cloneOf(
  stack: Pick<Stack, "clients">,
  name: string,
  source: { volumeId: string } | { snapshotId: string },
  overrides: Sent<CreateVolumeRequest> = {},
): Promise<string> {
  const volumeContentSource = "volumeId" in source ? { volume: source } : { snapshot: source };
  const request = createRequest(name, { volumeContentSource, ...overrides });
  const { volume } = await stack.clients.controller.call("CreateVolume", request);
  return volume!.volumeId;
}

/** Puts volumes of this cluster onto the router without making 5,000 calls. */
export function seedVolumes(stack: Stack, count: number): void {
  const capabilities: VolumeCapabilities = {
    kind: { access: "mount", filesystem: "ext4" },
    modes: ["single-node-writer"],
  };
  for (let i = 0; i < count; i++) {
    const slot = `pvc-${i.toString(16).padStart(28, "0")}`;
    const cluster = clusterHash(clusterId);
    const record = {
      cluster,
      name: nameDigest(slot),
      capabilities: formatCapabilities(capabilities),
      parameters: "00000000",
      epoch: undefined,
      blankEpoch: 1,
      withdrawnAtSeconds: undefined,
      source: undefined,
      holders: [],
    };
    stack.simulator.model.disks.add({
      ...plainDisk,
      slot,
      type: "file",
      filePath: `/storage-pool/metal-csi/${slot}.${cluster}/disk.img`,
      comment: formatComment(newComment(record)),
      sizeBytes: gibibyte,
      mountFilesystem: false,
    });
  }
}
