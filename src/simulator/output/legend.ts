import type { Flag, Row } from "../menu/menu.ts";

/** Which letters stand before the items of one print, and in which columns. */
export interface Legend {
  /** The lines above the items; none when there is no flag to explain. */
  readonly lines: readonly string[];
  /** The letters of an item, one place a column. */
  letters(row: Row): string;
}

const width = 80;

/**
 * Chooses the flags of a print: those that occur among its items, or, on older routers, all that there are.
 * Flags that share a column are separated by a comma, columns by a semicolon.
 */
export function makeLegend(flags: readonly Flag[], rows: readonly Row[], style: "present" | "all"): Legend {
  const shown = style === "all" ? flags : flags.filter((flag) => rows.some((row) => hasFlag(row, flag)));
  const columns = Map.groupBy(shown, (flag) => flag.column);
  const groups = [...columns.values()].map((group) =>
    group.map((flag) => `${flag.letter} - ${flag.legend}`).join(", ")
  );
  return {
    lines: groups.length === 0 ? [] : wrapGroups(groups),
    letters: (row) =>
      [...columns.values()].map((group) => group.find((flag) => hasFlag(row, flag))?.letter ?? " ").join(""),
  };
}

function hasFlag(row: Row, flag: Flag): boolean {
  return row.value(flag.property) === true;
}

function wrapGroups(groups: readonly string[]): string[] {
  const lines: string[] = [];
  let line = "Flags:";
  groups.forEach((group, index) => {
    const piece = index < groups.length - 1 ? `${group};` : group;
    if (line.length + 1 + piece.length > width) {
      lines.push(line);
      line = piece;
    } else line += ` ${piece}`;
  });
  return [...lines, line];
}
