import assert from "node:assert/strict";
import { SingleFlight } from "./single_flight.ts";

Deno.test("SingleFlight.run() shares work of one key while it runs, also its failure, and begins it anew afterwards", async () => {
  const flights = new SingleFlight<number>();
  let begun = 0;
  const ends = Array.from({ length: 3 }, () => Promise.withResolvers<number>());
  const run = (key?: string) => flights.run(() => ends[begun++]!.promise, key);
  const [first, joined, other] = [run(), run(), run("other")];
  assert.equal(begun, 2);
  ends[0]!.reject(new Error("failed"));
  ends[1]!.resolve(2);
  await assert.rejects(first, /failed/);
  await assert.rejects(joined, /failed/);
  assert.equal(await other, 2);
  ends[2]!.resolve(3);
  assert.equal(await run(), 3);
});
