import { VolumeError } from "../../volume/errors.ts";
import type { DirectoryOwner } from "../../volume/model/directory/context.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { DirectoryNodeDeps } from "./deps.ts";

/** The time of a directory whose owner is being set: no directory gets it in another way. */
const inProgressMs = 1_000;

/** How far the two times of a finished directory lie apart at least, so that it is not new any more. */
const apartMs = 1_000;

/**
 * Gives a new directory the owner and the permissions of its StorageClass, because the router cannot.
 *
 * New is a directory that is empty and that nobody has changed since it was made: an owner or permissions that anyone
 * has set stay. What the server refuses is reported, and is no error.
 *
 * @param path where the directory is bound
 */
export async function giveOwner(
  { nfs, clock, notes }: DirectoryNodeDeps,
  path: string,
  { mode, uid, gid }: DirectoryOwner,
  context: CallContext,
): Promise<void> {
  if (mode === undefined && uid === undefined && gid === undefined) return;
  try {
    const { isEmpty, isUntouched, modifiedMs } = await nfs.readFolder(path, context);
    // A crash half way leaves the mark.
    if (!isEmpty || !(isUntouched || modifiedMs === inProgressMs)) return;
    await nfs.setModified(path, inProgressMs);
    if (uid !== undefined || gid !== undefined) await nfs.setOwner(path, { uid, gid });
    // Last, because changing the owner clears the bits setuid and setgid.
    if (mode !== undefined) await nfs.setMode(path, mode);
    await nfs.setModified(path, clock.now() - apartMs);
  } catch (error) {
    if (!VolumeError.is(error, "precondition")) throw error;
    notes.warn("a directory keeps the owner and permissions that the server gave it", {
      path,
      reason: error.message,
    });
  }
}
