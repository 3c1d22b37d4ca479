// Usage: deno run -A tests/histories/answers.ts FIRST COUNT: prints the answers to the calls of each seed's schedule, a JSON
// array of texts such as "publish a n1: OK" a line.
import { print } from "../../tools/print.ts";
import { runSchedule } from "./run_schedule.ts";
import { drawSchedule } from "./draw_schedule.ts";
import { settingOf } from "./schedule.ts";

const [first, count] = Deno.args.map(Number) as [number, number];
for (let seed = first; seed < first + count; seed++) {
  const calls = new Map<number, string>();
  for (const event of await runSchedule(drawSchedule(seed), settingOf(seed))) {
    if (event.kind === "call") calls.set(event.call, [event.verb, event.of, event.node].join(" ").trim());
    if (event.kind === "answer") {
      calls.set(event.call, `${calls.get(event.call)}: ${event.error ?? "OK"}`);
    }
  }
  print(JSON.stringify([...calls.values()]));
}
