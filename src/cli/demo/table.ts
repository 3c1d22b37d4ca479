/** One line of the demo's table. */
export interface StepRow {
  readonly step: string;
  readonly milliseconds: number;
  /** Router commands (exec requests) that the step cost. */
  readonly commands: number;
  readonly note: string;
}

/** The rows as an aligned table with a heading. */
export function formatTable(rows: readonly StepRow[]): string[] {
  const cells = rows.map((row) => [row.step, row.milliseconds.toFixed(0), String(row.commands), row.note]);
  const table = [["step", "ms", "router commands", ""], ...cells];
  const widths = [0, 1, 2].map((column) => Math.max(...table.map((row) => row[column]!.length)));
  return table.map(([step, ms, commands, note]) =>
    `${step!.padEnd(widths[0]!)}  ${ms!.padStart(widths[1]!)}  ${commands!.padStart(widths[2]!)}  ${note}`
      .trimEnd()
  );
}
