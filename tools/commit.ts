/**
 * The commit of a folder, with `-dirty` when something in it was changed.
 *
 * @param given what it is without git, as in a build of the Dockerfile
 */
export async function commitOf(folder: string, given?: string): Promise<string> {
  const found = await git(folder, ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]);
  return found ?? (given || "unknown");
}

/**
 * The time of that commit, in seconds since the Unix epoch; 0 without git.
 *
 * @param given the value of SOURCE_DATE_EPOCH, which has priority:
 *   https://reproducible-builds.org/specs/source-date-epoch
 * @throws {Error} when that is no number
 */
export async function secondsOf(folder: string, given?: string): Promise<number> {
  const text = given || await git(folder, ["log", "-1", "--format=%ct"]) || "0";
  if (!/^\d{1,12}$/.test(text)) {
    throw new Error(`SOURCE_DATE_EPOCH must be seconds, not ${JSON.stringify(text)}`);
  }
  return Number(text);
}

async function git(folder: string, args: readonly string[]): Promise<string | undefined> {
  try {
    const { success, stdout } = await new Deno.Command("git", {
      args: ["-C", folder, ...args],
      stdin: "null",
      stderr: "null",
    }).output();
    return success ? new TextDecoder().decode(stdout).trim() : undefined;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
