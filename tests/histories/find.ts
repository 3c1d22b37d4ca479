// Usage: deno run -A tests/histories/find.ts FIRST COUNT: prints the result of the schedules of these seeds as JSON,
// see Search.
import { setImmediate } from "node:timers/promises";
import { print } from "../../tools/print.ts";
import { violations } from "./check.ts";
import type { HistoryEvent } from "./events.ts";
import { runSchedule } from "./run_schedule.ts";
import { drawSchedule } from "./draw_schedule.ts";
import { type Setting, settingOf, type Step } from "./schedule.ts";
import { shrink } from "./shrink.ts";

/** The result of a number of schedules. */
export interface Search {
  readonly schedules: number;
  readonly events: number;
  /** How often each verb got each answer, such as "publish OK". */
  readonly answers: Readonly<Record<string, number>>;
  /**
   * The first schedule that breaks a promise, reduced to the steps that it needs; the search ends there. Without steps, what
   * none of many schedules could get done.
   */
  readonly found?: {
    readonly setting: Setting;
    readonly steps: readonly Step[];
    readonly violations: readonly string[];
  };
}

/** Runs schedules until one breaks a promise. @param first the first seed */
export async function search(first: number, count: number): Promise<Search> {
  const answers: Record<string, number> = {};
  let events = 0;
  for (let seed = first; seed < first + count; seed++) {
    const setting = settingOf(seed);
    const brokenBy = async (steps: readonly Step[]) => violations(await historyOf(steps, setting));
    const drawn = drawSchedule(seed);
    const history = await historyOf(drawn, setting);
    events += history.length;
    const verbs = new Map<number, string>();
    for (const event of history) {
      if (event.kind === "call") verbs.set(event.call, event.verb);
      if (event.kind !== "answer") continue;
      const answer = `${verbs.get(event.call)} ${event.error ?? "OK"}`;
      answers[answer] = (answers[answer] ?? 0) + 1;
    }
    if (violations(history).length === 0) continue;
    const steps = await shrink(drawn, async (steps) => (await brokenBy(steps)).length > 0);
    const found = { setting, steps, violations: await brokenBy(steps) };
    return { schedules: seed - first + 1, events, answers, found };
  }
  const never = count < enough ? [] : neverDone(answers);
  if (never.length === 0) return { schedules: count, events, answers };
  const found = {
    setting: settingOf(first),
    steps: [],
    violations: never.map((verb) => `no ${verb} is ever answered OK`),
  };
  return { schedules: count, events, answers, found };
}

/** After how many schedules each verb has been answered OK. */
const enough = 500;

/** The verbs that were asked for and never answered OK. */
function neverDone(answers: Search["answers"]): readonly string[] {
  const verbs = new Set(Object.keys(answers).map((answer) => answer.split(" ")[0]!));
  return [...verbs].filter((verb) => answers[`${verb} OK`] === undefined);
}

/**
 * Runs a schedule as a job of its own. V8 keeps whatever a WeakRef was made to until the job ends, and a faked clock ends none:
 * after 30,000 schedules the memory was full.
 */
async function historyOf(steps: readonly Step[], setting: Setting): Promise<readonly HistoryEvent[]> {
  await setImmediate();
  return await runSchedule(steps, setting);
}

if (import.meta.main) {
  // Schedules are full of refusals, and a stack is read of none of them.
  Error.stackTraceLimit = 1;
  const [first, count] = Deno.args.map(Number) as [number, number];
  // Sizes in bytes have no number in JSON.
  print(
    JSON.stringify(await search(first, count), (_, value) => typeof value === "bigint" ? `${value}` : value),
  );
}
