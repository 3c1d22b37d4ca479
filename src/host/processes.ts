import { VolumeError } from "../volume/errors.ts";
import type { Clock } from "../volume/ports.ts";
import { type Spawned, spawnProcess } from "./spawn.ts";
import { packageOf, systemToolPaths, type ToolName, type ToolPaths } from "./tools.ts";

/** How a tool is run. */
export interface RunOptions {
  readonly args: readonly string[];
  /** Ends the run: the child is killed, unless it must finish. */
  readonly signal: AbortSignal;
  /** What it works on, a device or a path: so that what hangs on one volume is not piled up. */
  readonly subject: string;
  /** @default {60000} Ignored for what must finish. */
  readonly timeoutMs?: number;
  /**
   * The child is never killed, and the promise settles only when it has ended: killing mkfs, fsck, resize or mount
   * half-way does more harm than waiting.
   *
   * @default {false}
   */
  readonly mustFinish?: boolean;
}

/** How a tool ended. */
export interface ToolResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output as it came. */
  readonly bytes: Uint8Array;
}

/** Runs the tools of the closed list. */
export interface Processes {
  /**
   * Runs a tool to its end, whatever its exit code.
   *
   * @throws {VolumeError} precondition when the tool is not installed; the signal's reason when it was aborted;
   * deadline when the time is over; unavailable when too many children hang already
   */
  run(tool: ToolName, options: RunOptions): Promise<ToolResult>;
}

/** Options of {@linkcode SystemProcesses}. */
export interface SystemProcessesOptions {
  readonly clock: Clock;
  /** @default {systemToolPaths} */
  readonly toolPaths?: ToolPaths;
  /** How many children may hang unkillably in the kernel before nothing more is run. @default {16} */
  readonly maxHanging?: number;
  /** How many of them on one subject, so that one dead volume leaves room for the others. @default {2} */
  readonly maxHangingOnSubject?: number;
  /** How long a killed child gets to disappear. @default {2000} */
  readonly killGraceMs?: number;
  /** Starts a process; tests hand in another. @default {spawnProcess} */
  readonly spawn?: (path: string, args: readonly string[]) => Spawned;
}

/** The machine's processes. */
export class SystemProcesses implements Processes {
  readonly #options: Required<SystemProcessesOptions>;
  readonly #located = new Map<ToolName, string>();
  readonly #hanging = new Map<string, number>();

  constructor(options: SystemProcessesOptions) {
    this.#options = {
      toolPaths: systemToolPaths,
      maxHanging: 16,
      maxHangingOnSubject: 2,
      killGraceMs: 2_000,
      spawn: spawnProcess,
      ...options,
    };
  }

  /** Children that were killed and are still there, because the kernel does not let them go. */
  get hanging(): number {
    return this.#hanging.values().reduce((sum, count) => sum + count, 0);
  }

  async run(tool: ToolName, options: RunOptions): Promise<ToolResult> {
    options.signal.throwIfAborted();
    this.#refuseIfHanging(tool, options.subject);
    const child = this.#spawn(tool, options);
    return options.mustFinish ? await child.result : await this.#runUntil(tool, child, options);
  }

  async #runUntil(tool: ToolName, child: Spawned, options: RunOptions): Promise<ToolResult> {
    const timeoutMs = options.timeoutMs ?? 60_000;
    const { promise: ended, resolve: end } = Promise.withResolvers<Error>();
    const cancelTimer = this.#options.clock.timer(timeoutMs, () => {
      end(
        new VolumeError(
          "deadline",
          `Cannot wait for ${tool} any longer: subject=${options.subject} ms=${timeoutMs}`,
        ),
      );
    });
    const onAbort = () => end(options.signal.reason);
    options.signal.addEventListener("abort", onAbort, { once: true });
    try {
      const outcome = await Promise.race([child.result, ended]);
      if (!(outcome instanceof Error)) return outcome;
      await this.#kill(child, options.subject);
      throw outcome;
    } finally {
      cancelTimer();
      options.signal.removeEventListener("abort", onAbort);
    }
  }

  /** A child that waits in the kernel for a dead device cannot be killed: it is counted until it is gone. */
  async #kill(child: Spawned, subject: string): Promise<void> {
    child.kill();
    const { promise: grace, resolve } = Promise.withResolvers<"over">();
    const cancelTimer = this.#options.clock.timer(this.#options.killGraceMs, () => resolve("over"));
    const gone = child.result.then(() => "gone" as const, () => "gone" as const);
    const outcome = await Promise.race([gone, grace]);
    cancelTimer();
    if (outcome === "gone") return;
    this.#hanging.set(subject, (this.#hanging.get(subject) ?? 0) + 1);
    child.abandon();
    void gone.then(() => this.#released(subject));
  }

  #released(subject: string): void {
    const left = (this.#hanging.get(subject) ?? 1) - 1;
    if (left === 0) this.#hanging.delete(subject);
    else this.#hanging.set(subject, left);
  }

  #refuseIfHanging(tool: ToolName, subject: string): void {
    const { maxHanging, maxHangingOnSubject } = this.#options;
    const onSubject = this.#hanging.get(subject) ?? 0;
    if (onSubject < maxHangingOnSubject && this.hanging < maxHanging) return;
    throw new VolumeError(
      "unavailable",
      `Cannot run ${tool} as earlier tools still hang in the kernel: subject=${subject} hanging=${this.hanging}`,
    );
  }

  #spawn(tool: ToolName, options: RunOptions): Spawned {
    const known = this.#located.get(tool);
    const candidates = known === undefined ? this.#options.toolPaths[tool] : [known];
    for (const path of candidates) {
      try {
        const child = this.#options.spawn(path, options.args);
        this.#located.set(tool, path);
        return child;
      } catch (error) {
        // A path that was missing when the process started is not permitted either.
        if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotCapable) continue;
        throw error;
      }
    }
    this.#located.delete(tool);
    throw new VolumeError(
      "precondition",
      `Cannot run ${tool} as it is not installed, or was not when this process started: package=${
        packageOf(tool)
      } ` +
        `paths=${candidates.join(",")}`,
    );
  }
}

/** What a tool said, in one line, for the end of an error message. */
export function complaint(result: ToolResult): string {
  const said = (result.stderr.trim() || result.stdout.trim()).split("\n").map((line) => line.trim()).join(
    "; ",
  );
  return `exit=${result.code}${said === "" ? "" : ` output=${said.slice(0, 400)}`}`;
}
