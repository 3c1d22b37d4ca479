import type { Property, Row } from "../menu/menu.ts";
import { toText } from "../value.ts";
import type { Numbered } from "./detail.ts";
import { toHuman } from "./human.ts";
import type { Legend } from "./legend.ts";

/** Writes items as plain `print` does: a legend, the columns that hold anything, and one line an item. */
export function toTable(
  items: readonly Numbered[],
  properties: readonly Property[],
  legend: Legend,
): string[] {
  if (items.length === 0) return [...legend.lines];
  const columns = properties.map((property) => makeColumn(property, items.map(({ row }) => row)))
    .filter((column) => column.cells.some((cell) => cell !== ""));
  const numberWidth = Math.max(...items.map(({ number }) => String(number).length));
  const lettersWidth = legend.letters(items[0]!.row).length;
  const margin = numberWidth + 1 + (lettersWidth > 0 ? lettersWidth + 1 : 0);
  const heading = columns.map((column) => column.fit(column.title)).join("  ");
  const lines = [
    ...legend.lines,
    `Columns: ${columns.map((column) => column.title).join(", ")}`,
    `${"#".padEnd(margin)}${heading}`.trimEnd(),
  ];
  items.forEach(({ number, row }, index) => {
    const comment = toText(row.value("comment") ?? null);
    if (comment !== "") lines.push(`;;; ${comment}`);
    const start = `${String(number).padEnd(numberWidth)} ${legend.letters(row)}`.padEnd(margin);
    lines.push(`${start}${columns.map((column) => column.fit(column.cells[index]!)).join("  ")}`.trimEnd());
  });
  return lines;
}

/** Writes the properties of a menu without items, names right-aligned before a colon. */
export function toProperties(row: Row, properties: readonly Property[]): string[] {
  const shown = properties.filter(({ name }) => row.value(name) !== undefined);
  const width = Math.max(...shown.map(({ name }) => name.length)) + 2;
  return shown.map(({ name, notation }) =>
    `${name.padStart(width)}: ${toHuman(row.value(name) ?? null, notation)}`
  );
}

interface Column {
  readonly title: string;
  readonly cells: readonly string[];
  fit(text: string): string;
}

function makeColumn({ name, notation }: Property, rows: readonly Row[]): Column {
  const title = name.toUpperCase();
  const values = rows.map((row) => row.value(name) ?? null);
  const cells = values.map((value) => toHuman(value, notation));
  const width = cells.reduce((most, cell) => Math.max(most, cell.length), title.length);
  const numeric = values.some((value) => typeof value === "bigint");
  return { title, cells, fit: (text) => numeric ? text.padStart(width) : text.padEnd(width) };
}
