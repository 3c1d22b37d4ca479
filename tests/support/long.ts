/** Whether random tests make many more rounds, and long ones run at all: `make test/long`. */
export const isLong = Deno.env.get("TEST_LONG") === "1";

/** Registers a test for `make test/long` only. */
export function longTest(definition: Deno.TestDefinition): void {
  if (isLong) Deno.test(definition);
}
