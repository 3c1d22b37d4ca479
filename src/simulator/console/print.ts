import type { PrintCommand } from "../grammar/syntax.ts";
import type { Menu, Property, Row } from "../menu/menu.ts";
import { Refusal } from "../refusal.ts";
import { type Numbered, toDetail, toTerse } from "../output/detail.ts";
import { makeLegend } from "../output/legend.ts";
import { toProperties, toTable } from "../output/table.ts";
import { toText, type Value } from "../value.ts";
import { select } from "./condition.ts";
import { evaluate } from "./evaluate.ts";
import type { Program, Run } from "./run.ts";

/** Runs `print`: the human forms are printed, `as-value` and `count-only` are worth something. */
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
  for (const line of humanLines(command, names, rows, run)) run.print(line);
  return null;
}

function humanLines(
  command: PrintCommand,
  names: readonly string[] | undefined,
  rows: readonly Row[],
  run: Run,
): readonly string[] {
  const { menu, form } = command;
  const properties = menu.properties();
  if (menu.single) return toProperties(rows[0]!, only(properties, names));
  const legend = makeLegend(menu.flags, rows, run.legend);
  const items = numbered(menu, rows);
  if (form === "terse") return toTerse(items, only(properties, names), legend);
  if (form === "detail") return toDetail(items, only(properties, names), legend);
  return toTable(items, inOrder(properties, names ?? menu.columns), legend);
}

/** The number of an item is its place among all items, also when only some are shown. */
function numbered(menu: Menu, rows: readonly Row[]): Numbered[] {
  const numbers = new Map(menu.rows().map((row, number) => [row.order, number]));
  return rows.map((row) => ({ number: numbers.get(row.order) ?? 0, row }));
}

function* readProplist(command: PrintCommand, run: Run): Program<readonly string[] | undefined> {
  if (command.proplist === undefined) return undefined;
  const names = toText(yield* evaluate(command.proplist, run)).split(",").filter((name) => name !== "");
  const known = new Set([".id", ...command.menu.properties().map((property) => property.name)]);
  if (!names.every((name) => known.has(name))) throw Refusal.noMatch("proplist");
  return names;
}

function only(properties: readonly Property[], names: readonly string[] | undefined): readonly Property[] {
  return names === undefined ? properties : properties.filter(({ name }) => names.includes(name));
}

function inOrder(properties: readonly Property[], names: readonly string[]): readonly Property[] {
  return names.flatMap((name) => properties.find((property) => property.name === name) ?? []);
}
