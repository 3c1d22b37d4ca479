// Shared by the property tests: how often each runs, and how a failure is repeated.
import fc from "fast-check";
import { isLong } from "../support/long.ts";

/** Seed of every property: PROPERTY_SEED repeats a failure, otherwise each run draws a new seed. */
const seed = whole("PROPERTY_SEED") ?? Math.floor(Math.random() * 2 ** 31);
/** How many times more often than by default each property is tried. */
const times = whole("PROPERTY_TIMES") ?? (isLong ? 50 : 1);

/** Registers a test that tries a property on `runs` random examples. */
export function propertyTest<Example extends [unknown, ...unknown[]]>(
  name: string,
  runs: number,
  property: fc.IProperty<Example> | fc.IAsyncProperty<Example>,
): void {
  Deno.test(name, async () => {
    const details = await fc.check(property as fc.IAsyncProperty<Example>, { seed, numRuns: runs * times });
    if (!details.failed) return;
    const again = `PROPERTY_SEED=${seed} PROPERTY_TIMES=${times} make test/some T=tests/property`;
    throw new Error(`${fc.defaultReportMessage(details)}\nAgain: ${again}`, { cause: details.errorInstance });
  });
}

/** A position in a text or a list: a number from 0 to below 1, all equally likely. */
export const location: fc.Arbitrary<number> = fc.noBias(fc.nat(2 ** 20 - 1)).map((number) =>
  number / 2 ** 20
);

function whole(name: string): number | undefined {
  const text = Deno.env.get(name);
  if (text === undefined || text === "") return undefined;
  if (/^-?\d{1,10}$/.test(text)) return Number(text);
  throw new RangeError(`${name} must be a whole number, not ${JSON.stringify(text)}.`);
}
