import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { aCreate, testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import { createVolume } from "../volumes/create.ts";
import { ExportsOff } from "./off_since.ts";

const off = (id: string, comment: string) => ({ id, comment, exported: false });

Deno.test("a withdrawal of somebody else's is as old as the first read it", async () => {
  const clock = new FakeClock();
  const withdrawals = new ExportsOff(clock);
  assert.equal(withdrawals.ageMs(off("a", "w1")), 0);
  await clock.advance(4_000);
  assert.equal(withdrawals.ageMs(off("a", "w1")), 4_000);
  assert.equal(withdrawals.ageMs(off("b", "w1")), 0, "another volume");
  assert.equal(withdrawals.ageMs(off("a", "w2")), 0, "another withdrawal");
  await clock.advance(86_400_000);
  assert.equal(withdrawals.ageMs(off("a", "w2")), 86_400_000);
});

Deno.test("one that this process has made is as old as its reading back", async () => {
  const clock = new FakeClock();
  const withdrawals = new ExportsOff(clock);
  withdrawals.confirm("a", "w1");
  await clock.advance(3_000);
  assert.equal(withdrawals.ageMs(off("a", "w1")), 3_000);
});

Deno.test("an export that is on again is not off for as long as before", async () => {
  const clock = new FakeClock();
  const withdrawals = new ExportsOff(clock);
  withdrawals.confirm("a", "w1");
  await clock.advance(60_000);
  assert.equal(withdrawals.ageMs({ ...off("a", "w1"), exported: true }), 0);
  assert.equal(withdrawals.ageMs(off("a", "w1")), 0);
});

Deno.test("a read of all volumes lets all of them age, and forgets what is gone", async () => {
  const clock = new FakeClock();
  const withdrawals = new ExportsOff(clock);
  withdrawals.check([off("a", "w1"), off("b", "w1")]);
  await clock.advance(5_000);
  withdrawals.check([off("a", "w1")]);
  assert.equal(withdrawals.ageMs(off("a", "w1")), 5_000);
  assert.equal(withdrawals.ageMs(off("b", "w1")), 0);
  withdrawals.forget("a");
  assert.equal(withdrawals.ageMs(off("a", "w1")), 0);
});

Deno.test("a record that this process has rewritten has the age of the withdrawal in it", async () => {
  const clock = new FakeClock();
  const withdrawals = new ExportsOff(clock);
  withdrawals.confirm("a", "w1");
  await clock.advance(3_000);
  withdrawals.rewrote("a", "w1", "w1 g1");
  assert.equal(withdrawals.ageMs(off("a", "w1 g1")), 3_000);
  withdrawals.rewrote("a", "w2", "w2 g1");
  assert.equal(withdrawals.ageMs(off("a", "w2 g1")), 0, "rewritten from what was never seen");
  withdrawals.rewrote("b", "w1", "w1 g1");
  assert.equal(withdrawals.ageMs(off("b", "w1 g1")), 0, "a volume that was never seen");
});

Deno.test("a rewritten record whose export was seen to be on in between has no age", async () => {
  const clock = new FakeClock();
  const withdrawals = new ExportsOff(clock);
  withdrawals.confirm("a", "w1");
  await clock.advance(3_000);
  withdrawals.ageMs({ ...off("a", "w1"), exported: true });
  withdrawals.rewrote("a", "w1", "w1 g1");
  assert.equal(withdrawals.ageMs(off("a", "w1 g1")), 0);
});

Deno.test("publishVolume() withdraws once more what a person exports while it waits out the grace", async () => {
  const made = testController();
  const { deps, store, clock } = made;
  store.lingerMs = 10_000;
  const { stored: { id } } = await createVolume(deps, aCreate("a"), testContext());
  const { publish, unpublish } = volumeCalls(made, id);
  await publish();
  await unpublish();
  clock.timer(2_000, () => store.edit(id, { exported: true }));
  assert.match((await publish("n2")).epoch!, /^2-/);
  assert.deepEqual(store.violations, []);
});
