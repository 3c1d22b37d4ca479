import { VolumeError } from "../volume/errors.ts";

// Operations on a folder of a share. Each may wait for its server: they run on threads that the caller may leave behind.

/** Whether nothing is in a folder. Opening it makes the client ask the server for its attributes, too. */
export async function isEmptyFolder(path: string): Promise<boolean> {
  for await (const _ of Deno.readDir(path)) return false;
  return true;
}

/** Sets the time of a folder's last change, in milliseconds since the Unix epoch. */
export async function setModified(path: string, modifiedMs: number): Promise<void> {
  const at = new Date(modifiedMs);
  await refusable("time", path, Deno.utime(path, at, at));
}

/** Changes the owner and the group, as far as they are given. */
export async function setOwner(
  path: string,
  uid: number | undefined,
  gid: number | undefined,
): Promise<void> {
  await refusable("owner", path, Deno.chown(path, uid ?? null, gid ?? null));
}

/** Changes the permissions. */
export async function setMode(path: string, mode: number): Promise<void> {
  await refusable("permissions", path, Deno.chmod(path, mode));
}

async function refusable(what: string, path: string, attempt: Promise<void>): Promise<void> {
  try {
    await attempt;
  } catch (error) {
    if (!(error instanceof Deno.errors.PermissionDenied)) throw error;
    throw new VolumeError(
      "precondition",
      `Cannot set the ${what} of ${path} because the server refuses: ${error.message}`,
      { cause: error },
    );
  }
}
