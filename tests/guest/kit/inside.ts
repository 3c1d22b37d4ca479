// For test files that run in a guest: `await insideTest("…", async () => "what it showed")`, one after the other.

/** The beginning of a line for the host; all other lines are for people. */
export const eventMark = "@guest-test ";

/** A message to the host about a test in a guest. */
export type InsideEvent =
  | { readonly kind: "begin"; readonly name: string }
  | { readonly kind: "end"; readonly name: string; readonly milliseconds: number } & InsideOutcome;

/** The result of a test: what it showed, or why it failed. */
export type InsideOutcome = { readonly showed: string } | { readonly failure: string };

/** Runs one test in the guest and reports it to the host; a failure does not end the file. */
export async function insideTest(name: string, body: () => Promise<string> | string): Promise<boolean> {
  report({ kind: "begin", name });
  const started = performance.now();
  let outcome: InsideOutcome;
  try {
    outcome = { showed: await body() };
  } catch (error) {
    outcome = { failure: error instanceof Error ? error.stack ?? error.message : String(error) };
  }
  report({ kind: "end", name, milliseconds: Math.round(performance.now() - started), ...outcome });
  return "showed" in outcome;
}

function report(event: InsideEvent): void {
  let bytes = new TextEncoder().encode(`${eventMark}${JSON.stringify(event)}\n`);
  while (bytes.length > 0) bytes = bytes.subarray(Deno.stdout.writeSync(bytes));
}
