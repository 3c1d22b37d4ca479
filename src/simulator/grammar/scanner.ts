import { Buffer } from "node:buffer";
import type { Menus } from "../menu/menu.ts";
import { type Position, Refusal } from "../refusal.ts";
import type { Statement } from "./syntax.ts";

/** Reads the text of an exec, character by character. It knows blanks, words and positions, but no grammar. */
export class Scanner {
  readonly text: string;
  /** The offset of the next character. */
  offset = 0;

  constructor(text: string) {
    this.text = text;
  }

  /** The next character; "" at the end. */
  get next(): string {
    return this.text.charAt(this.offset);
  }

  /** Whether the text is at its end. */
  get finished(): boolean {
    return this.offset >= this.text.length;
  }

  /** Whether a command ends here: at `;`, at a line end, at a closing bracket or at the end of the text. */
  get atEndOfCommand(): boolean {
    return this.finished || ";\r\n]})".includes(this.next);
  }

  /** Skips blanks, but no line end: outside quotes that ends the command. */
  skipBlanks(): void {
    while (this.next === " " || this.next === "\t") this.offset++;
  }

  /** Skips `expected` if it is next, and returns whether it was. */
  take(expected: string): boolean {
    if (!this.text.startsWith(expected, this.offset)) return false;
    this.offset += expected.length;
    return true;
  }

  /** Skips what `pattern` matches here, and returns it; "" when it does not match. The pattern must be sticky. */
  match(pattern: RegExp): string {
    pattern.lastIndex = this.offset;
    const found = pattern.exec(this.text)?.[0] ?? "";
    this.offset += found.length;
    return found;
  }

  /** Returns what `pattern` matches here, without skipping it. The pattern must be sticky. */
  peek(pattern: RegExp): string {
    pattern.lastIndex = this.offset;
    return pattern.exec(this.text)?.[0] ?? "";
  }

  /** Line and column of an offset; columns count bytes. */
  position(offset: number = this.offset): Position {
    const before = this.text.slice(0, offset);
    const lines = before.split(/\r\n|\r|\n/);
    return { line: lines.length, column: Buffer.byteLength(lines.at(-1) ?? "") + 1 };
  }

  syntaxError(offset: number = this.offset): Refusal {
    return Refusal.syntaxError(this.position(offset));
  }

  expectedEndOfCommand(offset: number = this.offset): Refusal {
    return Refusal.expectedEndOfCommand(this.position(offset));
  }
}

/** The shared state of the grammar while a text is read. */
export interface Reading {
  readonly scanner: Scanner;
  readonly menus: Menus;
  /** Path of the menu in which commands without a leading slash are looked up. */
  menu: string;
  /** Reads the statements of a block up to its closing bracket, which is not read. */
  block(): Statement[];
}
