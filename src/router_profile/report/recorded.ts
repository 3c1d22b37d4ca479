import {
  hidden,
  type Names,
  namingProperties,
  ownNumbers,
  publicBoard,
  publicVersion,
  publicWords,
  wordProperties,
} from "./allowed.ts";
import { OwnText, showLine } from "./own_text.ts";
import type { Json, RecordedAnswer } from "./report.ts";

/** The menus whose commands are recorded; the doctor reads others, in which everything is the owner's. */
const recordedMenus = /^(?:disk|file|system\/resource|system\/package)(?:$|\/)/;
/** A value in a command. */
export const quoted = /"((?:[^"\\]|\\.)*)"/g;
const frameMark = /^ ?[0-9a-f]{12}(?:\d{1,2} (?:- [0-9a-f]{12})?)?$/;
const keyForm = /^[a-z.][a-z0-9.-]{0,40}$/;
/** How many lines beside the frames are recorded. */
const maxLines = 20;
/** Flags of disks and their legend, numbers of rows, and the groups of digits in sizes. */
const legendForm =
  /^(?:Flags:|-|[A-Za-z]{1,2},?|\d{1,3}|(?:BLOCK-DEVICE|NVME-TCP-EXPORT|MOUNTED|FORMATTING|PARTITION|DISABLED|SWAP-ENABLED|GUID-PARTITION-TABLE|INACTIVE|COMPRESSED)[;,]?)$/;
const plainWords: ReadonlySet<string> = new Set(["", "yes", "no", "true", "false", "-", "none"]);

/** Records commands and answers: only what is on the list of what may be recorded. */
export class Recording {
  readonly #own: OwnText;
  /** Everything that was not recorded. */
  readonly #hidden = new Set<string>();

  constructor(names: Names) {
    this.#own = new OwnText(names);
  }

  /** The texts that were hidden so far: none of them may be in a report. */
  get hidden(): ReadonlySet<string> {
    return this.#hidden;
  }

  /** A command with own values only; undefined for one of a menu that is not recorded. */
  command(text: string): string | undefined {
    if (!menusOf(text).every((menu) => recordedMenus.test(menu))) {
      for (const [, value = ""] of text.matchAll(quoted)) this.#hide(unescape(value));
      return undefined;
    }
    return text.replace(quoted, (_whole, escaped: string, offset: number) => {
      const [, property = "", operator = ""] = /([a-z][a-z0-9.-]*)(!?=|~)$/.exec(text.slice(0, offset)) ?? [];
      return `"${escape(this.#value(property, operator, unescape(escaped)))}"`;
    });
  }

  /**
   * What a router printed for a command.
   *
   * @param text the command as it was sent
   * @param output both streams
   */
  answer(text: string, output: string): RecordedAnswer {
    const [, nonce] = /:put \(?"([0-9a-f]{12})\d+ /.exec(text) ?? [];
    const count = nonce === undefined ? 0 : text.split(`:put ("${nonce}`).length - 1 || 1;
    const frames: Json[] = Array.from({ length: count }, () => null);
    const lines: string[] = [];
    for (const line of output.split(/[\r\n]+/)) {
      const frame = nonce === undefined ? undefined : frameOf(line, nonce);
      if (frame === undefined || frame.index >= count) lines.push(line);
      else {
        lines.push(frame.before);
        frames[frame.index] = this.#frame(frame.payload);
      }
    }
    const shown = lines.filter((line) => line.trim() !== "").slice(0, maxLines).map((line) =>
      this.#line(line)
    );
    return { frames, text: shown };
  }

  /** What a router printed of an own disk for people: `name=value` pairs, flags and their legend. */
  detail(text: string): string {
    const pairs = /([a-z][a-z0-9-]*)=("(?:[^"\\]|\\.)*"|[^\s"]*)/g;
    const shown: string[] = [];
    const rest = text.replace(pairs, (_pair, name: string, value: string) => {
      const bare = /^"(.*)"$/s.exec(value)?.[1] ?? value;
      const isSize = /^(?:\d{1,3}|\d+(?:\.\d)?[KMGT]iB)$/.test(bare);
      const form = isSize ? bare : escape(this.#text(name, unescape(bare)));
      shown.push(`${name}=${value.replace(bare, () => form)}`);
      return "\0";
    });
    const legend = rest.replaceAll(/[^\s\0]+/g, (word) => legendForm.test(word) ? word : hidden);
    return legend.replaceAll("\0", () => shown.shift() ?? hidden);
  }

  /** A sentence of this program about a failure, for people: plain words only, without what a router or a tool said. */
  reason(message: string): string {
    // A call's failure begins with the number and the name of its code.
    const [, code = "", rest = ""] = /^(?:\d+ ([A-Z_]+): )?(.*)$/s.exec(message) ?? [];
    const sentence = rest.replaceAll(quoted, `"${hidden}"`).split(/: |; |\n/)[0]!.slice(0, 300);
    const words = `${code} ${sentence}`.trim().split(" ");
    return words.map((word) => /^[A-Za-z_…"'(),.%-]+$|^\d{1,6}$/.test(word) ? word : hidden).join(" ");
  }

  #value(property: string, operator: string, value: string): string {
    if (frameMark.test(value)) return value;
    if (property === "" && operator === "") {
      return this.#line(value);
    }
    if (ownNumbers.has(property) && /^\d{1,16}$/.test(value)) return value;
    if (plainWords.has(value) || (wordProperties.has(property) && isWords(value)) || value === "directory") {
      return value;
    }
    const shown = operator === "~" ? this.#own.showPattern(property, value) : this.#own.show(property, value);
    if (shown === hidden) this.#hide(value);
    return shown;
  }

  #frame(payload: string): Json {
    if (payload === "-") return "-";
    let value: Json;
    try {
      value = JSON.parse(payload);
    } catch {
      this.#hide(payload);
      return hidden;
    }
    if (!Array.isArray(value)) return this.#json("", value);
    return value.flatMap((item: Json) => {
      const shown = this.#json("", item);
      return isForeign(shown) ? [] : [shown];
    });
  }

  #json(property: string, value: Json): Json {
    if (typeof value === "number") return property === "" || ownNumbers.has(property) ? value : 0;
    if (typeof value === "string") return this.#text(property, value);
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((item) => this.#json(property, item));
    const entries = Object.entries(value).map(([key, item]): [string, Json] => {
      if (!keyForm.test(key)) this.#hide(key);
      return [keyForm.test(key) ? key : hidden, this.#json(key, item)];
    });
    return Object.fromEntries(entries);
  }

  #text(property: string, value: string): string {
    if (plainWords.has(value)) return value;
    if (property === "version") return publicVersion(value);
    // The report's head has it: here it would be a difference of every router from the simulator.
    if (property === "board-name" && publicBoard(value) !== "") return hidden;
    if (ownNumbers.has(property) && /^\d{1,16}$/.test(value)) return value;
    if (wordProperties.has(property) && isWords(value)) return value;
    const shown = this.#own.show(property, value);
    if (shown === hidden) this.#hide(value);
    return shown;
  }

  #line(line: string): string {
    // What is left of something longer is no name: it may be a word of RouterOS with a bracket.
    return showLine(line, this.#own, (word) => /^[\w.:@/-]+$/.test(word) && this.#hide(word));
  }

  #hide(text: string): void {
    if (text.length >= 4 && this.#hidden.size < 200_000) this.#hidden.add(text);
  }
}

function frameOf(line: string, nonce: string) {
  const match = new RegExp(`^(.*?)${nonce}(\\d{1,2}) (.*) ${nonce}$`).exec(line);
  if (match === null || match[3]!.includes(nonce)) return undefined;
  return { before: match[1]!, index: Number(match[2]), payload: match[3]! };
}

/** The menus of a command, by the words outside of its values. */
function menusOf(text: string): readonly string[] {
  const grammar = text.replaceAll(quoted, '""');
  return [...grammar.matchAll(/(?<![\w"=)])\/([a-z]+(?:[/ ][a-z]+)*)/g)].map(([, words]) =>
    words!.replaceAll(" ", "/")
  );
}

function isWords(text: string): boolean {
  return text === ".img file" ||
    text.split(/[,;:= ]+/).every((word) => publicWords.has(word) || /^\d{0,4}%?$/.test(word));
}

/** Whether a row names neither an object of the run nor the pool. */
function isForeign(row: Json): boolean {
  if (typeof row !== "object" || row === null || Array.isArray(row)) return false;
  const values = namingProperties.flatMap((name) => {
    const value = (row as { readonly [key: string]: Json })[name];
    return value === undefined || value === "" ? [] : [value];
  });
  return !values.some((value) => value !== hidden);
}

function unescape(text: string): string {
  return text.replaceAll(/\\(.)/g, "$1");
}

function escape(text: string): string {
  return text.replaceAll(/[\\"$]/g, "\\$&");
}
