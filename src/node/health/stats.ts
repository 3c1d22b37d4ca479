import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { FilesystemStats } from "../../volume/ports/node_ports.ts";
import type { Stash } from "../../volume/model/staging_state.ts";
import { mountsAt } from "../mount_table.ts";
import { Stashes } from "../stage/staging_store.ts";
import { withDeadline } from "../../async/deadline.ts";
import type { NodeWorld } from "../deps.ts";

/** What NodeGetVolumeStats answers: of a block volume, only its size is known. */
export type VolumeStats =
  | { readonly kind: "filesystem"; readonly stats: FilesystemStats }
  | { readonly kind: "block"; readonly totalBytes: bigint };

/** More than all looks together may take, so that nobody waits for what is dead. */
const limitMs = 15_000;

/**
 * Size and use of a volume at a path where it is staged or published. A file system that was turned read-only answers
 * like any other.
 *
 * @throws {VolumeError} not-found when it is not there; unavailable when its device is gone or another one, or its file
 * system does not answer; deadline when it takes too long
 */
export async function volumeStats(
  world: NodeWorld,
  volumeId: string,
  volumePath: string,
  context: CallContext,
): Promise<VolumeStats> {
  const what = `ask the volume for its size and use: volume=${volumeId}`;
  return await withDeadline(world.clock, context, limitMs, what, async (limited) => {
    const stash = await getPlaced(world, volumeId, volumePath, limited);
    const totalBytes = await liveSize(world, stash, limited);
    if (stash.kind === "block") return { kind: "block", totalBytes };
    const point = await world.paths.mountPoint(volumePath);
    try {
      return { kind: "filesystem", stats: await filesystemStats(world, point, limited) };
    } catch (error) {
      if (VolumeError.is(error, "unavailable") || VolumeError.is(error, "deadline")) {
        world.events.happened({ kind: "stale-mount", finder: "stats" });
      }
      throw error;
    }
  });
}

/** The device's size. Of one that is gone the kernel still counts the file system, from memory. */
async function liveSize(world: NodeWorld, stash: Stash, context: CallContext): Promise<bigint> {
  const found = await world.connector.find(stash.nqn, context);
  const isSame = found?.deviceNumber === stash.device?.deviceNumber;
  if (found !== undefined && isSame && found.sizeBytes > 0n) {
    world.events.happened({ kind: "device", volumeId: stash.volumeId, deviceNumber: found.deviceNumber });
    return found.sizeBytes;
  }
  world.events.happened({ kind: "stale-mount", finder: "stats" });
  const state = found === undefined ? "gone" : isSame ? "empty" : "another one since it was staged";
  throw new VolumeError(
    "unavailable",
    `Cannot tell the size and use as the device is ${state}: volume=${stash.volumeId} nqn=${stash.nqn}`,
  );
}

/**
 * Asks a file system for its size and use. A file system that is shut down may go on to count itself, from memory: its
 * root has to answer as well.
 *
 * @throws {VolumeError} unavailable when it does not answer, or deadline
 */
export async function filesystemStats(
  world: NodeWorld,
  point: string,
  context: CallContext,
): Promise<FilesystemStats> {
  await world.paths.info(point, context);
  return await world.filesystems.stats(point, context);
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
