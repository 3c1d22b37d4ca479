import type { CsiClients } from "../../src/csi/server/client.ts";
import type { VolumeCapability } from "../../src/csi/generated/csi.ts";
import type { Sent } from "../../src/csi/server/proto.ts";

/** What a simulated router has counted so far. */
export interface Meters {
  /** Router commands: exec requests. */
  readonly commands: number;
  /** Bytes that the router has printed. */
  readonly bytes: number;
}

/** The calls of one RPC, one by one. */
export interface RpcSamples {
  readonly rpc: string;
  /** Of each call. */
  readonly milliseconds: readonly number[];
  /** From the first call to the end of the last. */
  readonly wallMs: number;
  /** What all of them took. */
  readonly used: Meters;
}

/** What is measured. */
export interface RpcBench {
  readonly clients: CsiClients;
  readonly nodeId: string;
  readonly inFlight: number;
  readonly volumes: number;
  /** What was used so far. */
  meters(): Promise<Meters>;
  /** The RPCs that are called. */
  readonly rpcs: readonly string[];
}

interface BenchVolume {
  readonly name: string;
  id: string;
  /** Of its snapshot, and of the volume that is made from that. */
  snapshotId: string;
  restoredId: string;
  volumeContext: Record<string, string>;
}

type Step = readonly [rpc: string, act: (volume: BenchVolume) => Promise<unknown>];

const capability: Sent<VolumeCapability> = {
  mount: { fsType: "ext4" },
  accessMode: { mode: "SINGLE_NODE_WRITER" },
};
const gibibyte = 1n << 30n;

/** Takes as many volumes as asked through their lives, one RPC after the other, each `inFlight` at a time. */
export async function sampleRpcs(bench: RpcBench): Promise<RpcSamples[]> {
  const volumes = Array.from({ length: bench.volumes }, (): BenchVolume => ({
    name: `pvc-${crypto.randomUUID()}`,
    id: "",
    snapshotId: "",
    restoredId: "",
    volumeContext: {},
  }));
  const samples: RpcSamples[] = [];
  for (const step of [...steps(bench), ...stepsOfEnd(bench)]) {
    if (bench.rpcs.includes(step[0])) samples.push(await sampleStep(bench, volumes, step));
  }
  return samples;
}

function steps({ clients: { controller }, nodeId }: RpcBench): Step[] {
  const create = async (volume: BenchVolume) => {
    const response = await controller.call("CreateVolume", {
      name: volume.name,
      capacityRange: { requiredBytes: String(gibibyte) },
      volumeCapabilities: [capability],
    });
    volume.id = response.volume!.volumeId;
    volume.volumeContext = response.volume!.volumeContext;
  };
  return [
    ["CreateVolume", create],
    ["CreateVolume (repeated)", create],
    ["GetCapacity", () => controller.call("GetCapacity", {})],
    [
      "ControllerPublishVolume",
      ({ id, volumeContext }) =>
        controller.call("ControllerPublishVolume", {
          volumeId: id,
          nodeId,
          volumeCapability: capability,
          volumeContext,
        }),
    ],
    [
      "ControllerExpandVolume",
      ({ id }) =>
        controller.call("ControllerExpandVolume", {
          volumeId: id,
          capacityRange: { requiredBytes: String(2n * gibibyte) },
        }),
    ],
  ];
}

function stepsOfEnd(bench: RpcBench): Step[] {
  const { clients: { controller }, nodeId } = bench;
  return [
    [
      "ControllerUnpublishVolume",
      ({ id }) => controller.call("ControllerUnpublishVolume", { volumeId: id, nodeId }),
    ],
    ...ofSnapshots(bench),
    ["DeleteVolume", ({ id }) => controller.call("DeleteVolume", { volumeId: id })],
  ];
}

function ofSnapshots({ clients: { controller } }: RpcBench): Step[] {
  const snapshot = async (volume: BenchVolume) => {
    const request = { name: `snapshot-of-${volume.name}`, sourceVolumeId: volume.id };
    volume.snapshotId = (await controller.call("CreateSnapshot", request)).snapshot!.snapshotId;
  };
  const restore = async (volume: BenchVolume) => {
    const response = await controller.call("CreateVolume", {
      name: `restored-${volume.name}`,
      capacityRange: { requiredBytes: String(2n * gibibyte) },
      volumeCapabilities: [capability],
      volumeContentSource: { snapshot: { snapshotId: volume.snapshotId } },
    });
    volume.restoredId = response.volume!.volumeId;
  };
  return [
    ["CreateSnapshot", snapshot],
    ["CreateVolume (restored)", restore],
    [
      "DeleteVolume (restored)",
      ({ restoredId }) => controller.call("DeleteVolume", { volumeId: restoredId }),
    ],
    ["DeleteSnapshot", ({ snapshotId }) => controller.call("DeleteSnapshot", { snapshotId })],
  ];
}

async function sampleStep(
  bench: RpcBench,
  volumes: readonly BenchVolume[],
  [rpc, act]: Step,
): Promise<RpcSamples> {
  const before = await bench.meters();
  const milliseconds: number[] = [];
  const waiting = [...volumes];
  const worker = async () => {
    for (let volume = waiting.shift(); volume !== undefined; volume = waiting.shift()) {
      const startedMs = performance.now();
      await act(volume);
      milliseconds.push(performance.now() - startedMs);
    }
  };
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: bench.inFlight }, worker));
  const wallMs = performance.now() - startedMs;
  const after = await bench.meters();
  const used = {
    commands: after.commands - before.commands,
    bytes: after.bytes - before.bytes,
  };
  return { rpc, milliseconds, wallMs, used };
}

/** The smallest value that at least `share` of all are no larger than. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? NaN;
}
