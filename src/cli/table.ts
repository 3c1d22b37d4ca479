/**
 * Formats rows as lines of columns, each as wide as its longest cell.
 *
 * @param numeric the columns to align to the right, counted from 0
 */
export function alignColumns(
  rows: readonly (readonly string[])[],
  numeric: readonly number[] = [],
): string[] {
  const widths = rows[0]?.map((_, at) => Math.max(...rows.map((row) => row[at]!.length))) ?? [];
  const align = (cell: string, at: number) =>
    numeric.includes(at) ? cell.padStart(widths[at]!) : cell.padEnd(widths[at]!);
  return rows.map((row) => row.map(align).join("  ").trimEnd());
}
