import type { Menus } from "../menu/menu.ts";
import { type Reading, Scanner } from "./scanner.ts";
import { parseStatement } from "./statements.ts";
import type { Statement } from "./syntax.ts";

/**
 * Reads the text of an exec line by line. Each line is read completely before any of it runs; a line end inside quotes,
 * brackets or braces belongs to the line.
 */
export class Parser {
  readonly #reading: Reading;

  constructor(text: string, menus: Menus) {
    const scanner = new Scanner(text);
    this.#reading = {
      scanner,
      menus,
      menu: "",
      block: () => parseBlock(this.#reading),
    };
  }

  /** The source text, for positions in it. */
  get scanner(): Scanner {
    return this.#reading.scanner;
  }

  /** Whether every line was read. */
  get finished(): boolean {
    return this.#reading.scanner.finished;
  }

  /**
   * Reads the next line.
   *
   * @throws {Refusal} when it is invalid.
   */
  line(): Statement[] {
    const { scanner } = this.#reading;
    const statements = parseSequence(this.#reading, /[; \t]*/y);
    if (!scanner.finished && scanner.match(/\r\n|\r|\n/y) === "") throw scanner.syntaxError();
    return statements;
  }
}

/** Inside brackets and braces a line end separates commands and closes nothing. */
function parseBlock(reading: Reading): Statement[] {
  const menu = reading.menu;
  const statements = parseSequence(reading, /[; \t\r\n]*/y);
  reading.menu = menu;
  return statements;
}

function parseSequence(reading: Reading, separators: RegExp): Statement[] {
  const { scanner } = reading;
  const statements: Statement[] = [];
  for (;;) {
    scanner.match(separators);
    if (scanner.match(/#[^\r\n]*/y) !== "") continue;
    if (scanner.atEndOfCommand) return statements;
    statements.push(parseStatement(reading));
    scanner.skipBlanks();
    if (!scanner.atEndOfCommand) throw scanner.expectedEndOfCommand();
    if (scanner.peek(separators) === "") return statements;
  }
}
