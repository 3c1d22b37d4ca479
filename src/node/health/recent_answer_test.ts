import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { call } from "../../../tests/fakes/node_world.ts";
import { VolumeError } from "../../volume/errors.ts";
import { RecentAnswer } from "./recent_answer.ts";

const times = { keptMs: 10_000, limitMs: 5_000 };

Deno.test("RecentAnswer looks up once for many askers, and again when the answer is old", async () => {
  const clock = new FakeClock();
  let looks = 0;
  const recent = new RecentAnswer(clock, times, () => Promise.resolve(++looks));
  assert.deepEqual(await Promise.all([recent.get(call()), recent.get(call())]), [1, 1]);
  await clock.advance(9_999);
  assert.equal(await recent.get(call()), 1);
  await clock.advance(1);
  assert.equal(await recent.get(call()), 2);
  assert.equal(clock.waiting, 0);
});

Deno.test("RecentAnswer lets one asker leave without the others losing the answer", async () => {
  const clock = new FakeClock();
  const { promise, resolve } = Promise.withResolvers<number>();
  const recent = new RecentAnswer(clock, times, () => promise);
  const leaving = new AbortController();
  const reason = new VolumeError("cancelled", "gone");
  const left = assert.rejects(recent.get(call(leaving.signal)), (error) => error === reason);
  const stayed = recent.get(call());
  leaving.abort(reason);
  await left;
  resolve(7);
  assert.equal(await stayed, 7);
});

Deno.test("RecentAnswer throws deadline for a look-up that never ends, and begins another one", async () => {
  const clock = new FakeClock();
  let looks = 0;
  const recent = new RecentAnswer(
    clock,
    times,
    () => ++looks === 1 ? new Promise(() => {}) : Promise.resolve(2),
  );
  const rejected = assert.rejects(recent.get(call()), (error) => VolumeError.is(error, "deadline"));
  await clock.advance(5_000);
  await rejected;
  assert.equal(await recent.get(call()), 2);
});

Deno.test("RecentAnswer keeps no failure", async () => {
  const clock = new FakeClock();
  let looks = 0;
  const recent = new RecentAnswer(
    clock,
    times,
    () => ++looks === 1 ? Promise.reject(new VolumeError("unavailable", "no")) : Promise.resolve(2),
  );
  await assert.rejects(recent.get(call()), (error) => VolumeError.is(error, "unavailable"));
  assert.equal(await recent.get(call()), 2);
});
