import type { ToolResult } from "../../src/host/spawn.ts";
import type { Processes, RunOptions } from "../../src/host/processes.ts";
import type { ToolName } from "../../src/host/tools.ts";
import { endOf } from "../../src/async/waiting.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import type { Clock } from "../../src/volume/ports/system.ts";

/** The result of a scripted tool: an exit code, or more. */
export type Scripted = number | Partial<ToolResult>;

/** One recorded run. */
export interface RecordedRun {
  readonly tool: ToolName;
  readonly options: RunOptions;
  /** Tool and arguments as one line. */
  readonly line: string;
}

/** Tools that do what a test says; without a script they succeed silently. */
export class FakeProcesses implements Processes {
  readonly runs: RecordedRun[] = [];
  /** Called for every run; undefined succeeds silently. It may change the test's state. */
  script: (run: RecordedRun) => Scripted | undefined | Promise<Scripted | undefined> = () => undefined;

  /** With a clock, a run ends with its signal and its time, and its child, which no signal ends, is left behind. */
  clock: Clock | undefined;

  async run(tool: ToolName, options: RunOptions): Promise<ToolResult> {
    options.signal.throwIfAborted();
    const run = { tool, options, line: [tool, ...options.args].join(" ") };
    this.runs.push(run);
    const result = Promise.try(this.script, run);
    return toolResult(await (this.clock === undefined ? result : this.#limited(result, options)) ?? 0);
  }

  async #limited<T>(
    result: Promise<T>,
    { signal, timeoutMs = 60_000, onLeft }: RunOptions,
  ): Promise<T> {
    const { promise: over, reject } = Promise.withResolvers<never>();
    const end = (error: unknown) => {
      onLeft?.(result.then(() => {}, () => {}));
      reject(error);
    };
    const late = new VolumeError("deadline", `Cannot wait any longer: ms=${timeoutMs}`);
    const cancelTimer = this.clock!.timer(timeoutMs, () => end(late));
    const onAbort = () => end(endOf(signal));
    signal.addEventListener("abort", onAbort);
    try {
      return await Promise.race([result, over]);
    } finally {
      cancelTimer();
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** The command lines, in order. */
  get lines(): readonly string[] {
    return this.runs.map((run) => run.line);
  }
}

function toolResult(scripted: Scripted): ToolResult {
  const given = typeof scripted === "number" ? { code: scripted } : scripted;
  const stdout = given.stdout ?? "";
  return { code: 0, stderr: "", bytes: new TextEncoder().encode(stdout), ...given, stdout };
}
