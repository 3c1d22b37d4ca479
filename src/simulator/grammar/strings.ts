import type { Reading } from "./parser.ts";
import type { Expression } from "./syntax.ts";

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
 * `\XX` with capital hexadecimal digits is a byte. An unescaped `$name` is replaced by the variable of that name, and
 * as there is none, by nothing. `$[…]` and `$(…)` are run, like everything that an unwary client lets through.
 *
 * @throws {Refusal} `syntax error` for an escape that does not exist, or when the text does not end.
 */
export function parseQuoted(reading: Reading): Expression {
  const { scanner } = reading;
  const offset = scanner.offset;
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
  return { kind: "quoted", parts: [...parts, text], offset };
}

/** What stands behind a `$`; undefined for a variable, which is worth nothing. */
export function parseDollar(reading: Reading): Expression | undefined {
  const { scanner } = reading;
  const offset = scanner.offset;
  if (scanner.take("[")) {
    const statements = reading.block();
    if (!scanner.take("]")) throw scanner.syntaxError();
    return { kind: "substitution", statements, offset };
  }
  if (scanner.take("(")) {
    const inner = reading.expression();
    scanner.skipBlanks();
    if (!scanner.take(")")) throw scanner.syntaxError();
    return inner;
  }
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
