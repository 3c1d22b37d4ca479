/** The commit that a folder is at, `-dirty` when something in it was changed; `unknown` where git knows nothing of it. */
export async function commitOf(folder: string): Promise<string> {
  return await git(folder, ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]) ?? "unknown";
}

/**
 * When that commit was made, in seconds since the Unix epoch; where git knows nothing of it, the epoch itself.
 *
 * @param given what SOURCE_DATE_EPOCH says, which goes first: https://reproducible-builds.org/specs/source-date-epoch
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
