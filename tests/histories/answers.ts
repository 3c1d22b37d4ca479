// Usage: deno run -A tests/histories/answers.ts FIRST COUNT: prints for each seed, in a line of JSON, a digest of the schedule that
// was drawn, and the answers to its calls, such as "publish a n1: OK".
import { inspect } from "node:util";
import { digest } from "../../src/volume/model/digest.ts";
import { print } from "../../tools/print.ts";
import { runSchedule } from "./run_schedule.ts";
import { drawSchedule } from "./draw_schedule.ts";
import { settingOf } from "./schedule.ts";

const [first, count] = Deno.args.map(Number) as [number, number];
for (let seed = first; seed < first + count; seed++) {
  const calls = new Map<number, string>();
  const [schedule, setting] = [drawSchedule(seed), settingOf(seed)];
  const drawn = digest(inspect([schedule, setting], { depth: null, maxArrayLength: null }), 16);
  for (const event of await runSchedule(schedule, setting)) {
    if (event.kind === "call") calls.set(event.call, [event.verb, event.of, event.node].join(" ").trim());
    if (event.kind === "answer") {
      calls.set(event.call, `${calls.get(event.call)}: ${event.error ?? "OK"}`);
    }
  }
  print(JSON.stringify({ drawn, answers: [...calls.values()] }));
}
