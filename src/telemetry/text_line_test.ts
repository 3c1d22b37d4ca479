import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { createLogger, LogThreshold } from "./log.ts";

function textLog() {
  const lines: string[] = [];
  const clock = new FakeClock(0);
  const threshold = new LogThreshold("warn");
  const log = createLogger({
    clock,
    sink: (line) => void lines.push(line),
    level: threshold,
    format: "text",
  });
  return { log, lines, threshold };
}

Deno.test("a text log has one line a record, whatever is logged", () => {
  const { log, lines } = textLog();
  const fields = {
    plain: "pvc-1",
    many: "a b=c",
    sizeBytes: 5n,
    list: ["a", { b: 2n }],
    none: undefined,
    empty: "",
  };
  log.with({ requestId: "r1" }).error("first\nsecond \u001b[2J", { ...fields, forged: "x\n1970 ERROR y" });
  assert.deepEqual(lines, [
    "1970-01-01T00:00:00.000Z ERROR first\\nsecond \\u001b[2J requestId=r1 plain=pvc-1 " +
    String
      .raw`many="a b=c" sizeBytes=5 list="[\"a\",{\"b\":\"2\"}]" none=undefined empty="" forged="x\n1970 ERROR y"` +
    "\n",
  ]);
});

Deno.test("a text log bears errors, and what cannot be printed", () => {
  const { log, lines } = textLog();
  log.warn("failed", { error: new Error("why not") });
  log.warn("odd", {
    get value() {
      throw new Error("a throwing field");
    },
  });
  assert.match(lines[0]!, /^1970-01-01T00:00:00\.000Z WARN {2}failed error="Error: why not\\n {4}at /);
  assert.match(lines[1]!, /WARN {2}odd unprintable="Error: a throwing field"\n$/);
});

Deno.test("the level of a log is lowered step by step while it runs, and set back", () => {
  const { log, lines, threshold } = textLog();
  const child = log.with({ a: 1 });
  const logged = () => {
    lines.length = 0;
    for (const level of ["debug", "info", "warn", "error"] as const) child[level]("x");
    return lines.length;
  };
  assert.equal(logged(), 2);
  threshold.lower();
  assert.deepEqual([logged(), threshold.level], [3, "info"]);
  threshold.lower();
  threshold.lower();
  assert.deepEqual([logged(), threshold.level], [4, "debug"]);
  threshold.reset();
  assert.deepEqual([logged(), threshold.level], [2, "warn"]);
});
