import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { stoppableClock } from "./simulator.ts";

Deno.test("stoppableClock() rejects sleepers and cancels timers when it stops", async () => {
  const inner = new FakeClock();
  const stop = new AbortController();
  const clock = stoppableClock(inner, stop.signal);
  let rang = false;
  clock.timer(1000, () => rang = true);
  const slept = assert.rejects(clock.sleep(1000), /stopped/);
  stop.abort(new Error("stopped"));
  await slept;
  assert.equal(inner.waiting, 0);
  clock.timer(1000, () => rang = true);
  await inner.advance(5000);
  assert.equal(rang, false);
});

Deno.test("stoppableClock() lets timers ring and be cancelled while it runs", async () => {
  const inner = new FakeClock();
  const clock = stoppableClock(inner, new AbortController().signal);
  const rung: string[] = [];
  clock.timer(10, () => rung.push("first"));
  clock.timer(20, () => rung.push("cancelled"))();
  await inner.advance(100);
  assert.deepEqual(rung, ["first"]);
});

Deno.test("stoppableClock() obeys the sleeper's own signal too", async () => {
  const own = new AbortController();
  const clock = stoppableClock(new FakeClock(), new AbortController().signal);
  const slept = assert.rejects(clock.sleep(1000, own.signal), /own/);
  own.abort(new Error("own"));
  await slept;
});
