/** How long a program of the host may take by default, in milliseconds; a download is the slowest. */
const usualLimitMs = 5 * 60_000;

/** How {@linkcode hostOutput} runs a program. */
export interface HostCommand {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  readonly input?: Uint8Array;
  readonly signal?: AbortSignal;
  /** How long it may take. */
  readonly limitMs?: number;
}

/**
 * Runs a program of the host to its end, and returns what it printed.
 *
 * @throws {Error} with its complaints when it fails
 */
export async function hostBytes(
  program: string,
  args: readonly string[],
  options: HostCommand = {},
): Promise<Uint8Array<ArrayBuffer>> {
  const limit = AbortSignal.timeout(options.limitMs ?? usualLimitMs);
  const child = new Deno.Command(findProgram(program) ?? program, {
    args: [...args],
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    env: { LC_ALL: "C", ...options.env },
    stdin: options.input === undefined ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
    signal: options.signal === undefined ? limit : AbortSignal.any([limit, options.signal]),
  }).spawn();
  const fed = options.input === undefined ? undefined : feed(child, options.input);
  const { success, code, stdout, stderr } = await child.output();
  await fed;
  if (success) return stdout;
  throw new Error(
    `${program} ${args.join(" ")} ended with ${code}: ${new TextDecoder().decode(stderr).trim()}`,
  );
}

/** Like {@linkcode hostBytes}, as text. */
export async function hostOutput(
  program: string,
  args: readonly string[],
  options?: HostCommand,
): Promise<string> {
  return new TextDecoder().decode(await hostBytes(program, args, options));
}

async function feed(child: Deno.ChildProcess, input: Uint8Array): Promise<void> {
  const writer = child.stdin.getWriter();
  try {
    await writer.write(input);
    await writer.close();
  } catch (error) {
    // A program that fails early reads no more input, and reports the reason itself.
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
  }
}

/** The path of a program of the host, also in the folders of root's programs; undefined when it is missing. */
export function findProgram(name: string): string | undefined {
  return ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/bin"].map((folder) => `${folder}/${name}`)
    .find(isFile);
}

/** Whether Go is in the folders of PATH. */
export function goIsHere(): boolean {
  return (Deno.env.get("PATH") ?? "").split(":").some((folder) => folder !== "" && isFile(`${folder}/go`));
}

/** Whether the path is a regular file; links are followed. */
export function isFile(path: string): boolean {
  return infoOf(path)?.isFile ?? false;
}

/** Whether the path is a folder; links are followed. */
export function isFolder(path: string): boolean {
  return infoOf(path)?.isDirectory ?? false;
}

/** Whether there is anything at the path; links are followed. */
export function isThere(path: string): boolean {
  return infoOf(path) !== undefined;
}

function infoOf(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
