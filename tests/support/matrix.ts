// A table of outcomes, one character each, for the runs that try everything on everything.
import { type Counts, noteCounts, printCounts } from "../../tools/counts.ts";
import { print } from "../../tools/print.ts";

/** What became of one cell: as usual, otherwise as declared, failed. */
export type Mark = "." | "o" | "F";

/** One thing to be tried. */
export interface Cell {
  readonly row: string;
  readonly column: string;
  /** What is declared to come of it where that is not the usual. */
  readonly because?: string;
  /** Throws when anything else comes of it; gives what else was declared, where that shows only now. */
  run(): Promise<string | void>;
  /** Said of it when it fails, beside its error. */
  readonly hint?: string;
}

/**
 * Tries every cell, prints the table and what failed, and notes the counts.
 *
 * @param tracks the cells of a track are tried one after the other, `parallel` tracks at a time
 */
export async function runMatrix(
  suite: string,
  tracks: readonly (readonly Cell[])[],
  parallel: number,
): Promise<Counts> {
  const marks = new Map<Cell, Mark>();
  const reasons = new Map<string, number>();
  const failures: string[] = [];
  const attempt = async (cell: Cell) => {
    try {
      const because = await cell.run() ?? cell.because;
      marks.set(cell, because === undefined ? "." : "o");
      if (because !== undefined) reasons.set(because, (reasons.get(because) ?? 0) + 1);
    } catch (error) {
      marks.set(cell, "F");
      failures.push(describeFailure(cell, error));
    }
  };
  const waiting = [...tracks];
  const work = async () => {
    for (let track = waiting.shift(); track !== undefined; track = waiting.shift()) {
      for (const cell of track) await attempt(cell);
    }
  };
  await Promise.all(Array.from({ length: parallel }, work));
  const cells = tracks.flat();
  printTable(cells, marks);
  if (reasons.size > 0) print("otherwise:");
  for (const [because, times] of reasons) print(`${String(times).padStart(6)} × ${because}`);
  for (const failure of failures) print(`\n${failure}`);
  const passed = cells.length - failures.length;
  const counts = { passed, failed: failures.length, skipped: 0 };
  noteCounts(suite, counts);
  print("");
  printCounts(counts);
  return counts;
}

function describeFailure({ row, column, hint }: Cell, error: unknown): string {
  const lines = textsOf(error).flatMap((text) => text.split("\n").slice(0, 30)).map((line) => `    ${line}`);
  return [`FAILED ${row} × ${column}`, ...hint === undefined ? [] : [`  ${hint}`], ...lines].join("\n");
}

/** What went wrong while something was put away comes with what had gone wrong before. */
function textsOf(error: unknown): string[] {
  if (error instanceof SuppressedError) return [...textsOf(error.suppressed), ...textsOf(error.error)];
  return [error instanceof Error ? error.stack ?? error.message : String(error)];
}

function printTable(cells: readonly Cell[], marks: ReadonlyMap<Cell, Mark>): void {
  const rows = [...new Set(cells.map(({ row }) => row))];
  const columns = [...new Set(cells.map(({ column }) => column))];
  const width = Math.max(...rows.map((row) => row.length));
  print("");
  columns.forEach((column, index) => {
    print(`${"".padEnd(width)}  ${"│ ".repeat(index)}┌ ${column}`);
  });
  for (const row of rows) {
    const line = columns.map((column) =>
      marksOf(cells.filter((c) => c.row === row && c.column === column), marks)
    );
    const failed = line.filter((mark) => mark === "F").length;
    print(`${row.padEnd(width)}  ${line.join(" ")}${failed === 0 ? "" : `  ${failed} failed`}`);
  }
  const count = (mark: Mark) => [...marks.values()].filter((one) => one === mark).length;
  print(
    `\n${rows.length} rows, ${columns.length} columns: ${count(".")} as usual (.), ${
      count("o")
    } otherwise (o), ` +
      `${count("F")} failed (F)`,
  );
}

/** Several cells in one place show the worst of them; no cell at all is a blank. */
function marksOf(cells: readonly Cell[], marks: ReadonlyMap<Cell, Mark>): Mark | " " {
  const found = cells.map((cell) => marks.get(cell));
  return (["F", "o", "."] as const).find((mark) => found.includes(mark)) ?? " ";
}

/** A whole number from the environment. */
export function environmentNumber(name: string, fallback: number): number {
  const text = Deno.env.get(name) ?? "";
  if (text === "") return fallback;
  if (/^[0-9]{1,10}$/.test(text)) return Number(text);
  throw new RangeError(`${name} must be a whole number, not ${JSON.stringify(text)}.`);
}
