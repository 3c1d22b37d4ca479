import type { CsiClients } from "../../src/csi/server/client.ts";
import type { VolumeCapability } from "../../src/csi/generated/csi.ts";
import type { Sent } from "../../src/csi/server/proto.ts";

/** What one RPC cost. */
export interface RpcMeasurements {
  readonly rpc: string;
  readonly calls: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Router commands (exec requests) a call, on average. */
  readonly commandsPerCall: number;
}

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
  /** Folder for staging and target paths; undefined leaves the node's RPCs out. */
  readonly nodeFolder: string | undefined;
  readonly inFlight: number;
  readonly volumes: number;
  /** What was used so far. */
  meters(): Promise<Meters>;
  /** The name of a volume. @default {one that tells its number} */
  readonly nameOf?: (index: number) => string;
  /** The RPCs that are called. @default {all but those of snapshots} */
  readonly rpcs?: readonly string[];
}

interface BenchVolume {
  readonly name: string;
  readonly staging: string;
  readonly target: string;
  id: string;
  /** Of its snapshot, and of the volume that is made from that. */
  snapshotId: string;
  restoredId: string;
  volumeContext: Record<string, string>;
  publishContext: Record<string, string>;
}

type Step = readonly [rpc: string, act: (volume: BenchVolume) => Promise<unknown>];

const capability: Sent<VolumeCapability> = {
  mount: { fsType: "ext4" },
  accessMode: { mode: "SINGLE_NODE_WRITER" },
};
const gibibyte = 1n << 30n;

/** What is called only where `rpcs` names it. */
const whereAsked: readonly string[] = [
  "CreateSnapshot",
  "CreateVolume (restored)",
  "DeleteVolume (restored)",
  "DeleteSnapshot",
];

/** Takes as many volumes as asked through their lives, one RPC after the other, each `inFlight` at a time. */
export async function measureRpcs(bench: RpcBench): Promise<RpcMeasurements[]> {
  return (await sampleRpcs(bench)).map(({ rpc, milliseconds, used }) => ({
    rpc,
    calls: milliseconds.length,
    p50Ms: percentile(milliseconds, 0.5),
    p99Ms: percentile(milliseconds, 0.99),
    commandsPerCall: used.commands / milliseconds.length,
  }));
}

/** The same, call by call. */
export async function sampleRpcs(bench: RpcBench): Promise<RpcSamples[]> {
  const volumes = Array.from({ length: bench.volumes }, (_, i): BenchVolume => ({
    name: bench.nameOf?.(i) ?? `bench-${bench.inFlight}-${i}`,
    staging: `${bench.nodeFolder}/${i}/staging`,
    target: `${bench.nodeFolder}/${i}/target`,
    id: "",
    snapshotId: "",
    restoredId: "",
    volumeContext: {},
    publishContext: {},
  }));
  if (bench.nodeFolder !== undefined) {
    for (const volume of volumes) await Deno.mkdir(volume.staging, { recursive: true });
  }
  const samples: RpcSamples[] = [];
  for (const step of steps(bench)) {
    if (bench.rpcs?.includes(step[0]) ?? !whereAsked.includes(step[0])) {
      samples.push(await sampleStep(bench, volumes, step));
    }
  }
  return samples;
}

function steps(bench: RpcBench): Step[] {
  return bench.nodeFolder === undefined
    ? [...beforeNode(bench), ...afterNode(bench)]
    : [...beforeNode(bench), ...onNode(bench), ...afterNode(bench)];
}

function beforeNode({ clients: { identity, controller }, nodeId }: RpcBench): Step[] {
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
    ["Probe", () => identity.call("Probe", {})],
    ["CreateVolume", create],
    ["CreateVolume (repeated)", create],
    [
      "ValidateVolumeCapabilities",
      ({ id }) =>
        controller.call("ValidateVolumeCapabilities", { volumeId: id, volumeCapabilities: [capability] }),
    ],
    ["ControllerGetVolume", ({ id }) => controller.call("ControllerGetVolume", { volumeId: id })],
    ["ListVolumes", () => controller.call("ListVolumes", {})],
    ["GetCapacity", () => controller.call("GetCapacity", {})],
    ["ControllerPublishVolume", async (volume) => {
      const request = {
        volumeId: volume.id,
        nodeId,
        volumeCapability: capability,
        volumeContext: volume.volumeContext,
      };
      volume.publishContext = (await controller.call("ControllerPublishVolume", request)).publishContext;
    }],
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

function onNode({ clients: { node } }: RpcBench): Step[] {
  const common = (volume: BenchVolume) => ({
    volumeId: volume.id,
    stagingTargetPath: volume.staging,
    volumeCapability: capability,
    volumeContext: volume.volumeContext,
    // The controller grew the volume after it was published: what the node is told is what it was then.
    publishContext: { ...volume.publishContext, size: String(2n * gibibyte) },
  });
  return [
    ["NodeStageVolume", (volume) => node.call("NodeStageVolume", common(volume))],
    [
      "NodePublishVolume",
      (volume) => node.call("NodePublishVolume", { ...common(volume), targetPath: volume.target }),
    ],
    [
      "NodeGetVolumeStats",
      ({ id, target }) => node.call("NodeGetVolumeStats", { volumeId: id, volumePath: target }),
    ],
    [
      "NodeExpandVolume",
      (volume) => node.call("NodeExpandVolume", { ...common(volume), volumePath: volume.target }),
    ],
    [
      "NodeUnpublishVolume",
      ({ id, target }) => node.call("NodeUnpublishVolume", { volumeId: id, targetPath: target }),
    ],
    [
      "NodeUnstageVolume",
      ({ id, staging }) => node.call("NodeUnstageVolume", { volumeId: id, stagingTargetPath: staging }),
    ],
  ];
}

function afterNode(bench: RpcBench): Step[] {
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
