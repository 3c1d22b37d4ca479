import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { FilesystemStats } from "../../volume/ports/node_ports.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import { mountsAt } from "../mount_table.ts";
import { readChain } from "../chain/chain.ts";
import { withDeadline } from "../../async/deadline.ts";
import type { NodeDeps } from "../deps.ts";

/** The answer of NodeGetVolumeStats. A block volume has only a size. */
export type VolumeStats =
  | { readonly kind: "filesystem"; readonly stats: FilesystemStats }
  | { readonly kind: "block"; readonly totalBytes: bigint };

/**
 * How long all reads together may take: longer than they need, and short enough that no caller waits for a dead device.
 */
const limitMs = 15_000;

/**
 * Size and use of a volume at a path where it is staged or published. A file system that was turned read-only is read
 * like any other.
 *
 * @throws {VolumeError} not-found when it is not there; unavailable when its device is gone or another one, or its file
 *   system does not answer; deadline when it takes too long
 */
export async function volumeStats(
  deps: NodeDeps,
  volumeId: string,
  volumePath: string,
  context: CallContext,
): Promise<VolumeStats> {
  const what = `ask the volume for its size and use: volume=${volumeId}`;
  return await withDeadline(deps.clock, context, limitMs, what, async (limited) => {
    const stagingState = await getPlaced(deps, volumeId, volumePath, limited);
    const totalBytes = await liveSize(deps, stagingState, limited);
    if (stagingState.intent.kind === "block") return { kind: "block", totalBytes };
    const mountPoint = await deps.paths.mountPoint(volumePath);
    try {
      return { kind: "filesystem", stats: await filesystemStats(deps, mountPoint, limited) };
    } catch (error) {
      if (VolumeError.is(error, "unavailable") || VolumeError.is(error, "deadline")) {
        deps.events.occurred({ kind: "stale-mount", finder: "stats" });
      }
      throw error;
    }
  });
}

/**
 * Reads the device's size. The kernel goes on to answer for the file system of a missing device, from memory, so the
 * device has to be found first.
 */
async function liveSize(deps: NodeDeps, stagingState: StagingState, context: CallContext): Promise<bigint> {
  const { used: found } = await readChain(deps, stagingState.intent.nqn, context);
  const isSame = found?.deviceNumber === stagingState.here.device?.deviceNumber;
  if (found !== undefined && isSame && found.sizeBytes > 0n) {
    deps.events.occurred({
      kind: "device",
      volumeId: stagingState.volumeId,
      deviceNumber: found.deviceNumber,
    });
    return found.sizeBytes;
  }
  deps.events.occurred({ kind: "stale-mount", finder: "stats" });
  const state = found === undefined ? "gone" : isSame ? "empty" : "no longer the staged one";
  throw new VolumeError(
    "unavailable",
    `Cannot read the volume's size and use because the device is ${state}: volume=${stagingState.volumeId} nqn=${stagingState.intent.nqn}`,
  );
}

/**
 * Reads a file system's size and use. A file system that is shut down may still answer these from memory, so its root
 * has to answer as well.
 *
 * @throws {VolumeError} unavailable when it does not answer, or deadline
 */
export async function filesystemStats(
  deps: NodeDeps,
  mountPoint: string,
  context: CallContext,
): Promise<FilesystemStats> {
  await deps.paths.info(mountPoint, context);
  return await deps.filesystems.stats(mountPoint, context);
}

/**
 * Returns the staging state of a volume that is at that path right now.
 *
 * @throws {VolumeError} not-found when it is not
 */
export async function getPlaced(
  deps: NodeDeps,
  volumeId: string,
  volumePath: string,
  context: CallContext,
): Promise<StagingState> {
  const stagingState = await deps.stagingStore.find(volumeId);
  if (stagingState !== undefined && await isPlacedAt(deps, stagingState, volumePath, context)) {
    return stagingState;
  }
  throw new VolumeError(
    "not-found",
    `Cannot find the volume at the path on this node: volume=${volumeId} path=${volumePath}`,
  );
}

async function isPlacedAt(
  deps: NodeDeps,
  stagingState: StagingState,
  volumePath: string,
  context: CallContext,
): Promise<boolean> {
  if (!volumePath.startsWith("/")) return false;
  const top = mountsAt(await deps.mounts.table(), await deps.paths.mountPoint(volumePath)).at(-1);
  if (stagingState.intent.kind !== "block") {
    return top !== undefined && top.deviceNumber === stagingState.here.device?.deviceNumber;
  }
  if (top === undefined) return stagingState.here.staged && volumePath === stagingState.intent.stagingPath;
  const info = await deps.paths.info(volumePath, context);
  return info?.kind === "block" && info.deviceNumber === stagingState.here.device?.deviceNumber;
}
