import type { SimulatorOptions } from "../../src/simulator/simulator.ts";
import type { CreateVolumeRequest, VolumeCapability } from "../../src/csi/generated/csi.ts";
import type { Sent } from "../../src/csi/server/proto.ts";
import { clusterHash } from "../../src/volume/model/ids/cluster_hash.ts";
import { directoryMark } from "../../src/volume/model/directory/names.ts";
import { createRequest } from "./controller_calls.ts";
import { clusterId, type Stack, startStack } from "./stack.ts";

/** The mark in the names of directories of a stack's cluster. */
export const mark = directoryMark(clusterHash(clusterId));

/** A share with a pool of its own, beside one for block volumes. */
export const sharePools = [
  { name: "storage-pool" },
  { name: "share", nfsSharing: true, sizeBytes: 1n << 40n, freeBytes: 1n << 39n },
];

/** A controller of directories on a simulated router that shares a pool. */
export function startDirectoryStack(
  simulator: Partial<SimulatorOptions> = {},
  flags: readonly string[] = [],
): Promise<Stack> {
  return startStack({
    simulator: {
      pools: sharePools,
      basePaths: ["/share"],
      clusterHashes: [mark],
      ...simulator,
    },
    flags: ["--kind", "directory", "--base-path", "/share/k8s", ...flags],
  });
}

/** A capability that directories have. */
export const shared: Sent<VolumeCapability> = {
  mount: {},
  accessMode: { mode: "MULTI_NODE_MULTI_WRITER" },
};

/** Creates a directory, and returns its handle and its path. */
export async function createDirectory(
  { clients }: Pick<Stack, "clients">,
  name: string,
  overrides: Sent<CreateVolumeRequest> = {},
): Promise<{ handle: string; path: string; volumeContext: Readonly<Record<string, string>> }> {
  const request = createRequest(name, { volumeCapabilities: [shared], ...overrides });
  const { volume } = await clients.controller.call("CreateVolume", request);
  const { volumeId, volumeContext } = volume!;
  return { handle: volumeId, path: volumeContext["path"]!, volumeContext };
}

/** What is on the router below a path, as `/file` spells it. */
export function filesBelow({ simulator }: Pick<Stack, "simulator">, path: string): string[] {
  return simulator.model.files.list().map((file) => file.path).filter((one) => one.startsWith(path.slice(1)));
}
