import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { UnsettledChanges } from "./unsettled.ts";

Deno.test("a change is unsettled for its volume and comment alone, and for ten minutes", async () => {
  const clock = new FakeClock();
  const changes = new UnsettledChanges(clock);
  changes.remember("a", "old");
  assert.equal(changes.mayStillCome("a", "old"), true);
  assert.equal(changes.mayStillCome("a", "new"), false);
  assert.equal(changes.mayStillCome("b", "old"), false);
  await clock.advance(599_000);
  assert.equal(changes.mayStillCome("a", "old"), true);
  changes.remember("b", "old");
  await clock.advance(1_000);
  assert.equal(changes.mayStillCome("a", "old"), false);
  assert.equal(changes.mayStillCome("b", "old"), true);
});

Deno.test("a change that is sent again is unsettled from then on", async () => {
  const clock = new FakeClock();
  const changes = new UnsettledChanges(clock);
  changes.remember("a", "old");
  changes.remember("b", "old");
  await clock.advance(400_000);
  changes.remember("a", "old");
  await clock.advance(400_000);
  assert.equal(changes.mayStillCome("a", "old"), true);
  assert.equal(changes.mayStillCome("b", "old"), false);
});
