import { Refusal } from "../refusal.ts";
import { parseExpression, parseValue, parseWhere } from "./expressions.ts";
import type { Reading } from "./scanner.ts";
import type {
  Assignment,
  Expression,
  FindCommand,
  GetCommand,
  IfStatement,
  MenuCommand,
  PrintCommand,
  SerializeStatement,
  Statement,
  TargetCommand,
} from "./syntax.ts";
import { isMenuPath, type Menu, type Verb } from "../menu/menu.ts";

type GlobalParser = (reading: Reading) => Statement;

/** The commands without a menu. The colon before them may be left out. */
const globals: ReadonlyMap<string, GlobalParser> = new Map<string, GlobalParser>([
  ["put", (reading) => ({ kind: "put", value: parseOperand(reading) })],
  ["error", (reading) => ({ kind: "error", value: parseOperand(reading) })],
  ["len", (reading) => ({ kind: "len", value: parseOperand(reading) })],
  ["serialize", parseSerialize],
  ["if", parseIf],
]);

/**
 * Reads one command.
 *
 * @throws {Refusal} when it is invalid.
 */
export function parseStatement(reading: Reading): Statement {
  const { scanner } = reading;
  const colon = scanner.take(":");
  const offset = scanner.offset;
  const word = scanner.peek(/[a-z-]+/y);
  const parseGlobal = globals.get(word);
  if (parseGlobal !== undefined) {
    scanner.offset += word.length;
    return parseGlobal(reading);
  }
  if (colon) throw Refusal.badCommandName(word, scanner.position(offset));
  return parseMenuCommand(reading);
}

/** The one argument of a command like `:put`. */
function parseOperand(reading: Reading): Expression {
  const { scanner } = reading;
  scanner.skipBlanks();
  if (scanner.atEndOfCommand) throw scanner.syntaxError();
  return parseValue(reading);
}

function parseSerialize(reading: Reading): SerializeStatement {
  const { scanner } = reading;
  const given = new Map<string, Expression>();
  for (scanner.skipBlanks(); !scanner.atEndOfCommand; scanner.skipBlanks()) {
    const start = scanner.offset;
    const name = scanner.match(/[a-z]+/y);
    if (!["to", "options", "value"].includes(name)) throw scanner.expectedEndOfCommand(start);
    if (!scanner.take("=")) throw scanner.syntaxError();
    given.set(name, parseValue(reading));
  }
  const to = given.get("to");
  const value = given.get("value");
  if (to === undefined || value === undefined) throw scanner.syntaxError();
  return { kind: "serialize", to, options: given.get("options"), value };
}

function parseIf(reading: Reading): IfStatement {
  const { scanner } = reading;
  scanner.skipBlanks();
  if (!"([".includes(scanner.next) || scanner.finished) throw scanner.syntaxError();
  const condition = parseExpression(reading);
  scanner.skipBlanks();
  if (!scanner.take("do=")) throw scanner.syntaxError();
  const then = parseBraces(reading);
  scanner.skipBlanks();
  const otherwise = scanner.take("else=") ? parseBraces(reading) : [];
  return { kind: "if", condition, then, otherwise };
}

function parseBraces(reading: Reading): Statement[] {
  const { scanner } = reading;
  if (!scanner.take("{")) throw scanner.syntaxError();
  const statements = reading.block();
  if (!scanner.take("}")) throw scanner.syntaxError();
  return statements;
}

const printWords = ["detail", "terse", "as-value", "count-only", "without-paging", "brief"];
const propertyName = /[A-Za-z0-9.-]+/y;

/**
 * Reads a command of a menu: `/disk add …`, `/disk/add …`, or a menu alone.
 *
 * @throws {Refusal} `bad command name` for a word that is neither menu nor verb.
 */
function parseMenuCommand(reading: Reading): Statement {
  const { scanner } = reading;
  let path = scanner.take("/") ? "" : reading.menu;
  for (;;) {
    scanner.match(/[ \t/]*/y);
    if (scanner.atEndOfCommand) {
      reading.menu = path;
      return { kind: "menu" };
    }
    const offset = scanner.offset;
    const word = scanner.match(/[a-z0-9-]+/y);
    if (word === "") throw scanner.syntaxError();
    const deeper = path === "" ? word : `${path}/${word}`;
    const menu = reading.menus.get(path);
    if (isMenuPath(reading.menus, deeper)) path = deeper;
    else if (menu?.verbs().includes(word as Verb)) return inMenu(reading, menu, word as Verb);
    else throw Refusal.badCommandName(word, scanner.position(offset));
  }
}

/** Reads the arguments; a `[find …]` among them searches the command's own menu. */
function inMenu(reading: Reading, menu: Menu, verb: Verb): MenuCommand {
  const outer = reading.menu;
  reading.menu = menu.path;
  const command = parseArguments(reading, menu, verb);
  reading.menu = outer;
  return command;
}

function parseArguments(reading: Reading, menu: Menu, verb: Verb): MenuCommand {
  switch (verb) {
    case "print":
      return parsePrint(reading, menu);
    case "find":
      return parseFind(reading, menu);
    case "get":
      return parseGet(reading, menu);
    case "add":
    case "import":
    case "apply-changes": {
      // add has no item, so it is read as if the item were named already.
      const { assignments } = parseAssignments(reading, menu, verb, true);
      return { kind: "add", menu, verb, assignments };
    }
    default: {
      return { kind: "target", menu, verb, ...parseAssignments(reading, menu, verb, false) };
    }
  }
}

function parsePrint(reading: Reading, menu: Menu): PrintCommand {
  const { scanner } = reading;
  const given = new Set<string>();
  let proplist: Expression | undefined;
  let where: Expression | undefined;
  for (scanner.skipBlanks(); !scanner.atEndOfCommand; scanner.skipBlanks()) {
    const start = scanner.offset;
    const word = scanner.match(propertyName);
    if (word === "where" && !menu.single) where = parseWhere(reading, hasProperty(menu));
    else if (word === "proplist" && scanner.take("=")) proplist = parseValue(reading);
    else if (printWords.includes(word)) given.add(word);
    else throw scanner.expectedEndOfCommand(start);
    if (!atWordEnd(reading)) throw scanner.expectedEndOfCommand();
  }
  const form = (["count-only", "as-value"] as const).find((word) => given.has(word));
  return {
    kind: "print",
    menu,
    form: form ?? "text",
    detail: given.has("detail"),
    proplist,
    where,
  };
}

function parseFind(reading: Reading, menu: Menu): FindCommand {
  const { scanner } = reading;
  scanner.skipBlanks();
  scanner.match(/where(?![\w.=~<>!-])/y);
  scanner.skipBlanks();
  const where = scanner.atEndOfCommand ? undefined : parseWhere(reading, hasProperty(menu));
  return { kind: "find", menu, where };
}

function parseGet(reading: Reading, menu: Menu): GetCommand {
  const { scanner } = reading;
  scanner.skipBlanks();
  const targetOffset = scanner.offset;
  const target = menu.single || scanner.atEndOfCommand ? undefined : parseValue(reading);
  scanner.skipBlanks();
  scanner.take("value-name=");
  const property = scanner.atEndOfCommand ? undefined : parseValue(reading);
  return { kind: "get", menu, target, targetOffset, property };
}

/**
 * Reads the item and `name=value` pairs.
 *
 * A word that cannot be an argument is refused at the word itself; where a word could still name the item, the refusal
 * is at the `=` after it.
 */
function parseAssignments(
  reading: Reading,
  menu: Menu,
  verb: Verb,
  targeted: boolean,
): Pick<TargetCommand, "target" | "targetOffset" | "assignments"> {
  const { scanner } = reading;
  const assignments: Assignment[] = [];
  let target: Expression | undefined;
  let targetOffset: number | undefined;
  for (scanner.skipBlanks(); !scanner.atEndOfCommand; scanner.skipBlanks()) {
    const start = scanner.offset;
    const name = scanner.match(propertyName);
    const named = scanner.next === "=";
    if (named && menu.texts(verb).includes(name)) {
      scanner.offset++;
      assignments.push({ name, value: parseValue(reading) });
    } else {
      if (targeted) throw scanner.expectedEndOfCommand(start);
      if (named && name !== "numbers") throw scanner.expectedEndOfCommand();
      targetOffset = scanner.offset = named ? scanner.offset + 1 : start;
      target = parseValue(reading);
      targeted = true;
    }
    if (!atWordEnd(reading)) throw scanner.expectedEndOfCommand();
  }
  return { target, targetOffset: targetOffset ?? scanner.offset, assignments };
}

function atWordEnd(reading: Reading): boolean {
  const { scanner } = reading;
  return scanner.atEndOfCommand || scanner.next === " " || scanner.next === "\t";
}

function hasProperty(menu: Menu): (name: string) => boolean {
  const names = new Set(menu.properties().map((property) => property.name));
  return (name) => name === ".id" || names.has(name);
}
