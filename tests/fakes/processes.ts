import type { ToolResult } from "../../src/host/spawn.ts";
import type { Processes, RunOptions } from "../../src/host/processes.ts";
import type { ToolName } from "../../src/host/tools.ts";

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

  async run(tool: ToolName, options: RunOptions): Promise<ToolResult> {
    options.signal.throwIfAborted();
    const run = { tool, options, line: [tool, ...options.args].join(" ") };
    this.runs.push(run);
    return toolResult(await this.script(run) ?? 0);
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
