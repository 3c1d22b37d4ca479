import { endsWithin } from "../async/waiting.ts";
import { concatenate } from "./bytes.ts";
import { systemClock } from "./clock.ts";

/** The result of a tool. */
export interface ToolResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output as bytes. */
  readonly bytes: Uint8Array;
}

/** A child process that was started. */
export interface Spawned {
  /** Its result. Never settles while it hangs in the kernel. */
  readonly result: Promise<ToolResult>;
  /** Sends SIGKILL. OK when the process is gone. */
  kill(): void;
  /** Lets this process end without waiting for the child. */
  abandon(): void;
}

/** Output beyond this is dropped: no tool has more useful output. */
const maxOutputBytes = 8 * 1024 * 1024;

/** Grandchildren may hold pipes open: after the child has ended, the reading ends with a pause of this length. */
const silenceMs = 250;

/**
 * Starts a process with a fixed, minimal environment: inherited `LD_` variables make a scoped run permission refuse
 * every spawn, and a locale would change the tools' output.
 *
 * @throws {Deno.errors.NotFound} when there is no such file
 * @throws {Deno.errors.NotCapable} when it may not be run
 */
export function spawnProcess(path: string, args: readonly string[], input?: string): Spawned {
  const child = new Deno.Command(path, {
    args: [...args],
    clearEnv: true,
    // dmsetup would wait for a udev that does not exist here, or belongs to the host.
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C", DM_DISABLE_UDEV: "1" },
    cwd: "/",
    stdin: input === undefined ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const fed = input === undefined ? undefined : feed(child, input);
  return {
    result: Promise.all([collect(child), fed]).then(([result]) => result),
    kill() {
      try {
        child.kill("SIGKILL");
      } catch (error) {
        if (!(error instanceof TypeError)) throw error; // It has ended already.
      }
    },
    abandon: () => child.unref(),
  };
}

async function feed(child: Deno.ChildProcess, input: string): Promise<void> {
  const writer = child.stdin.getWriter();
  try {
    await writer.write(new TextEncoder().encode(input));
    await writer.close();
  } catch (error) {
    // It ended without reading its input, and its result says why. Some runtimes have closed the stream by then.
    if (!(error instanceof Deno.errors.BrokenPipe || error instanceof TypeError)) throw error;
  }
}

async function collect(child: Deno.ChildProcess): Promise<ToolResult> {
  const stdout = new Output(child.stdout);
  const stderr = new Output(child.stderr);
  const status = await child.status;
  const [bytes, said] = await Promise.all([stdout.drain(), stderr.drain()]);
  return { code: status.code, bytes, stdout: decode(bytes), stderr: decode(said) };
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

/** Reads the output of a pipe, up to a limit. */
class Output {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
  readonly #chunks: Uint8Array[] = [];
  readonly #ended: Promise<void>;
  #kept = 0;

  constructor(stream: ReadableStream<Uint8Array<ArrayBuffer>>) {
    this.#reader = stream.getReader();
    this.#ended = this.#read();
  }

  async #read(): Promise<void> {
    for (;;) {
      const { done, value } = await this.#reader.read();
      if (done) return;
      if (this.#kept + value.length > maxOutputBytes) continue;
      this.#chunks.push(value);
      this.#kept += value.length;
    }
  }

  /** Reads until the pipe is closed, or silent after the child's end. */
  async drain(): Promise<Uint8Array> {
    // Two rounds, because a busy event loop runs timers before it reads pipes.
    for (let silentCycles = 0; silentCycles < 2;) {
      const before = this.#kept;
      if (await endsWithin(systemClock, silenceMs, this.#ended)) break;
      silentCycles = this.#kept === before ? silentCycles + 1 : 0;
    }
    await this.#reader.cancel();
    return concatenate(this.#chunks, this.#kept);
  }
}
