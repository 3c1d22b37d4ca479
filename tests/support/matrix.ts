// A table of outcomes, one character each, for runs that combine everything with everything. The cells are distributed
// to workers, one for each core.
import { type Counts, noteCounts, printCounts } from "../../tools/counts.ts";
import { print } from "../../tools/print.ts";

/** The result of one cell: as usual, otherwise as declared, failed. */
type Mark = "." | "o" | "F";

/** One combination to test. */
export interface Cell {
  readonly row: string;
  readonly column: string;
  /** The declared result, if it is not the usual one. */
  readonly because?: string;
  /** Throws for any other result; returns another declared result if that shows only now. */
  run(): Promise<string | void>;
  /** Printed with its error when it fails. */
  readonly hint?: string;
}

/** A suite of cells. One worker runs the cells of a track one after the other. */
export interface Matrix {
  readonly suite: string;
  readonly tracks: readonly (readonly Cell[])[];
  /** Tracks at a time in each worker. */
  readonly parallel: number;
}

/** The contents of a matrix's module. Every worker runs that module again. */
export interface MatrixPlan<Facts> {
  /** Gathers the facts that the matrices depend on, which are passed to the workers. They can be cloned. */
  readonly gather: () => Promise<Facts>;
  /** Returns the same matrices in every worker. */
  readonly matrices: (facts: Facts) => readonly Matrix[] | Promise<readonly Matrix[]>;
  /** Cleans up in every worker at the end. */
  readonly close?: () => Promise<void>;
}

/** The position of a track: the number of its matrix, and its own. */
interface Place {
  readonly matrix: number;
  readonly track: number;
}

/** A worker's report about a cell. */
interface Result extends Place {
  readonly cell: number;
  readonly milliseconds: number;
  readonly because?: string;
  readonly error?: string;
}

type ToWorker<Facts> = { readonly facts: Facts } | Place | { readonly end: true };
type FromWorker = { readonly asks: number } | Result | { readonly ended: true };

/** A worker's channel to its parent; Deno's types only contain those of a window. */
const parent = globalThis as unknown as {
  onmessage: ((event: MessageEvent) => void) | null;
  postMessage(message: FromWorker): void;
  close(): void;
};
const isWorker = globalThis.constructor.name === "DedicatedWorkerGlobalScope";

/** Whether the complete list is wanted instead of the most useful part. */
export const wantsAll = environmentNumber("MATRIX_ALL", 0) > 0;

/** Which rows, or rows and columns, are wanted. */
export const wantedRows = new RegExp(Deno.env.get("MATRIX_ONLY") ?? "");

/**
 * Runs every cell of the matrices on all cores, prints their tables and failures, and notes the counts. The module that
 * calls this ends with it. Returns whether all succeeded.
 *
 * @param url the module that calls this
 */
export async function runMatrices<Facts>(url: string, plan: MatrixPlan<Facts>): Promise<boolean> {
  if (isWorker) return serve(plan);
  const facts = await plan.gather();
  const matrices = await plan.matrices(facts);
  const outcomes = matrices.map(() => new Outcome());
  const queues = matrices.map(({ tracks }) => tracks.map((_, track) => track));
  const workers = Array.from({ length: Math.max(1, navigator.hardwareConcurrency) }, () => {
    const worker = new Worker(url, { type: "module" });
    const ended = Promise.withResolvers<void>();
    const send = (message: ToWorker<Facts>) => worker.postMessage(message);
    worker.onerror = (event) => ended.reject(new Error(event.message));
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
      if ("ended" in data) ended.resolve();
      else if ("asks" in data) {
        const track = queues[data.asks]!.shift();
        send(track === undefined ? { end: true } : { matrix: data.asks, track });
      } else outcomes[data.matrix]!.add(matrices[data.matrix]!.tracks[data.track]![data.cell]!, data);
    };
    send({ facts });
    return ended.promise.finally(() => worker.terminate());
  });
  await Promise.all(workers);
  const some = matrices.flatMap((matrix, index) => matrix.tracks.length === 0 ? [] : [{ matrix, index }]);
  const counts = some.map(({ matrix, index }) => outcomes[index]!.report(matrix));
  return counts.length > 0 && counts.every(({ failed }) => failed === 0);
}

/** Runs tracks in a worker as long as there are any. */
async function serve<Facts>({ matrices, close }: MatrixPlan<Facts>): Promise<never> {
  const ended = Promise.withResolvers<never>();
  let parts: readonly Matrix[] = [];
  let busy = 0;
  parent.onmessage = async ({ data }: MessageEvent<ToWorker<Facts>>) => {
    if ("facts" in data) {
      parts = await matrices(data.facts);
      parts.forEach(({ parallel }, asks) => {
        for (let count = 0; count < parallel; count++, busy++) parent.postMessage({ asks });
      });
      return;
    }
    if ("track" in data) {
      await tryTrack(parts, data);
      return parent.postMessage({ asks: data.matrix });
    }
    if (--busy > 0) return;
    await close?.();
    parent.postMessage({ ended: true });
  };
  return await ended.promise;
}

async function tryTrack(matrices: readonly Matrix[], location: Place): Promise<void> {
  for (const [cell, { run, because }] of matrices[location.matrix]!.tracks[location.track]!.entries()) {
    const startedMs = performance.now();
    const outcome = await run().then(
      (found) => ({ because: found ?? because }),
      (error: unknown) => ({ error: textsOf(error).join("\n") }),
    );
    parent.postMessage({ ...location, cell, milliseconds: performance.now() - startedMs, ...outcome });
  }
}

/** An error during a cleanup contains the error before it. */
function textsOf(error: unknown): string[] {
  if (error instanceof SuppressedError) return [...textsOf(error.suppressed), ...textsOf(error.error)];
  return [error instanceof Error ? error.stack ?? error.message : String(error)];
}

/** The results of a matrix so far. */
class Outcome {
  readonly #marks = new Map<Cell, Mark>();
  readonly #reasons = new Map<string, number>();
  readonly #failures: string[] = [];
  readonly #milliseconds = new Map<string, number>();

  add(cell: Cell, { because, error, milliseconds }: Result): void {
    this.#marks.set(cell, error !== undefined ? "F" : because === undefined ? "." : "o");
    if (because !== undefined) this.#reasons.set(because, (this.#reasons.get(because) ?? 0) + 1);
    if (error !== undefined) this.#failures.push(describeFailure(cell, error));
    this.#milliseconds.set(cell.row, (this.#milliseconds.get(cell.row) ?? 0) + milliseconds);
  }

  /** Prints all results; a cell without a result has failed. */
  report({ suite, tracks }: Matrix): Counts {
    const cells = tracks.flat();
    for (const cell of cells.filter((cell) => !this.#marks.has(cell))) {
      this.add(cell, { matrix: 0, track: 0, cell: 0, milliseconds: 0, error: "it was not tried" });
    }
    printTable(cells, this.#marks);
    const slowest = [...this.#milliseconds].toSorted(([, a], [, b]) => b - a).slice(0, 5);
    print(`slowest: ${slowest.map(([row, ms]) => `${row} ${(ms / 1000).toFixed(0)} s`).join(", ")}`);
    if (this.#reasons.size > 0) print("otherwise:");
    for (const [because, times] of this.#reasons) print(`${String(times).padStart(6)} × ${because}`);
    for (const failure of this.#failures) print(`\n${failure}`);
    const failed = this.#failures.length;
    const counts = { passed: cells.length - failed, failed, skipped: 0 };
    noteCounts(suite, counts);
    print("");
    printCounts(counts);
    return counts;
  }
}

function describeFailure({ row, column, hint }: Cell, error: string): string {
  const lines = error.split("\n").slice(0, 60).map((line) => `    ${line}`);
  return [`FAILED ${row} × ${column}`, ...hint === undefined ? [] : [`  ${hint}`], ...lines].join("\n");
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

/** Several cells in one place show the worst result; no cell at all is a blank. */
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
