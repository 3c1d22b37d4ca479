import { toText, type Value } from "../value.ts";

/** A letter before an item, and its property. */
export interface FlagLetter {
  readonly letter: string;
  readonly word: string;
  readonly property: string;
}

/** How the items of a menu are printed for people, as on RouterOS 7.24. */
export interface TextForm {
  /** Letters by the column that they share. */
  readonly flags: readonly (readonly FlagLetter[])[];
  /** Columns of a table; those with a value are shown. */
  readonly columns: readonly string[];
  /** Properties that `detail` prints in quotes. */
  readonly quoted: ReadonlySet<string>;
  /** Numbers that are printed in groups of three digits. */
  readonly grouped: ReadonlySet<string>;
  /** Formats properties that `detail` prints in another way. */
  write(name: string, value: Value): string | undefined;
}

/** An item as it is printed. */
interface PrintedRow {
  /** Undefined when the item has no such property. */
  value(property: string): Value | undefined;
}

/** An item and its position among all. */
export interface NumberedRow {
  readonly row: PrintedRow;
  readonly number: number;
}

/** The default width of a terminal. */
export const defaultWidth = 80;

/** `print`: a legend of the letters that occur, the columns that have values, and a line for each item. */
export function printTable(
  items: readonly NumberedRow[],
  form: TextForm,
  names?: readonly string[],
): string[] {
  if (items.length === 0) return [];
  const columns = (names ?? form.columns).filter((name) =>
    items.some(({ row }) => hasValue(row.value(name)))
  );
  const groups = groupsIn(items, form);
  const numberWidth = String(items.at(-1)!.number).length;
  const cells = columns.map((name) => {
    const texts = items.map(({ row }) => cellText(row.value(name), form.grouped.has(name)));
    const isNumber = items.some(({ row }) => typeof row.value(name) === "bigint");
    const header = name.toUpperCase();
    const width = Math.max(header.length, ...texts.map(({ length }) => length));
    const align = (text: string) => isNumber ? text.padStart(width) : text.padEnd(width);
    return { header: align(header), texts: texts.map(align) };
  });
  const line = (start: string, texts: readonly string[]) => `${start} ${texts.join("  ")}`.trimEnd();
  const start = "#".padEnd(numberWidth + (groups.length === 0 ? 0 : 1 + groups.length));
  return [
    ...legendLines(groups),
    `Columns: ${columns.map((name) => name.toUpperCase()).join(", ")}`,
    line(start, cells.map(({ header }) => header)),
    ...items.map(({ row, number }, index) =>
      line(startOf(row, number, numberWidth, groups), cells.map(({ texts }) => texts[index]!))
    ),
  ];
}

/**
 * `print detail`: every property of an item, with line breaks between properties, and a line of one blank between
 * items.
 */
export function printDetail(
  items: readonly NumberedRow[],
  properties: readonly string[],
  form: TextForm,
  width = defaultWidth,
): string[] {
  if (items.length === 0) return [];
  const groups = groupsIn(items, form);
  const numberWidth = String(items.at(-1)!.number).length;
  const lines = items.flatMap(({ row, number }) => {
    const start = startOf(row, number, numberWidth, groups);
    const pairs = properties.flatMap((name) => {
      const value = row.value(name);
      return value === undefined ? [] : [`${name}=${detailText(name, value, form)}`];
    });
    return [...wrapped(start, pairs, width), " "];
  });
  return [...legendLines(groups), ...lines.slice(0, -1)];
}

function wrapped(start: string, pairs: readonly string[], width: number): string[] {
  const lines = [start];
  for (const pair of pairs) {
    const last = lines.at(-1)!;
    if (last === start && lines.length === 1 || last.length + 1 + pair.length < width) {
      lines[lines.length - 1] = `${last} ${pair}`;
    } else lines.push(" ".repeat(start.length + 1) + pair);
  }
  return lines;
}

function detailText(name: string, value: Value, form: TextForm): string {
  const own = form.write(name, value);
  if (own !== undefined) return own;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "bigint" && form.grouped.has(name)) return groupDigits(value);
  return form.quoted.has(name) ? `"${toText(value)}"` : toText(value);
}

function cellText(value: Value | undefined, isGrouped: boolean): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "bigint" && isGrouped ? groupDigits(value) : toText(value);
}

function hasValue(value: Value | undefined): boolean {
  return value !== undefined && value !== null && value !== "";
}

function groupDigits(value: bigint): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, " ");
}

/** The letters that occur, by column; a letter that never occurs has neither a column nor a place in the legend. */
function groupsIn(items: readonly NumberedRow[], { flags }: TextForm): readonly (readonly FlagLetter[])[] {
  return flags
    .map((group) => group.filter(({ property }) => items.some(({ row }) => row.value(property) === true)))
    .filter((group) => group.length > 0);
}

function startOf(
  row: PrintedRow,
  number: number,
  numberWidth: number,
  groups: readonly (readonly FlagLetter[])[],
): string {
  const letters = groups.map((group) =>
    group.find(({ property }) => row.value(property) === true)?.letter ?? " "
  );
  const place = String(number).padEnd(numberWidth);
  return letters.length === 0 ? place : `${place} ${letters.join("")}`;
}

/** A column's letters are joined by commas, columns by semicolons; a full line ends without one. */
function legendLines(groups: readonly (readonly FlagLetter[])[]): string[] {
  const texts = groups.map((group) => group.map(({ letter, word }) => `${letter} - ${word}`).join(", "));
  const lines: string[] = [];
  for (const text of texts) {
    const last = lines.at(-1);
    if (last === undefined) lines.push(`Flags: ${text}`);
    else if (last.length + 2 + text.length < defaultWidth) lines[lines.length - 1] = `${last}; ${text}`;
    else lines.push(" ".repeat("Flags: ".length) + text);
  }
  return lines;
}
