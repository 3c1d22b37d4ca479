import { print } from "./print.ts";

/** What became of the tests of one run. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** Prints the line that every run of tests ends with. */
export function printCounts({ passed, failed, skipped }: Counts): void {
  print(`${passed} passed, ${failed} failed, ${skipped} skipped`);
}

/** Appends the counts to the file that COUNTS_FILE names, for whoever adds up several runs. */
export function noteCounts(suite: string, { passed, failed, skipped }: Counts): void {
  const file = Deno.env.get("COUNTS_FILE");
  if (file) Deno.writeTextFileSync(file, `${suite} ${passed} ${failed} ${skipped}\n`, { append: true });
}
