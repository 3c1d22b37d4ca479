import type { Clock } from "../../volume/ports/system.ts";
import type { ReportedStep } from "../../router_profile/report/report.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";

/** Why a step cannot be shown on this router, or from this machine. */
export class NotHere extends Error {
  override readonly name = "NotHere";
  /** Whether what builds on the step cannot be shown either. */
  readonly endsGroup: boolean;

  constructor(message: string, endsGroup = false) {
    super(message);
    this.endsGroup = endsGroup;
  }
}

/** One step: what is promised, and what shows it. */
export interface Step {
  readonly step: string;
  /** The promise, in the words of promises.md. */
  readonly promise: string;
  /**
   * Returns what it measured, for people.
   *
   * @throws {NotHere} when it cannot be shown here; any other error breaks the promise
   */
  run(): Promise<string | void>;
}

/** Steps that build on each other, and what removes whatever they leave. */
export interface StepGroup {
  readonly steps: readonly Step[];
  /** Called in any case. */
  end?(): Promise<void>;
}

/** Makes the steps of a group, whose names begin with the group's. */
export function stepOf(group: string): (name: string, promise: string, run: Step["run"]) => Step {
  return (name, promise, run) => ({ step: `${group}: ${name}`, promise, run });
}

/** What runs steps. */
export interface StepRunner {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Commands to the router so far. */
  countCommands(): number;
  /** Called before each step. */
  begin(step: string): void;
  /** Called with each result, and with the error itself, which may name what the report must not. */
  report(row: ReportedStep, error?: unknown): void;
}

/**
 * Runs steps, each once. What builds on a step that failed or is not here cannot be shown either.
 *
 * @throws {VolumeError} cancelled when it was stopped; the group was ended
 */
export async function runGroup(group: StepGroup, runner: StepRunner): Promise<void> {
  let missing: string | undefined;
  try {
    for (const one of group.steps) {
      runner.signal.throwIfAborted();
      missing = await runStep(one, missing, runner) ?? missing;
    }
  } finally {
    await group.end?.();
  }
}

/** Returns why what builds on it cannot be shown; undefined when it can. */
async function runStep(
  { step, promise, run }: Step,
  missing: string | undefined,
  { clock, countCommands, begin, report, signal }: StepRunner,
): Promise<string | undefined> {
  const [startedMs, sent] = [clock.monotonicMs(), countCommands()];
  const row = (result: ReportedStep["result"], note: string): ReportedStep => {
    const ms = Math.round(clock.monotonicMs() - startedMs);
    return { step, promise, result, note, ms, commands: countCommands() - sent };
  };
  if (missing !== undefined) {
    report(row("not here", missing));
    return missing;
  }
  begin(step);
  try {
    report(row("pass", await run() ?? ""));
    return undefined;
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (error instanceof NotHere) {
      report(row("not here", error.message));
      return error.endsGroup ? error.message : undefined;
    }
    report(row("fail", messageOf(error)), error);
    return `it builds on a step that failed: ${step}`;
  }
}

/** Throws unless a promise holds. @throws {VolumeError} internal */
export function assertHolds(holds: boolean, what: string): asserts holds {
  if (!holds) throw new VolumeError("internal", `Cannot confirm the promise because ${what}`);
}
