/** How long a program of the host may take, in milliseconds; a download is the slowest. */
const limitMs = 5 * 60_000;

/** How {@linkcode hostOutput} runs a program. */
export interface HostCommand {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  readonly input?: Uint8Array;
  readonly signal?: AbortSignal;
}

/** Runs a program of the host and returns what it printed; throws with its complaints when it fails. */
export async function hostBytes(
  program: string,
  args: readonly string[],
  options: HostCommand = {},
): Promise<Uint8Array> {
  const limit = AbortSignal.timeout(limitMs);
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
  try {
    return Deno.statSync(path).isFile;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
