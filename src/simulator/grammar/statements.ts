import { Refusal } from "../refusal.ts";
import { parseMenuCommand } from "./commands.ts";
import { parseExpression, parseValue } from "./expressions.ts";
import type { Reading } from "./parser.ts";
import type { Expression, IfStatement, SerializeStatement, Statement } from "./syntax.ts";

type GlobalParser = (reading: Reading, offset: number) => Statement;

/** The commands that belong to no menu. The colon in front of them may be left out. */
const globals: ReadonlyMap<string, GlobalParser> = new Map<string, GlobalParser>([
  ["put", (reading, offset) => ({ kind: "put", value: parseOperand(reading), offset })],
  ["len", (reading, offset) => ({ kind: "len", value: parseOperand(reading), offset })],
  ["serialize", parseSerialize],
  ["if", parseIf],
]);

/**
 * Reads one command.
 *
 * @throws {Refusal} when it is none.
 */
export function parseStatement(reading: Reading): Statement {
  const { scanner } = reading;
  const colon = scanner.take(":");
  const offset = scanner.offset;
  const word = scanner.look(/[a-z-]+/y);
  const parseGlobal = globals.get(word);
  if (parseGlobal !== undefined) {
    scanner.offset += word.length;
    return parseGlobal(reading, offset);
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

function parseSerialize(reading: Reading, offset: number): SerializeStatement {
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
  return { kind: "serialize", to, options: given.get("options"), value, offset };
}

function parseIf(reading: Reading, offset: number): IfStatement {
  const { scanner } = reading;
  scanner.skipBlanks();
  if (!"([".includes(scanner.next) || scanner.finished) throw scanner.syntaxError();
  const condition = parseExpression(reading);
  scanner.skipBlanks();
  if (!scanner.take("do=")) throw scanner.syntaxError();
  const then = parseBraces(reading);
  scanner.skipBlanks();
  const otherwise = scanner.take("else=") ? parseBraces(reading) : [];
  return { kind: "if", condition, then, otherwise, offset };
}

function parseBraces(reading: Reading): Statement[] {
  const { scanner } = reading;
  if (!scanner.take("{")) throw scanner.syntaxError();
  const statements = reading.block();
  if (!scanner.take("}")) throw scanner.syntaxError();
  return statements;
}
