import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { createLogger, LOG_FORMATS, type Logger, type LoggerOptions, LogThreshold } from "./log.ts";

function collect(options: Partial<LoggerOptions> = {}): { log: Logger; lines: string[] } {
  const lines: string[] = [];
  const log = createLogger({ clock: new FakeClock(0), sink: (line) => void lines.push(line), ...options });
  return { log, lines };
}

function only(lines: readonly string[]): Record<string, unknown> {
  assert.equal(lines.length, 1);
  const line = lines[0]!;
  assert.ok(
    line.endsWith("\n") && !line.slice(0, -1).includes("\n"),
    `not one line: ${JSON.stringify(line)}`,
  );
  return JSON.parse(line);
}

Deno.test("Logger writes one JSON line with time, level, message and fields", () => {
  const { log, lines } = collect();
  log.info("volume\nmade", { volumeId: "pvc-1", sizeBytes: 2n ** 63n });
  assert.deepEqual(only(lines), {
    "@timestamp": "1970-01-01T00:00:00.000Z",
    level: "INFO",
    message: "volume\nmade",
    logger: "rds-csi",
    volumeId: "pvc-1",
    sizeBytes: "9223372036854775808",
  });
});

Deno.test("Logger leaves out what is below its level", () => {
  for (const [level, expected] of [["debug", 4], ["info", 3], ["warn", 2], ["error", 1]] as const) {
    const { log, lines } = collect({ level });
    log.debug("a");
    log.info("b");
    log.warn("c");
    log.error("d");
    assert.equal(lines.length, expected, level);
  }
});

Deno.test("Logger calls a function of fields only for a record that is written", () => {
  const { log, lines } = collect({ level: "info" });
  let calls = 0;
  const fields = () => ({ calls: ++calls });
  log.debug("quiet", fields);
  assert.equal(calls, 0);
  log.info("loud", fields);
  assert.equal(only(lines).calls, 1);
});

Deno.test("Logger.with() adds its fields to every record and leaves the parent alone", () => {
  const { log, lines } = collect();
  const child = log.with({ requestId: "r1" }).with({ volumeId: "v1" });
  child.warn("x", { volumeId: "v2" });
  log.warn("y");
  assert.equal(JSON.parse(lines[0]!).requestId, "r1");
  assert.equal(JSON.parse(lines[0]!).volumeId, "v2");
  assert.equal("requestId" in JSON.parse(lines[1]!), false);
});

Deno.test("Logger writes an error with its chain of causes", () => {
  const { log, lines } = collect();
  log.error("failed", {
    error: new Error("outer", { cause: new TypeError("inner", { cause: { code: 5n } }) }),
  });
  const error = only(lines).error as {
    message: string;
    cause: { name: string; message: string; cause: unknown };
  };
  assert.equal(error.message, "outer");
  assert.equal(error.cause.name, "TypeError");
  assert.equal(error.cause.message, "inner");
  assert.deepEqual(error.cause.cause, { code: "5" });
});

Deno.test("Logger survives circular, throwing and odd fields", () => {
  const circular: Record<string, unknown> = { lone: "\ud800", symbol: Symbol("s"), call() {} };
  circular.self = circular;
  const { log, lines } = collect();
  log.info("circular", { circular });
  log.info("throwing", {
    get field() {
      throw new Error("no");
    },
  });
  log.info("toJSON", {
    field: {
      toJSON() {
        throw new Error("no");
      },
    },
  });
  log.info("function", () => {
    throw new Error("no");
  });
  assert.deepEqual(lines.map((line) => JSON.parse(line).message), [
    "circular",
    "throwing",
    "toJSON",
    "function",
  ]);
});

Deno.test("Logger keeps its own keys when a field has the same name", () => {
  const { log, lines } = collect();
  log.info("real", { message: "fake", level: "FATAL", "@timestamp": "never", logger: "other" });
  const record = only(lines);
  assert.equal(record.message, "real");
  assert.equal(record.level, "INFO");
  assert.equal(record.message_, "fake");
});

Deno.test("Logger does not throw when its sink does, and reports how many lines were lost", () => {
  const lines: string[] = [];
  let broken = true;
  const log = createLogger({
    clock: new FakeClock(0),
    sink(line) {
      if (broken) throw new Error("EPIPE");
      lines.push(line);
    },
  });
  log.info("one");
  log.info("two");
  broken = false;
  log.info("three");
  log.info("four");
  assert.equal(JSON.parse(lines[0]!).droppedLines, 2);
  assert.equal("droppedLines" in JSON.parse(lines[1]!), false);
});

Deno.test("two Loggers share nothing", () => {
  const a = collect({ level: "debug" });
  const b = collect({ level: "error" });
  a.log.debug("x");
  b.log.debug("y");
  assert.equal(a.lines.length, 1);
  assert.equal(b.lines.length, 0);
});

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

Deno.test("a text log has one line for each record, whatever is logged", () => {
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
    String
      .raw`time=1970-01-01T00:00:00.000Z level=error logger=rds-csi msg="first\nsecond \u001b[2J" requestId=r1 plain=pvc-1 ` +
    String
      .raw`many="a b=c" sizeBytes=5 list="[\"a\",{\"b\":\"2\"}]" none=undefined empty="" forged="x\n1970 ERROR y"` +
    "\n",
  ]);
});

Deno.test("no line of a log has control characters, in either form", () => {
  for (const format of LOG_FORMATS) {
    const { log, lines } = collect({ format });
    log.warn("a\u009b2J", { device: "\u202ebds\u2066" });
    assert.match(lines[0]!, /a\\u009b2J.*\\u202ebds\\u2066/);
  }
});

Deno.test("a text log accepts errors, and values that cannot be printed", () => {
  const { log, lines } = textLog();
  log.warn("failed", { error: new Error("why not") });
  log.warn("odd", {
    get value() {
      throw new Error("a throwing field");
    },
  });
  assert.match(
    lines[0]!,
    /^time=1970-01-01T00:00:00\.000Z level=warning .*msg=failed error=".*why not.*\bat /,
  );
  assert.match(lines[1]!, /msg=odd unprintable="Error: a throwing field"\n$/);
});

Deno.test("the level of a log is lowered step by step while it runs, and restored", () => {
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
  assert.deepEqual([logged(), threshold.level], [4, "debug"]);
  threshold.lower();
  assert.deepEqual([logged(), threshold.level], [2, "warn"]);
});
