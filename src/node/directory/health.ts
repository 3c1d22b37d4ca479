import { withDeadline } from "../../async/deadline.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import type { HealthProblem, VolumeHealth } from "../../volume/model/health/health.ts";
import { parseDirectoryHandle } from "../../volume/model/directory/handle.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { mountsAt } from "../../volume/rules/host/mounts_at.ts";
import type { StorageProblem } from "../../volume/rules/health/storage_health.ts";
import type { DirectoryNodeDeps } from "./deps.ts";
import type { SharedMounts } from "./shared_mounts.ts";
import { isOfVolume } from "./stats.ts";

/** How long a server may take to answer before it counts as silent. */
const silenceMs = 5_000;
/** How many shares are asked at once. */
const maxAsked = 8;

/** The volume whose health is asked for, with the target that the caller knows of. */
export interface HealthRequest {
  readonly volumeId: string;
  readonly path: string | undefined;
}

/**
 * The problems of a directory where it should be published; without a path, where this node has published it.
 *
 * @throws {VolumeError} not-found when no path is given and the directory is mounted nowhere
 */
export async function directoryHealth(
  deps: DirectoryNodeDeps,
  { volumeId, path }: HealthRequest,
  context: CallContext,
): Promise<VolumeHealth> {
  const asked = path ?? await publishedAt(deps, volumeId);
  if (asked === undefined) {
    throw new VolumeError("not-found", `Cannot find the volume on this node: volume=${volumeId}`);
  }
  const found = await problemAt(deps, volumeId, asked, context);
  return { id: volumeId, problems: found === undefined ? [] : [found] };
}

/** A path where the directory is mounted. The handle of a static volume says nothing of its directory. */
async function publishedAt({ nfs }: DirectoryNodeDeps, volumeId: string): Promise<string | undefined> {
  if (parseDirectoryHandle(volumeId) === undefined) return undefined;
  return (await nfs.table()).find((entry) => isOfVolume(entry, volumeId))?.mountPoint;
}

async function problemAt(
  deps: DirectoryNodeDeps,
  volumeId: string,
  path: string,
  context: CallContext,
): Promise<HealthProblem | undefined> {
  const mountPoint = await deps.paths.mountPoint(path);
  const top = mountsAt(await deps.nfs.table(), mountPoint).at(-1);
  if (top === undefined) return problem("NotMounted", `the directory is not mounted: path=${path}`);
  if (!isOfVolume(top, volumeId)) {
    return problem("ForeignMount", `something else is mounted: path=${path} source=${top.source}`);
  }
  const silence = await silenceOf(deps, mountPoint, context);
  if (silence === undefined) return undefined;
  return problem("ServerSilent", `the server does not answer: source=${top.source} ${silence}`);
}

function problem(reason: string, message: string): HealthProblem {
  return { status: "INACCESSIBLE", reason, message };
}

/** The problems of the shares of this node; an empty list when all is well. */
export async function shareProblems(
  deps: DirectoryNodeDeps,
  shares: SharedMounts,
  context: CallContext,
): Promise<readonly StorageProblem[]> {
  const [obstacle, mounted, table] = await Promise.all([
    deps.nfs.obstacle(context),
    shares.mounted(),
    deps.nfs.table(),
  ]);
  const silent = await Promise.all(
    mounted.slice(0, maxAsked).map(async (mountPoint) => {
      const silence = await silenceOf(deps, mountPoint, context);
      return silence === undefined ? [] : [mountsAt(table, mountPoint).at(-1)?.source ?? mountPoint];
    }),
  );
  const sources = silent.flat();
  const unreachable = (reason: string, message: string): StorageProblem => ({
    status: "STORAGE_UNREACHABLE",
    reason,
    message,
  });
  return [
    ...obstacle === undefined ? [] : [unreachable("TransportMissing", `this node cannot mount: ${obstacle}`)],
    ...sources.length === 0
      ? []
      : [unreachable("ServerSilent", `a server does not answer: shares=${sources.join(", ")}`)],
  ];
}

async function silenceOf(
  deps: DirectoryNodeDeps,
  mountPoint: string,
  context: CallContext,
): Promise<string | undefined> {
  try {
    const ask = (limited: CallContext) => deps.filesystems.stats(mountPoint, limited);
    await withDeadline(deps.clock, context, silenceMs, "get an answer", ask);
    return undefined;
  } catch (error) {
    context.signal.throwIfAborted();
    if (!VolumeError.is(error)) throw error;
    return messageOf(error);
  }
}
