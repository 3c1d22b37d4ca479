import type {
  AddCommand,
  Assignment,
  FindCommand,
  GetCommand,
  MenuCommand,
  PrintCommand,
  TargetCommand,
} from "../grammar/syntax.ts";
import type { Menu, Row, Values } from "../menu/menu.ts";
import { printDetail, printTable } from "../output/items.ts";
import { Refusal } from "../refusal.ts";
import { isList, toText, type Value } from "../value.ts";
import { evaluate, select } from "./evaluate.ts";
import type { Program, Run } from "./run.ts";

/**
 * Runs a command of a menu and returns its value; verbs that change something return none.
 *
 * @throws {Refusal} when the router refuses.
 */
export function* runMenuCommand(command: MenuCommand, run: Run): Program<Value> {
  const changes = command.kind === "add" || command.kind === "target";
  const { mayRead = true, mayWrite = true, mayManage = true } = run.caller;
  const allowed = !changes ? mayRead : mayWrite && (mayManage || !isOfUsers(command.menu));
  if (!allowed) throw Refusal.notEnoughPermissions();
  switch (command.kind) {
    case "print":
      return yield* runPrint(command, run);
    case "find":
      return yield* runFind(command, run);
    case "get":
      return yield* runGet(command, run);
    case "add":
      return yield* runAdd(command, run);
    case "target":
      return yield* runTarget(command, run);
  }
}

function* runFind({ menu, where }: FindCommand, run: Run): Program<Value> {
  const rows = yield* select(menu, where, run);
  const ids = rows.map((row) => row.id);
  yield { span: menu.span("find", new Map()) };
  return ids;
}

function* runGet(command: GetCommand, run: Run): Program<Value> {
  const { menu } = command;
  const row = menu.single ? menu.rows()[0] : (yield* resolve(command, run))[0];
  if (row === undefined) throw Refusal.noSuchItem();
  if (command.property === undefined) return row.asValue();
  const name = toText(yield* evaluate(command.property, run));
  const known = name === ".id" || menu.properties().some((property) => property.name === name);
  if (!known) throw Refusal.noMatch("value-name");
  yield { span: menu.span("get", new Map()) };
  return row.value(name) ?? null;
}

/** Whether a menu belongs to users: the policy `write` alone does not allow changing them. */
function isOfUsers({ path }: Menu): boolean {
  return path.split("/")[0] === "user";
}

function* runAdd({ menu, verb, assignments }: AddCommand, run: Run): Program<Value> {
  const values = yield* readValues(assignments, run);
  run.caller.observe(menu.path, verb, undefined, values);
  menu[verb]?.(values);
  yield { span: menu.span(verb, values) };
  return null;
}

function* runTarget(command: TargetCommand, run: Run): Program<Value> {
  const { menu, verb } = command;
  const values = yield* readValues(command.assignments, run);
  let moreMs = 0;
  for (const row of yield* resolve(command, run)) {
    run.caller.observe(menu.path, verb, row, values);
    moreMs += act(menu, command.verb, row, values);
  }
  yield { span: menu.span(verb, values), moreMs };
  return null;
}

/** Returns how long it takes besides the usual time, in milliseconds. */
function act(menu: Menu, verb: TargetCommand["verb"], row: Row, values: Values): number {
  switch (verb) {
    case "set":
      menu.set?.(row, values);
      return 0;
    case "remove":
      menu.remove?.(row);
      return 0;
    case "format":
      menu.format?.(row, values);
      return 0;
    case "copy":
      return menu.copy?.(row, values) ?? 0;
    case "enable":
    case "disable":
      menu.set?.(row, new Map([["disabled", verb === "disable" ? "yes" : "no"]]));
      return 0;
  }
}

/**
 * Finds the items that a command names: by a list of ids from `[find …]`, by an id, or by name.
 *
 * Between a `[find]` and its verb other sessions may have had their turn: an id found may be gone.
 */
function* resolve(command: TargetCommand | GetCommand, run: Run): Program<readonly Row[]> {
  const { menu, target } = command;
  if (menu.single) return menu.rows();
  const missing = () => Refusal.expectedItemId(run.scanner.position(command.targetOffset));
  if (target === undefined) throw missing();
  const value = yield* evaluate(target, run);
  if (isList(value)) {
    if (value.length > 0) return value.map((id) => rowOfId(menu, toText(id)));
    if (run.behaviours.emptyFind === "silent" && command.kind === "target") return [];
    throw missing();
  }
  const text = toText(value);
  const names = target.kind === "word" ? text.split(",") : [text];
  return names.map((name) => name.startsWith("*") ? rowOfId(menu, name) : rowOfName(menu, name));
}

function rowOfId(menu: Menu, id: string): Row {
  const row = menu.byId(id);
  if (row === undefined) throw Refusal.noSuchItemId();
  return row;
}

function rowOfName(menu: Menu, name: string): Row {
  const row = menu.byName(name);
  if (row === undefined) throw Refusal.noSuchItem();
  return row;
}

function* readValues(assignments: readonly Assignment[], run: Run): Program<Values> {
  const values = new Map<string, string>();
  for (const { name, value } of assignments) {
    const given = yield* evaluate(value, run);
    values.set(name, typeof given === "boolean" ? (given ? "yes" : "no") : toText(given));
  }
  return values;
}

/** Runs `print`: output for people is printed, `as-value` and `count-only` return a value. */
function* runPrint(command: PrintCommand, run: Run): Program<Value> {
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
  // The number of an item is its place among all items, even when only some are shown.
  const numberOf = menu.numberOf?.bind(menu) ?? numbersOf(menu);
  const textForm = menu.textForm?.();
  if (textForm !== undefined) {
    const items = rows.map((row) => ({ row, number: numberOf(row) ?? 0 }));
    const properties = menu.properties().filter(({ name, isFlag }) =>
      !isFlag && (names?.includes(name) ?? true)
    );
    const lines = command.detail
      ? printDetail(items, properties.map(({ name }) => name), textForm)
      : printTable(items, textForm, names);
    for (const line of lines) run.print(line);
    return null;
  }
  for (const row of rows) run.print(textLine(menu, row, names, numberOf(row)));
  return null;
}

function numbersOf(menu: Menu): (row: Row) => number | undefined {
  const numbers = new Map(menu.rows().map((row, number) => [row.order, number]));
  return (row) => numbers.get(row.order);
}

/** An item for people, in a menu whose tables are not simulated. */
function textLine(menu: Menu, row: Row, names: readonly string[] | undefined, number = 0): string {
  const shown = menu.properties().filter(({ name }) => names === undefined || names.includes(name));
  const pairs = shown.flatMap(({ name, isFlag }) => {
    const value = row.value(name);
    if (value === undefined || isFlag && value !== true) return [];
    return [isFlag ? name.toUpperCase() : `${name}=${shownText(value)}`];
  });
  return (menu.single ? pairs : [number, ...pairs]).join(" ");
}

/** People see `yes` and `no`, which the legacy driver also expects. */
function shownText(value: Value): string {
  return typeof value === "boolean" ? (value ? "yes" : "no") : toText(value);
}

function* readProplist(command: PrintCommand, run: Run): Program<readonly string[] | undefined> {
  if (command.proplist === undefined) return undefined;
  const names = toText(yield* evaluate(command.proplist, run)).split(",").filter((name) => name !== "");
  const known = new Set([".id", ...command.menu.properties().map((property) => property.name)]);
  if (!names.every((name) => known.has(name))) throw Refusal.noMatch("proplist");
  return names;
}
