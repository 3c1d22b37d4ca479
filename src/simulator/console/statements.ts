import type { IfStatement, SerializeStatement, Statement } from "../grammar/syntax.ts";
import { clipBytes } from "../bytes.ts";
import { Refusal } from "../refusal.ts";
import { isList, isRecord, isTrue, toText, type Value } from "../value.ts";
import { evaluate } from "./evaluate.ts";
import type { Program, Run } from "./run.ts";
import { runMenuCommand } from "./verbs.ts";

/** The turn after a statement that does not use the router: it takes no time. */
const free = { span: [0, 0] } as const;

/** Runs statements one after the other, with a turn for other sessions after each. */
export function* runStatements(statements: readonly Statement[], run: Run): Program<void> {
  for (const statement of statements) {
    yield* runStatement(statement, run);
    yield free;
  }
}

/** Runs one statement and returns its value. */
export function* runStatement(statement: Statement, run: Run): Program<Value> {
  switch (statement.kind) {
    case "menu":
      return null;
    case "put": {
      const text = toText(yield* evaluate(statement.value, run));
      run.print(clipBytes(text, run.behaviours.maxPut));
      return null;
    }
    case "error":
      throw new Refusal(toText(yield* evaluate(statement.value, run)));
    case "len": {
      const value = yield* evaluate(statement.value, run);
      return BigInt(isList(value) ? value.length : toText(value).length);
    }
    case "serialize":
      return yield* runSerialize(statement, run);
    case "if":
      return yield* runIf(statement, run);
    default:
      return yield* runMenuCommand(statement, run);
  }
}

function* runIf({ condition, then, otherwise }: IfStatement, run: Run): Program<Value> {
  const holds = isTrue(yield* evaluate(condition, run));
  yield* runStatements(holds ? then : otherwise, run);
  return null;
}

function* runSerialize({ to, options, value }: SerializeStatement, run: Run): Program<Value> {
  if (toText(yield* evaluate(to, run)) !== "json") throw Refusal.noMatch("to");
  const option = options === undefined ? "" : toText(yield* evaluate(options, run));
  if (!["", "json.no-string-conversion", "json.pretty"].includes(option)) throw Refusal.noMatch("options");
  return toJson(yield* evaluate(value, run), option === "json.no-string-conversion");
}

/**
 * Formats a value as `:serialize to=json` does: one line, keys in alphabetical order, `[]` for an empty list.
 *
 * Unless `keepStrings` is set (the option `json.no-string-conversion`), a text that looks like a number becomes one,
 * with six decimal places.
 */
function toJson(value: Value, keepStrings: boolean): string {
  if (value === null) return '""';
  if (typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (typeof value === "string") return textToJson(value, keepStrings);
  if (isRecord(value)) {
    const members = Object.keys(value).sort().map((name) =>
      `${JSON.stringify(name)}:${toJson(value[name] ?? null, keepStrings)}`
    );
    return `{${members.join(",")}}`;
  }
  return isList(value) ? `[${value.map((item) => toJson(item, keepStrings)).join(",")}]` : "";
}

function textToJson(text: string, keepStrings: boolean): string {
  if (!keepStrings && /^-?[0-9]+(\.[0-9]+)?$/.test(text)) return Number(text).toFixed(6);
  return JSON.stringify(text);
}
