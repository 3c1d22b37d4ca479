import type { AccessMode } from "../../volume/model/capabilities.ts";
import {
  type DirectoryContext,
  parseDirectoryContext,
  pathInExport,
} from "../../volume/model/directory/context.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { isNfs, serverPath, usersOf } from "../../volume/rules/nfs_mounts.ts";
import { mountsAt } from "../../volume/rules/mounts_at.ts";
import { withUndo } from "../stage/undo.ts";
import type { DirectoryNodeDeps } from "./deps.ts";
import { giveOwner } from "./new_directory.ts";
import { parseNfsOptions } from "./nfs_options.ts";
import type { SharedMounts } from "./shared_mounts.ts";

/** The fields of NodeStageVolume. */
export interface StageDirectoryRequest {
  readonly volumeId: string;
  readonly stagingPath: string;
  readonly mode: AccessMode;
  readonly mountFlags: readonly string[];
  readonly volumeContext: Readonly<Record<string, string>>;
}

/**
 * Stages a directory: mounts its share unless it is mounted, and binds the directory to the staging path. A link in the
 * share that leads elsewhere is refused, before the bind and after it.
 *
 * @throws {VolumeError} not-found when there is no such directory; unavailable when no server answers; precondition
 *   when the path leads over a link or to no directory; exists-incompatible when something else is staged there
 */
export async function stageDirectory(
  deps: DirectoryNodeDeps,
  shares: SharedMounts,
  request: StageDirectoryRequest,
  context: CallContext,
): Promise<void> {
  const directory = parseDirectoryContext(request.volumeContext);
  const { options } = parseNfsOptions(request.mountFlags);
  const share = { addresses: directory.addresses, export: directory.export, options };
  const staging = await deps.paths.mountPoint(request.stagingPath);
  await shares.using(share, context, async (mountPoint) => {
    await withUndo(deps.clock, context, async (undo) => {
      const isStaged = async () => {
        const table = await deps.nfs.table();
        return assertStaged(table, {
          request,
          directory,
          staging,
          mountPoint,
          folder: await shares.folder(),
        });
      };
      if (!await isStaged()) {
        const source = await getDirectory(deps, directory, mountPoint, context);
        await deps.paths.makeFolder(request.stagingPath, 0o750);
        undo.add("unmount", (undoing) => deps.nfs.unmount(staging, undoing));
        await deps.nfs.bind(source, staging, context);
        if (!await isStaged()) throw lost(request);
      }
      await giveOwner(deps, staging, directory, context);
    });
  });
}

interface Expected {
  readonly request: StageDirectoryRequest;
  readonly directory: DirectoryContext;
  readonly staging: string;
  readonly mountPoint: string;
  readonly folder: string;
}

/** Whether the directory is staged; throws when something else is. */
function assertStaged(
  table: Parameters<typeof mountsAt>[0],
  { request, directory, staging, mountPoint, folder }: Expected,
): boolean {
  const top = mountsAt(table, staging).at(-1);
  if (top === undefined) return false;
  const isOfShare = usersOf(table, mountPoint, folder).includes(top);
  if (isNfs(top) && isOfShare && serverPath(top) === directory.path) return true;
  throw new VolumeError(
    "exists-incompatible",
    `Cannot stage the volume because something else is mounted at its staging path: volume=${request.volumeId} ` +
      `path=${request.stagingPath} type=${top.filesystem} source=${top.source} wanted=${directory.path}`,
  );
}

/** The directory's path below the mount, proven to be a directory that no link leads to. */
async function getDirectory(
  deps: DirectoryNodeDeps,
  directory: DirectoryContext,
  mountPoint: string,
  context: CallContext,
): Promise<string> {
  const inside = pathInExport(directory);
  const path = inside === "" ? mountPoint : `${mountPoint}/${inside}`;
  const named = `path=${directory.path} export=${directory.export}`;
  const real = await deps.nfs.realPath(path, context);
  if (real === undefined) {
    throw new VolumeError(
      "not-found",
      `Cannot stage the volume because the server has no such directory: ${named}`,
    );
  }
  if (real !== path) {
    throw new VolumeError(
      "precondition",
      `Cannot stage the volume because its path leads over a symbolic link: ${named}`,
    );
  }
  const info = await deps.paths.info(path, context);
  if (info?.kind === "directory") return path;
  throw new VolumeError(
    "precondition",
    `Cannot stage the volume because its path is no directory: ${named} is=${info?.kind ?? "gone"}`,
  );
}

function lost({ volumeId, stagingPath }: StageDirectoryRequest): VolumeError {
  return new VolumeError(
    "unavailable",
    `Cannot find the mount that was just made: volume=${volumeId} path=${stagingPath}`,
  );
}
