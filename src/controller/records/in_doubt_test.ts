import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { ChangesInDoubt } from "./in_doubt.ts";

Deno.test("a change is in doubt for its volume and comment alone, and for ten minutes", async () => {
  const clock = new FakeClock();
  const changes = new ChangesInDoubt(clock);
  changes.remember("a", "old");
  assert.equal(changes.mayStillApply("a", "old"), true);
  assert.equal(changes.mayStillApply("a", "new"), false);
  assert.equal(changes.mayStillApply("b", "old"), false);
  await clock.advance(599_000);
  assert.equal(changes.mayStillApply("a", "old"), true);
  changes.remember("b", "old");
  await clock.advance(1_000);
  assert.equal(changes.mayStillApply("a", "old"), false);
  assert.equal(changes.mayStillApply("b", "old"), true);
});

Deno.test("a change that is sent again is in doubt from then on", async () => {
  const clock = new FakeClock();
  const changes = new ChangesInDoubt(clock);
  changes.remember("a", "old");
  changes.remember("b", "old");
  await clock.advance(400_000);
  changes.remember("a", "old");
  await clock.advance(400_000);
  assert.equal(changes.mayStillApply("a", "old"), true);
  assert.equal(changes.mayStillApply("b", "old"), false);
});

Deno.test("after another controller any comment is suspect that this one has not written, for ten minutes", async () => {
  const clock = new FakeClock();
  const changes = new ChangesInDoubt(clock);
  changes.wrote("a", "mine before");
  changes.suspectOthers();
  assert.equal(changes.mayStillApply("a", "mine before"), true, "whoever led in between may have seen it");
  assert.equal(changes.mayStillApply("b", "theirs"), true);
  assert.equal(changes.wasSent("b", "theirs"), false, "this process has sent nothing");
  changes.wrote("b", "mine");
  assert.equal(changes.mayStillApply("b", "mine"), false);
  assert.equal(changes.mayStillApply("b", "theirs"), true);
  changes.remember("b", "mine");
  assert.equal(changes.mayStillApply("b", "mine"), true, "what this process has sent counts as ever");
  await clock.advance(600_000);
  assert.equal(changes.mayStillApply("c", "theirs"), false);
});
