import { withDeadline } from "../../async/deadline.ts";
import { type DirectoryContext, pathInExport } from "../../volume/model/directory/context.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { DirectoryNodeDeps } from "./deps.ts";

/** How long a server may take to answer. */
const answerMs = 10_000;

/**
 * Returns the path of a directory below its mounted share, proven to be a directory that no link leads to. A pod must
 * not start on a share that does not answer, or whose directory was deleted.
 *
 * @throws {VolumeError} not-found when there is no such directory; unavailable when the server does not answer;
 *   precondition when the path leads over a link or to no directory
 */
export async function directoryInShare(
  deps: DirectoryNodeDeps,
  directory: DirectoryContext,
  mountPoint: string,
  context: CallContext,
): Promise<string> {
  const named = `path=${directory.path} export=${directory.export}`;
  const late = new VolumeError(
    "unavailable",
    `Cannot publish the volume because its server does not answer: ${named}`,
  );
  return await withDeadline(deps.clock, context, answerMs, late, async (limited) => {
    const inside = pathInExport(directory);
    const path = inside === "" ? mountPoint : `${mountPoint}/${inside}`;
    const real = await deps.nfs.realPath(path, limited);
    if (real === undefined) {
      throw new VolumeError(
        "not-found",
        `Cannot publish the volume because the server has no such directory: ${named}`,
      );
    }
    if (real !== path) {
      throw new VolumeError(
        "precondition",
        `Cannot publish the volume because its path leads over a symbolic link: ${named}`,
      );
    }
    const info = await deps.paths.info(path, limited);
    if (info?.kind === "directory") return path;
    throw new VolumeError(
      "precondition",
      `Cannot publish the volume because its path is no directory: ${named} is=${info?.kind ?? "gone"}`,
    );
  });
}
