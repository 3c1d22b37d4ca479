import { formatDirectoryHandle } from "../../volume/model/directory/handle.ts";
import { directoryNameFor, markedName, pathBeforeDeletion } from "../../volume/model/directory/names.ts";
import type { DirectoryParameters } from "../../volume/model/directory/parameters.ts";
import { assertSizeRange, formatBytes, type SizeRange } from "../../volume/model/sizes.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { StoredFile } from "../../volume/model/inventory.ts";
import type { DirectoryView } from "../../volume/ports/directory_store.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { assertShareUsable } from "../../volume/rules/directory_share.ts";
import { type DirectoryDeps, shareOf } from "./deps.ts";

/** A request for a directory. */
export interface NewDirectory {
  /** The CSI name. */
  readonly name: string;
  readonly range: SizeRange;
  readonly parameters: DirectoryParameters;
}

/** A directory that is there. */
export interface CreatedDirectory {
  readonly handle: string;
  readonly path: string;
  /** What was asked for; nothing keeps a directory from growing beyond it. */
  readonly capacityBytes: bigint;
}

/**
 * Makes a directory, and the folders above it that are missing. The same request leads to the same directory, whatever
 * size it asks for: a directory has none. Two commands, and one for each missing folder.
 *
 * @throws {VolumeError} busy while an earlier one of that path may still be deleted; invalid when the folder is missing and
 *   may not be made; exhausted when more is asked for than the share has free; precondition when the share is not fit for
 *   it; exists-incompatible when a file is in the way
 */
export async function createDirectory(
  deps: DirectoryDeps,
  { name, range, parameters }: NewDirectory,
  context: CallContext,
): Promise<CreatedDirectory> {
  assertSizeRange(range);
  const own = directoryNameFor(name);
  const { folder, addresses } = parameters;
  const path = `${folder}/${markedName(own, deps.settings.cluster)}`;
  const handleOn = (disk: string) => formatDirectoryHandle(addresses, disk, { path, name: own });
  // One of an impossible form is refused before the router is asked.
  handleOn("");
  if (deps.inDoubt.wasSent(path, "")) throw mayStillBeDeleted(path);
  const folders = foldersOf(folder);
  // A directory that was deleted since another controller led is kept that long, so that this shows.
  const isSuspect = deps.inDoubt.othersMayStillApply(path, "");
  const view = await deps.store.find([...folders, path], context, isSuspect ? path : undefined);
  const { freeBytes, filesystemUuid } = assertShareUsable(
    view,
    shareOf(deps.settings),
    deps.settings.settleMs,
  );
  const missing = folders.filter((one) => directoryAt(view, one) === undefined);
  if (missing.length > 0 && !parameters.makesFolder) throw missingFolder(missing[0]!, folder);
  if (directoryAt(view, path) === undefined) {
    if (view.entries.some((entry) => isDeletedOf(entry.path, path))) throw mayStillBeDeleted(path);
    assertRoom(range, freeBytes);
    for (const one of [...missing, path]) await make(deps, one, context);
  }
  return { handle: handleOn(filesystemUuid), path, capacityBytes: range.requiredBytes };
}

function isDeletedOf(path: string, original: string): boolean {
  return path !== original && pathBeforeDeletion(path) === original;
}

/** The router would rename the new directory, and the background remove it with all that it holds then. */
function mayStillBeDeleted(path: string): VolumeError {
  return new VolumeError(
    "busy",
    `Cannot create the directory because a recent deletion of it may still happen: path=${path}; try again in some ` +
      "minutes",
  );
}

async function make({ store }: DirectoryDeps, path: string, context: CallContext): Promise<void> {
  const { after, refusal } = await store.make(path, context);
  if (directoryAt(after, path) !== undefined) return;
  const reason = refusal === undefined
    ? "it is not there after the router has made it"
    : `the router refused: ${refusal}`;
  throw new VolumeError("unavailable", `Cannot create the directory because ${reason}: path=${path}`);
}

/** Every folder below the share down to this one. */
function foldersOf(folder: string): string[] {
  const segments = folder.split("/").slice(1);
  return segments.slice(1).map((_, at) => `/${segments.slice(0, at + 2).join("/")}`);
}

function directoryAt({ entries }: Pick<DirectoryView, "entries">, path: string): StoredFile | undefined {
  const found = entries.find((entry) => entry.path === path);
  if (found === undefined || found.directory) return found;
  throw new VolumeError(
    "exists-incompatible",
    `Cannot create the directory because a file of that name is there: path=${path}`,
  );
}

function missingFolder(missing: string, folder: string): VolumeError {
  const part = missing === folder ? "that folder itself is missing" : `its parent is missing: ${missing}`;
  return new VolumeError(
    "invalid",
    `Cannot create the directory because pathType is Directory, and ${part}: path=${folder}; make it, or use ` +
      "pathType DirectoryOrCreate",
  );
}

/** No quota holds a directory to its size; one that could never have it is refused all the same. */
function assertRoom({ requiredBytes }: SizeRange, freeBytes: bigint): void {
  if (requiredBytes <= freeBytes) return;
  throw new VolumeError(
    "exhausted",
    "Cannot create the directory because the share has no room for it: " +
      `needs ${formatBytes(requiredBytes)}, ${formatBytes(freeBytes)} free`,
  );
}
