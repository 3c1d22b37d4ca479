import type { PrintCommand } from "../grammar/syntax.ts";
import type { Menu, Row } from "../menu/menu.ts";
import { Refusal } from "../refusal.ts";
import { toText, type Value } from "../value.ts";
import { select } from "./condition.ts";
import { evaluate } from "./evaluate.ts";
import type { Program, Run } from "./run.ts";

/** Runs `print`: what is for people is printed, `as-value` and `count-only` are worth something. */
export function* runPrint(command: PrintCommand, run: Run): Program<Value> {
  const { menu } = command;
  const names = yield* readProplist(command, run);
  const rows = yield* select(menu, command.where, run);
  const value = printRows(command, names, rows, run);
  yield { span: menu.span("print", new Map()) };
  return value;
}

function printRows(
  command: PrintCommand,
  names: readonly string[] | undefined,
  rows: readonly Row[],
  run: Run,
): Value {
  const { menu, form } = command;
  if (form === "as-value") {
    const shown = names ?? (command.detail || menu.single ? undefined : menu.columns);
    return menu.single ? rows[0]?.asValue(shown) ?? null : rows.map((row) => row.asValue(shown));
  }
  if (form === "count-only") {
    run.print(String(rows.length));
    return BigInt(rows.length);
  }
  // The number of an item is its place among all items, also when only some are shown.
  const numbers = new Map(menu.rows().map((row, number) => [row.order, number]));
  for (const row of rows) run.print(textLine(menu, row, names, numbers.get(row.order)));
  return null;
}

/** An item for people. A router prints tables and wraps them, which no program reads back right; here it is one line. */
function textLine(menu: Menu, row: Row, names: readonly string[] | undefined, number = 0): string {
  const shown = menu.properties().filter(({ name }) => names === undefined || names.includes(name));
  const pairs = shown.flatMap(({ name, isFlag }) => {
    const value = row.value(name);
    if (value === undefined || isFlag && value !== true) return [];
    return [isFlag ? name.toUpperCase() : `${name}=${toText(value)}`];
  });
  return (menu.single ? pairs : [number, ...pairs]).join(" ");
}

function* readProplist(command: PrintCommand, run: Run): Program<readonly string[] | undefined> {
  if (command.proplist === undefined) return undefined;
  const names = toText(yield* evaluate(command.proplist, run)).split(",").filter((name) => name !== "");
  const known = new Set([".id", ...command.menu.properties().map((property) => property.name)]);
  if (!names.every((name) => known.has(name))) throw Refusal.noMatch("proplist");
  return names;
}
