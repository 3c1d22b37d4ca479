import { VolumeError } from "../volume/errors.ts";
import type { CallContext, FilesystemStats } from "../volume/ports.ts";
import type { Stash } from "../volume/staging.ts";
import { mountsAt } from "./mount_table.ts";
import { Stashes } from "./stashes.ts";
import type { NodeWorld } from "./world.ts";

/** What NodeGetVolumeStats answers: of a block volume, only its size is known. */
export type VolumeStats =
  | { readonly kind: "filesystem"; readonly stats: FilesystemStats }
  | { readonly kind: "block"; readonly totalBytes: bigint };

/**
 * Size and use of a volume at a path where it is staged or published.
 *
 * @throws {VolumeError} not-found when it is not there, unavailable when its device or file system does not answer
 */
export async function volumeStats(
  world: NodeWorld,
  volumeId: string,
  volumePath: string,
  context: CallContext,
): Promise<VolumeStats> {
  const stash = await getPlaced(world, volumeId, volumePath, context);
  if (stash.kind !== "block") {
    const point = await world.paths.mountPoint(volumePath);
    return { kind: "filesystem", stats: await world.filesystems.stats(point, context) };
  }
  const found = await world.connector.find(stash.nqn, context);
  if (found !== undefined) return { kind: "block", totalBytes: found.sizeBytes };
  throw new VolumeError("unavailable", `Cannot tell the size as the device is gone: volume=${volumeId}`);
}

/**
 * What is known of a volume that is at that path right now.
 *
 * @throws {VolumeError} not-found when it is not
 */
export async function getPlaced(
  world: NodeWorld,
  volumeId: string,
  volumePath: string,
  context: CallContext,
): Promise<Stash> {
  const stash = await new Stashes(world).find(volumeId);
  if (stash !== undefined && await isPlacedAt(world, stash, volumePath, context)) return stash;
  throw new VolumeError(
    "not-found",
    `Cannot find the volume at the path on this node: volume=${volumeId} path=${volumePath}`,
  );
}

async function isPlacedAt(
  world: NodeWorld,
  stash: Stash,
  volumePath: string,
  context: CallContext,
): Promise<boolean> {
  if (!volumePath.startsWith("/")) return false;
  const top = mountsAt(await world.mounts.table(), await world.paths.mountPoint(volumePath)).at(-1);
  if (stash.kind !== "block") return top !== undefined && top.deviceNumber === stash.device?.deviceNumber;
  if (top === undefined) return stash.staged && volumePath === stash.stagingPath;
  const info = await world.paths.info(volumePath, context);
  return info?.kind === "block" && info.deviceNumber === stash.device?.deviceNumber;
}
