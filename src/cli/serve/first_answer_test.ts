import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { FirstAnswer } from "./first_answer.ts";

const context: CallContext = { requestId: "r", signal: new AbortController().signal };
const away = () => Promise.reject(new VolumeError("unavailable", "away"));

Deno.test("FirstAnswer asks until there is an answer, and no more after that", async () => {
  const clock = new FakeClock();
  let asked = 0;
  const answer = new FirstAnswer(() => ++asked < 4 ? away() : Promise.resolve());
  const seeking = answer.seek(clock, new AbortController().signal);
  await clock.advance(25_000);
  assert.deepEqual([asked, answer.isIn], [3, false]);
  await clock.advance(10_000);
  await seeking;
  assert.deepEqual([asked, answer.isIn, clock.waiting], [4, true, 0]);
});

Deno.test("FirstAnswer accepts an answer that another caller got, and keeps it when the router goes away", async () => {
  let up = false;
  const answer = new FirstAnswer(() => up ? Promise.resolve() : away());
  await assert.rejects(answer.ask(context), (error) => VolumeError.is(error, "unavailable"));
  assert.equal(answer.isIn, false);
  up = true;
  await answer.ask(context);
  up = false;
  await assert.rejects(answer.ask(context));
  assert.equal(answer.isIn, true);
});

Deno.test("FirstAnswer gives up an answer that does not come, and ends with its signal", async () => {
  const clock = new FakeClock();
  const reasons: unknown[] = [];
  const hanging = ({ signal }: CallContext) =>
    new Promise<void>((_, reject) => {
      signal.addEventListener("abort", () => {
        reasons.push(signal.reason);
        reject(signal.reason);
      });
    });
  const stop = new AbortController();
  const seeking = new FirstAnswer(hanging).seek(clock, stop.signal);
  await clock.advance(45_000);
  assert.ok(VolumeError.is(reasons[0], "deadline"));
  stop.abort(new VolumeError("cancelled", "stop"));
  await clock.advance(0);
  await seeking;
  assert.equal(reasons.length, 2);
  assert.equal(clock.waiting, 0);
});

Deno.test("FirstAnswer asks again once at a time, only after the first answer, and does not wait for it", async () => {
  const clock = new FakeClock();
  const stop = new AbortController();
  let asked = 0;
  const answer = new FirstAnswer(({ signal }) => {
    if (++asked === 1) return Promise.resolve();
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  assert.equal(answer.askAgain(clock, stop.signal), 0);
  assert.equal(asked, 0, "that is for whoever seeks the first one");
  await answer.ask(context);
  for (let i = 0; i < 3; i++) answer.askAgain(clock, stop.signal);
  assert.equal(asked, 2);
  await clock.advance(29_000);
  assert.equal(answer.askAgain(clock, stop.signal), 29_000);
  await clock.advance(1_000);
  assert.equal(answer.askAgain(clock, stop.signal), 0);
  assert.equal(asked, 3);
  stop.abort(new VolumeError("cancelled", "stop"));
  await clock.advance(0);
  answer.askAgain(clock, stop.signal);
  assert.deepEqual([asked, clock.waiting], [3, 0]);
});
