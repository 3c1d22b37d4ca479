import type { Bench } from "../kit/suite.ts";

/** Whether everything is tried that a suite knows, not a few of it: GUEST_WHOLE=1, for the night. */
export function isWhole(): boolean {
  return Deno.env.get("GUEST_WHOLE") === "1";
}

/** What a suite draws its random numbers from: GUEST_SEED, or the same one every time unless everything is tried. */
export function seedOf(bench: Bench): number {
  const given = Deno.env.get("GUEST_SEED");
  const seed = given !== undefined
    ? Number(given)
    : isWhole()
    ? crypto.getRandomValues(new Uint32Array(1))[0]!
    : 20261121;
  bench.report.say(`GUEST_SEED=${seed}`);
  return seed;
}
