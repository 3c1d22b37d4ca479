import { VolumeError } from "../volume/errors.ts";

// Operations on a folder of a share. Each may wait for its server: they run on threads that the caller may leave behind.

/** Whether nothing is in a folder. Opening it makes the client ask the server for its attributes, too. */
export async function isEmptyFolder(path: string): Promise<boolean> {
  return await refusable("read the content", path, isEmpty(path));
}

async function isEmpty(path: string): Promise<boolean> {
  for await (const _ of Deno.readDir(path)) return false;
  return true;
}

/** Sets the time of a folder's last change, in milliseconds since the Unix epoch. */
export async function setModified(path: string, modifiedMs: number): Promise<void> {
  const at = new Date(modifiedMs);
  await refusable("set the time", path, Deno.utime(path, at, at));
}

/** Changes the owner and the group, as far as they are given. */
export async function setOwner(
  path: string,
  uid: number | undefined,
  gid: number | undefined,
): Promise<void> {
  await refusable("set the owner", path, Deno.chown(path, uid ?? null, gid ?? null));
}

/** Changes the permissions. */
export async function setMode(path: string, mode: number): Promise<void> {
  await refusable("set the permissions", path, Deno.chmod(path, mode));
}

/** A server that does not know an owner answers EINVAL; one that shares a folder only for reading, EROFS. */
const refusals: ReadonlySet<unknown> = new Set([
  "EPERM",
  "EACCES",
  "EROFS",
  "EINVAL",
  "EOPNOTSUPP",
  "ENOTSUP",
]);

/**
 * Waits for a change or a read of a folder.
 *
 * @throws {VolumeError} precondition when the server refuses it for good
 */
export async function refusable<T>(what: string, path: string, attempt: Promise<T>): Promise<T> {
  try {
    return await attempt;
  } catch (error) {
    if (!(error instanceof Error && "code" in error && refusals.has(error.code))) throw error;
    throw new VolumeError(
      "precondition",
      `Cannot ${what} of ${path} because the server refuses: ${error.message}`,
      { cause: error },
    );
  }
}
