import { VolumeError } from "../../volume/errors.ts";
import type { DirectoryHandle } from "../../volume/model/directory/handle.ts";
import { markedDirectories, type MarkedDirectory } from "../../volume/model/directory/names.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { assertSettled } from "../../volume/rules/absence.ts";
import { assertShareUsable, getShareDisk } from "../../volume/rules/directory_share.ts";
import { type RemovalDeps, shareOf } from "./deps.ts";

type ReadDeps = Pick<RemovalDeps, "store" | "settings">;

/**
 * Checks that a directory is there. One command.
 *
 * @throws {VolumeError} not-found when it is provably not there; unavailable while its share is not mounted
 */
export async function assertDirectory(
  { store, settings }: ReadDeps,
  { path }: Pick<DirectoryHandle, "path">,
  context: CallContext,
): Promise<void> {
  const mountPoint = shareOf(settings);
  const isOnShare = path.startsWith(`/${mountPoint}/`);
  if (isOnShare) {
    const view = await store.find([path], context);
    getShareDisk(view, mountPoint);
    if (view.entries.some((entry) => entry.directory)) return;
    assertSettled(view, settings.settleMs);
  }
  throw new VolumeError("not-found", `Cannot find the directory because there is none: path=${path}`);
}

/** Free bytes of the share. One command. @throws {VolumeError} as {@linkcode assertShareUsable} */
export async function freeOnShare({ store, settings }: ReadDeps, context: CallContext): Promise<bigint> {
  const view = await store.find([settings.basePaths[0]!], context);
  return assertShareUsable(view, shareOf(settings), settings.settleMs).freeBytes;
}

/**
 * Every directory of this cluster, live or deleted. One command for each base path.
 *
 * @throws {VolumeError} unavailable while the share is not mounted
 */
export async function listMarked(
  { store, settings }: ReadDeps,
  context: CallContext,
): Promise<readonly MarkedDirectory[]> {
  const paths = new Set<string>();
  for (const folder of settings.basePaths) {
    const view = await store.list(folder, settings.cluster, context);
    getShareDisk(view, shareOf(settings));
    for (const { path, directory } of view.entries) if (directory) paths.add(path);
  }
  return markedDirectories([...paths], settings.cluster);
}
