import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { permissionFlags, PERMISSIONS } from "../../tools/permissions.ts";
import { permissionsFromSources } from "../../tools/permissions_flags.ts";
import { v8Flags } from "../../tools/v8_flags.ts";

/** The project's folder. */
export const projectRoot = fileURLToPath(new URL("../..", import.meta.url));

/** The executable from `make build`. */
export const binary = join(projectRoot, "dist", "rds-csi");

/** What the tests run: the executable, or the sources with the same permissions. */
export type Subject = "binary" | "sources";

/** How long a part may take until it serves. */
const startLimitMs = 30_000;
/** How long a part may take to end by itself. */
const stopLimitMs = 30_000;

/** One process of `rds-csi`, whose output goes to its own file. */
export interface Part {
  readonly pid: number;
  readonly args: readonly string[];
  /** Waits until `test` returns that it serves, calling it every `everyMs`. */
  ready(test: () => Promise<boolean>, everyMs?: number, signal?: AbortSignal): Promise<void>;
  /** Sends SIGTERM, and SIGKILL if it does not end by itself. Returns what was wrong; a second call returns nothing. */
  stop(): Promise<readonly string[]>;
  /** SIGKILL. */
  kill(): Promise<void>;
  /** Sends it a signal, such as SIGSTOP. */
  signal(signal: Deno.Signal): void;
  /** Resolves with its exit code when it has ended for any reason. */
  readonly ended: Promise<number>;
  /** Resident memory. */
  residentBytes(): Promise<number>;
  /** How many files and sockets it has open. */
  openFiles(): number;
  /** All that it has printed so far. */
  printed(): Promise<string>;
  /** The end of its output. */
  tail(): Promise<string>;
}

/** Starts `rds-csi COMMAND` with its output in `folder`, and with these variables besides those of this process. */
export function startPart(
  subject: Subject,
  command: string,
  folder: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Part {
  return startProgram(command, [...programOf(subject), command], folder, args, env);
}

/** Starts any program with its output in `folder`. @param name its name in messages, and of its log */
export function startProgram(
  name: string,
  [program = "", ...before]: readonly string[],
  folder: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Part {
  const log = join(folder, `${name}-${crypto.randomUUID().slice(0, 8)}.log`);
  // The shell's redirection keeps the log complete even when this process dies.
  const child = new Deno.Command("/bin/sh", {
    args: ["-c", 'log=$1; shift; exec "$@" >"$log" 2>&1', "sh", log, program, ...before, ...args],
    cwd: projectRoot,
    stdin: "null",
    env,
  }).spawn();
  return new ChildPart(name, log, args, child);
}

/** The words that run `rds-csi`, before its own arguments. */
export function programOf(subject: Subject): readonly string[] {
  return subject === "binary" ? [binary] : [Deno.execPath(), ...sourceArgs()];
}

function sourceArgs(): string[] {
  const permissions = permissionFlags(permissionsFromSources(PERMISSIONS.demo));
  return [
    "run",
    "--quiet",
    `--v8-flags=${v8Flags.join(",")}`,
    ...permissions,
    join(projectRoot, "src/main.ts"),
  ];
}

/**
 * The ports that tests serve on. They lie below those that a kernel gives to connections, because a connection of any other
 * process may take one of those before it is served on.
 */
const ports = { from: 20_000, count: 10_000 };
const takenPorts = new Set<number>();

/** A TCP port of 127.0.0.1 on which nobody listens, and that this process gets once; it may also be taken for UDP. */
export function freePort(): number {
  const port = ports.from + Math.floor(Math.random() * ports.count);
  if (takenPorts.has(port) || !isFree(port)) return freePort();
  takenPorts.add(port);
  return port;
}

function isFree(port: number): boolean {
  try {
    Deno.listen({ hostname: "127.0.0.1", port }).close();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.AddrInUse) return false;
    throw error;
  }
}

class ChildPart implements Part {
  readonly pid: number;
  readonly args: readonly string[];
  readonly #name: string;
  readonly #log: string;
  readonly #child: Deno.ChildProcess;
  readonly #end: Promise<Deno.CommandStatus>;
  #ended: Deno.CommandStatus | undefined;
  #stopped = false;

  constructor(name: string, log: string, args: readonly string[], child: Deno.ChildProcess) {
    this.args = args;
    this.#name = name;
    this.#log = log;
    this.#child = child;
    this.pid = child.pid;
    this.#end = child.status.then((status) => this.#ended = status);
  }

  async ready(test: () => Promise<boolean>, everyMs = 50, signal?: AbortSignal): Promise<void> {
    const until = performance.now() + startLimitMs;
    while (!await test()) {
      signal?.throwIfAborted();
      if (this.#ended !== undefined) {
        throw new Error(`${this.#name} ended at its start:\n${await this.tail()}`);
      }
      if (performance.now() > until) throw new Error(`${this.#name} does not serve:\n${await this.tail()}`);
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  }

  async stop(): Promise<readonly string[]> {
    if (this.#stopped) return [];
    this.#stopped = true;
    if (this.#ended !== undefined) {
      return [`${this.#name} ended before it was stopped:\n${await this.tail()}`];
    }
    this.#child.kill("SIGTERM");
    let killed = false;
    const limit = setTimeout(() => {
      killed = true;
      this.#child.kill("SIGKILL");
    }, stopLimitMs);
    const { code } = await this.#end;
    clearTimeout(limit);
    if (killed) return [`${this.#name} did not end within ${stopLimitMs / 1000} s of SIGTERM`];
    return code === 0 ? [] : [`${this.#name} ended with exit code ${code}:\n${await this.tail()}`];
  }

  async kill(): Promise<void> {
    this.#stopped = true;
    if (this.#ended === undefined) this.#child.kill("SIGKILL");
    await this.#end;
  }

  signal(signal: Deno.Signal): void {
    this.#child.kill(signal);
  }

  get ended(): Promise<number> {
    return this.#end.then(({ code }) => code);
  }

  residentBytes(): Promise<number> {
    return residentBytes(this.#child.pid);
  }

  printed(): Promise<string> {
    return Deno.readTextFile(this.#log);
  }

  openFiles(): number {
    return [...Deno.readDirSync(`/proc/${this.#child.pid}/fd`)].length;
  }

  async tail(): Promise<string> {
    const text = await this.printed();
    return text.trimEnd().split("\n").slice(-20).join("\n");
  }
}

/** VmRSS of a process (proc_pid_status(5)); NaN when it has ended. */
export async function residentBytes(pid: number): Promise<number> {
  const status = await Deno.readTextFile(`/proc/${pid}/status`);
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? NaN) * 1024;
}
