import type { Property, Row } from "../menu/menu.ts";
import { toText } from "../value.ts";
import { toHuman } from "./human.ts";
import type { Legend } from "./legend.ts";

/** An item together with its number, which is its place among all items and means nothing beyond this print. */
export interface Numbered {
  readonly number: number;
  readonly row: Row;
}

const width = 80;

/**
 * Writes items as `print detail` does: `name=value` pairs, wrapped at 80 columns wherever a blank stands, also inside
 * a value, and in the middle of a word that is longer than a line. Nothing that reads this back gets it all right.
 */
export function toDetail(
  items: readonly Numbered[],
  properties: readonly Property[],
  legend: Legend,
): string[] {
  const lines = [...legend.lines];
  items.forEach(({ number, row }, index) => {
    const prefix = `${String(number).padStart(2)} ${legend.letters(row)} `;
    if (index > 0) lines.push("");
    lines.push(...itemLines(prefix, row, properties));
  });
  return lines;
}

/** Writes items as `print terse` does: one line each, values bare, the comment first. */
export function toTerse(
  items: readonly Numbered[],
  properties: readonly Property[],
  legend: Legend,
): string[] {
  const ordered = properties.toSorted((a, b) => Number(b.name === "comment") - Number(a.name === "comment"));
  return items.map(({ number, row }) => {
    const pairs = ordered.flatMap((property) => pair(row, property, (text) => text));
    return `${String(number).padStart(2)} ${legend.letters(row)} ${pairs.join(" ")}`;
  });
}

function itemLines(prefix: string, row: Row, properties: readonly Property[]): string[] {
  const indent = " ".repeat(prefix.length);
  const comment = toText(row.value("comment") ?? null);
  const pairs = properties.filter(({ name }) => name !== "comment").flatMap((property) =>
    pair(row, property, quote)
  );
  const wrapped = wrap(pairs.join(" "), width - prefix.length);
  const lines = comment === "" ? wrapped : [`;;; ${comment}`, ...wrapped];
  return lines.map((line, index) => (index === 0 ? prefix : indent) + line);
}

function pair(row: Row, { name, notation }: Property, quoteText: (text: string) => string): string[] {
  const value = row.value(name);
  if (value === undefined || notation === "flag") return [];
  const text = toHuman(value, notation);
  return [`${name}=${notation === "quoted" ? quoteText(text) : text}`];
}

function quote(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}

/** Breaks text at blanks into lines of at most `room` characters; a longer word is broken in the middle. */
export function wrap(text: string, room: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    let rest = word;
    if (line !== "" && line.length + 1 + rest.length > room) {
      lines.push(line);
      line = "";
    } else if (line !== "") {
      line += " ";
    }
    for (; rest.length > room; rest = rest.slice(room)) lines.push(rest.slice(0, room));
    line += rest;
  }
  return [...lines, line];
}
