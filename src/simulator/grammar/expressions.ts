import type { Reading } from "./scanner.ts";
import type { Expression, Operator } from "./syntax.ts";

/** How a word that stands alone is read. */
type WordReader = (reading: Reading) => Expression;

const symbols: readonly (readonly [RegExp, Operator])[] = [
  [/!=/y, "!="],
  [/<=/y, "<="],
  [/>=/y, ">="],
  [/=/y, "="],
  [/</y, "<"],
  [/>/y, ">"],
  [/~/y, "~"],
];

const bareWord = /[^\s"$;()[\]{}=<>!~&|.]+/y;
/** As an operand of a property, a bare word ends at the next blank: `slot=pvc-1`, `size=1.5`. */
const bareOperand = /[^\s"$;()[\]{}]+/y;
/** In an assignment it may contain almost anything. */
const bareValue = /[^\s"$;[\]{}]*/y;

/** Reads an expression outside `where`: `("a".[…]."b")`, `[:len …] = 0`. */
export function parseExpression(reading: Reading): Expression {
  return parseOr(reading, parseBareWord);
}

/**
 * Reads the conditions after `where`, which all must hold: `type="file" mounted`. A word is the name of a property.
 *
 * @param isProperty returns whether a name exists.
 * @throws {Refusal} `expected end of command` at a word that is no property.
 */
export function parseWhere(reading: Reading, isProperty: (name: string) => boolean): Expression {
  const { scanner } = reading;
  const readProperty = (inner: Reading) => parseProperty(inner, isProperty);
  let all = parseOr(reading, readProperty);
  for (scanner.skipBlanks(); !scanner.atEndOfCommand && scanner.next !== ")"; scanner.skipBlanks()) {
    all = { kind: "binary", operator: "and", left: all, right: parseOr(reading, readProperty) };
  }
  return all;
}

/** Reads the value of an argument: a text, a word, `[…]`, `(…)` or `$name`. An empty one is the empty word. */
export function parseValue(reading: Reading): Expression {
  const { scanner } = reading;
  if (scanner.next === '"') return parseQuoted(reading);
  if (scanner.next === "[") return parseSubstitution(reading);
  if (scanner.next === "(") return parseParenthesised(reading, parseBareWord);
  return { kind: "word", text: parseBare(reading, bareValue) };
}

function parseOr(reading: Reading, readWord: WordReader): Expression {
  let left = parseAnd(reading, readWord);
  while (skipWord(reading, /(?:or(?![\w-])|\|\|)/y)) {
    left = { kind: "binary", operator: "or", left, right: parseAnd(reading, readWord) };
  }
  return left;
}

function parseAnd(reading: Reading, readWord: WordReader): Expression {
  let left = parseComparison(reading, readWord);
  while (skipWord(reading, /(?:and(?![\w-])|&&)/y)) {
    left = { kind: "binary", operator: "and", left, right: parseComparison(reading, readWord) };
  }
  return left;
}

function parseComparison(reading: Reading, readWord: WordReader): Expression {
  const { scanner } = reading;
  const left = parseJoined(reading, readWord);
  const start = scanner.offset;
  scanner.skipBlanks();
  const operator = symbols.find(([symbol]) => scanner.match(symbol) !== "")?.[1];
  if (operator === undefined) {
    scanner.offset = start;
    return left;
  }
  scanner.skipBlanks();
  const right = left.kind === "property" ? parseOperand(reading) : parseJoined(reading, readWord);
  return { kind: "binary", operator, left, right };
}

function parseJoined(reading: Reading, readWord: WordReader): Expression {
  const { scanner } = reading;
  let left = parsePrimary(reading, readWord);
  while (skipWord(reading, /\./y)) {
    scanner.skipBlanks();
    left = { kind: "binary", operator: ".", left, right: parsePrimary(reading, readWord) };
  }
  return left;
}

function parsePrimary(reading: Reading, readWord: WordReader): Expression {
  const { scanner } = reading;
  scanner.skipBlanks();
  if (scanner.match(/!|not(?![\w-])/y) !== "") {
    return { kind: "not", operand: parseComparison(reading, readWord) };
  }
  switch (scanner.next) {
    case '"':
      return parseQuoted(reading);
    case "[":
      return parseSubstitution(reading);
    case "(":
      return parseParenthesised(reading, readWord);
    case "$":
      scanner.offset++;
      return parseDollar(reading) ?? { kind: "variable" };
    default:
      return readWord(reading);
  }
}

function parseSubstitution(reading: Reading): Expression {
  const { scanner } = reading;
  scanner.offset++;
  const statements = reading.block();
  if (!scanner.take("]")) throw scanner.syntaxError();
  return { kind: "substitution", statements };
}

function parseParenthesised(reading: Reading, readWord: WordReader): Expression {
  const { scanner } = reading;
  scanner.offset++;
  const inner = parseOr(reading, readWord);
  scanner.skipBlanks();
  if (!scanner.take(")")) throw scanner.syntaxError();
  return inner;
}

function parseBareWord(reading: Reading): Expression {
  const { scanner } = reading;
  const text = scanner.match(bareWord);
  if (text === "") throw scanner.syntaxError();
  return { kind: "word", text };
}

function parseProperty(reading: Reading, isProperty: (name: string) => boolean): Expression {
  const { scanner } = reading;
  const offset = scanner.offset;
  const name = scanner.match(/[A-Za-z0-9.-]+/y);
  if (name === "") throw scanner.syntaxError();
  if (!isProperty(name)) throw scanner.expectedEndOfCommand(offset);
  return { kind: "property", name };
}

/** Reads the operand that a property is compared with. */
function parseOperand(reading: Reading): Expression {
  const { scanner } = reading;
  if (scanner.next !== "" && '"[('.includes(scanner.next)) return parseJoined(reading, parseBareWord);
  const text = parseBare(reading, bareOperand);
  return { kind: "word", text };
}

/** Reads a word without quotes; a `$name` in it is empty, as in a text. */
function parseBare(reading: Reading, pattern: RegExp): string {
  const { scanner } = reading;
  let text = scanner.match(pattern);
  while (scanner.take("$")) {
    scanner.match(/[A-Za-z0-9]*/y);
    text += scanner.match(pattern);
  }
  return text;
}

/** Skips blanks and a word or sign, and returns whether it was there; without a match nothing changes. */
function skipWord(reading: Reading, pattern: RegExp): boolean {
  const { scanner } = reading;
  const start = scanner.offset;
  scanner.skipBlanks();
  if (scanner.match(pattern) !== "") return true;
  scanner.offset = start;
  return false;
}

const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "$": "$",
  "?": "?",
  "_": " ",
  n: "\n",
  r: "\r",
  t: "\t",
  a: "\x07",
  b: "\b",
  f: "\f",
  v: "\v",
};

/**
 * Reads a text in double quotes.
 *
 * `\XX` with capital hexadecimal digits is a byte. An unescaped `$name` is replaced by the variable of that name;
 * because there is none, it becomes empty. `$[…]` and `$(…)` are run, so that a client that does not escape them is
 * noticed.
 *
 * @throws {Refusal} `syntax error` for an unknown escape, or when the text does not end.
 */
function parseQuoted(reading: Reading): Expression {
  const { scanner } = reading;
  const parts: (string | Expression)[] = [];
  let text = "";
  scanner.offset++;
  while (!scanner.take('"')) {
    if (scanner.finished) throw scanner.syntaxError();
    if (scanner.next === "\\") {
      text += parseEscape(reading);
    } else if (scanner.take("$")) {
      const part = parseDollar(reading);
      if (part !== undefined) parts.push(text, part);
      if (part !== undefined) text = "";
    } else {
      text += scanner.match(/[^"\\$]+/y);
    }
  }
  return { kind: "quoted", parts: [...parts, text] };
}

/** Reads the expression after a `$`; undefined for a variable, which is empty. */
function parseDollar(reading: Reading): Expression | undefined {
  const { scanner } = reading;
  if (scanner.next === "[") return parseSubstitution(reading);
  if (scanner.next === "(") return parseParenthesised(reading, parseBareWord);
  scanner.match(/[A-Za-z0-9]*/y);
  return undefined;
}

function parseEscape(reading: Reading): string {
  const { scanner } = reading;
  const bytes = scanner.match(/(?:\\[0-9A-F]{2})+/y);
  if (bytes !== "") {
    const numbers = bytes.slice(1).split("\\").map((digits) => Number.parseInt(digits, 16));
    return new TextDecoder().decode(Uint8Array.from(numbers));
  }
  const meaning = escapes[scanner.text.charAt(scanner.offset + 1)];
  if (meaning === undefined) throw scanner.syntaxError();
  scanner.offset += 2;
  return meaning;
}
