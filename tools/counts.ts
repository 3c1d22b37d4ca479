// The common form in which every runner (deno test, csi-sanity, matrices, guests, clusters) reports its counts.

import { print } from "./print.ts";

/** The results of one run. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** A line for each failure, for the end of a long run; none if the runner has printed them already. */
  readonly failures?: readonly string[];
}

/** Prints the failures, and the line with which every run of tests ends. */
export function printCounts({ passed, failed, skipped, failures = [] }: Counts): void {
  for (const failure of failures) print(`failed: ${failure}`);
  print(`${passed} passed, ${failed} failed, ${skipped} skipped`);
}

/** Appends the counts to the file in COUNTS_FILE, to add up several runs. */
export function noteCounts(suite: string, { passed, failed, skipped }: Counts): void {
  const file = Deno.env.get("COUNTS_FILE");
  if (file) Deno.writeTextFileSync(file, `${suite} ${passed} ${failed} ${skipped}\n`, { append: true });
}

/** The counts of several runs as those of one. */
export function sumOf(all: readonly Counts[]): Counts {
  const sum = (key: "passed" | "failed" | "skipped") => all.reduce((total, counts) => total + counts[key], 0);
  return {
    passed: sum("passed"),
    failed: sum("failed"),
    skipped: sum("skipped"),
    failures: all.flatMap(({ failures }) => failures ?? []),
  };
}
