/** How long a program may take, in milliseconds: the first run downloads. */
const LIMIT_MS = 5 * 60_000;

/**
 * Runs a program to its end, and returns what it printed.
 *
 * @throws {Error} with its complaints when it fails
 */
export async function run(program: string, args: readonly string[]): Promise<string> {
  return new TextDecoder().decode(await runForBytes(program, args));
}

/**
 * The same, for output that is no text.
 *
 * @throws {Error} with its complaints when it fails
 */
export async function runForBytes(
  program: string,
  args: readonly string[],
): Promise<Uint8Array<ArrayBuffer>> {
  const { success, stdout, stderr } = await new Deno.Command(program, {
    args: [...args],
    env: { LC_ALL: "C" },
    stdin: "null",
    signal: AbortSignal.timeout(LIMIT_MS),
  }).output();
  if (!success) throw new Error(`${program} failed: ${new TextDecoder().decode(stderr).trim()}`);
  return stdout;
}
