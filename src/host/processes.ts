import { endsWithin } from "../async/waiting.ts";
import { KeyedQueue } from "../async/keyed_queue.ts";
import { VolumeError } from "../volume/errors.ts";
import { unheard } from "../volume/ports/event_listener.ts";
import type { NodeEvents } from "../volume/ports/node_events.ts";
import type { Clock } from "../volume/ports/system.ts";
import { type Spawned, spawnProcess, type ToolResult } from "./spawn.ts";
import { packageOf, systemToolPaths, type ToolName, type ToolPaths } from "./tools.ts";

/** How a tool is run. */
export interface RunOptions {
  readonly args: readonly string[];
  /** Ends the run: the child is killed, unless it must finish. */
  readonly signal: AbortSignal;
  /** Its subject, a device or a path: a second run of the same tool on it waits until the first one has ended. */
  readonly subject: string;
  /** @default {60000} Ignored for a tool that must finish. */
  readonly timeoutMs?: number;
  /**
   * The child is never killed, and the promise settles only when it has ended: killing mkfs, fsck, resize or mount
   * halfway does more harm than waiting.
   *
   * @default {false}
   */
  readonly mustFinish?: boolean;
  /** The tool's standard input. @default {none} */
  readonly input?: string;
  /** Called when the child was killed and goes on, before the promise rejects; `ended` resolves when it ends at last. */
  readonly onLeft?: (ended: Promise<void>) => void;
}

/** Runs the tools of the closed list. */
export interface Processes {
  /**
   * Runs a tool to its end, whatever its exit code.
   *
   * @throws {VolumeError} precondition when the tool is not installed; the signal's reason when it was aborted;
   *   deadline when the time is over; unavailable when an earlier run of the tool still hangs on the same subject
   */
  run(tool: ToolName, options: RunOptions): Promise<ToolResult>;
}

/** Options of {@linkcode SystemProcesses}. */
export interface SystemProcessesOptions {
  readonly clock: Clock;
  /** @default {systemToolPaths} */
  readonly toolPaths?: ToolPaths;
  /** How long a killed child may take to disappear. @default {2000} */
  readonly killGraceMs?: number;
  /** Receives how long tools run, and every child that was killed and still exists. @default {unheard} */
  readonly events?: NodeEvents;
  /** Starts a process; tests pass another function. @default {spawnProcess} */
  readonly spawn?: (path: string, args: readonly string[], input?: string) => Spawned;
}

/**
 * The machine's processes.
 *
 * A process that hangs in the kernel cannot be killed, only left behind: at most one child of a tool on a subject.
 * However many volumes are dead, the next one's tools are run. A tool that hangs does not block another tool on its
 * subject: a mount that does not answer can still be unmounted.
 */
export class SystemProcesses implements Processes {
  readonly #options: Required<SystemProcessesOptions>;
  readonly #located = new Map<ToolName, string>();
  readonly #queue: KeyedQueue;

  constructor(options: SystemProcessesOptions) {
    this.#options = {
      toolPaths: systemToolPaths,
      killGraceMs: 2_000,
      events: unheard,
      spawn: spawnProcess,
      ...options,
    };
    this.#queue = new KeyedQueue(options.clock);
  }

  /** Children that were killed and still exist, because they hang in the kernel. */
  get hanging(): number {
    return this.#queue.hanging;
  }

  async run(tool: ToolName, options: RunOptions): Promise<ToolResult> {
    options.signal.throwIfAborted();
    // The lock of its volume prevents a second one. Waiting for a turn could be given up, and this run must not be.
    if (options.mustFinish) return await this.#spawn(tool, options).result;
    const { signal, subject, timeoutMs = 60_000 } = options;
    return await this.#queue.run(`${tool} on ${subject}`, { signal, timeoutMs }, () => {
      const child = this.#spawn(tool, options);
      return { result: child.result, giveUp: () => this.#kill(tool, child, options.onLeft) };
    });
  }

  /** A child that waits in the kernel for a dead device cannot be killed: it is left behind. */
  async #kill(tool: ToolName, child: Spawned, onLeft: RunOptions["onLeft"]): Promise<void> {
    child.kill();
    const { clock, killGraceMs, events } = this.#options;
    const gone = child.result.then(() => {}, () => {});
    if (await endsWithin(clock, killGraceMs, gone)) return;
    child.abandon();
    onLeft?.(gone);
    events.occurred({ kind: "operation-hung", operation: tool });
  }

  #spawn(tool: ToolName, options: RunOptions): Spawned {
    const known = this.#located.get(tool);
    const candidates = known === undefined ? this.#options.toolPaths[tool] : [known];
    for (const path of candidates) {
      try {
        const beganMs = this.#options.clock.monotonicMs();
        const child = this.#options.spawn(path, options.args, options.input);
        this.#located.set(tool, path);
        return this.#timed(child, tool, beganMs);
      } catch (error) {
        // A path that was missing when the process started is not permitted either.
        if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotCapable) continue;
        throw error;
      }
    }
    this.#located.delete(tool);
    throw new VolumeError(
      "precondition",
      `Cannot run ${tool} because it is not installed, or was not when this process started: ` +
        `package=${packageOf(tool)} paths=${candidates.join(",")}`,
    );
  }

  /** Reports once that the child ended, or was abandoned. */
  #timed(child: Spawned, tool: ToolName, beganMs: number): Spawned {
    const { clock, events } = this.#options;
    let isOver = false;
    const end = () => {
      if (isOver) return;
      isOver = true;
      events.occurred({ kind: "tool-ran", tool, seconds: (clock.monotonicMs() - beganMs) / 1000 });
    };
    return {
      result: child.result.finally(end),
      kill: () => child.kill(),
      abandon: () => {
        child.abandon();
        end();
      },
    };
  }
}

/** The path of this process's descriptor, which a tool got for a device. */
const descriptorPath = /\/proc\/[0-9]+\/fd\/[0-9]+/g;

/**
 * The output of a tool in one line, for the end of an error message. Once a device is closed, the path of its descriptor leads
 * to the next one: a person who repairs what a tool has named would write to another volume.
 */
export function complaint(result: ToolResult): string {
  const said = (result.stderr.trim() || result.stdout.trim()).replaceAll(descriptorPath, "DEVICE")
    .split("\n").map((line) => line.trim()).join("; ");
  return `exit=${result.code}${said === "" ? "" : ` output=${said.slice(0, 400)}`}`;
}
