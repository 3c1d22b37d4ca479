import { refusal } from "../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { call } from "../../tests/fakes/node_deps.ts";
import { VolumeError } from "../volume/errors.ts";
import type { CallContext } from "../volume/ports/system.ts";
import { limitCall, runLimited, timeLeftMs, withDeadline } from "./deadline.ts";
import { duringCall, endsWithin } from "./waiting.ts";

const never = () => new Promise<never>(() => {});

Deno.test("withDeadline() returns the action's result, and leaves no timer", async () => {
  const clock = new FakeClock();
  assert.equal(await withDeadline(clock, call(), 1000, "look", () => Promise.resolve(7)), 7);
  assert.equal(clock.waiting, 0);
});

Deno.test("withDeadline() throws deadline when the action never ends, and aborts it", async () => {
  const clock = new FakeClock();
  let seen: CallContext | undefined;
  const attempt = withDeadline(clock, call(), 5000, "look at it", (limited) => {
    seen = limited;
    return never();
  });
  const rejected = assert.rejects(
    attempt,
    (error) => VolumeError.is(error, "deadline") && error.message === "Cannot look at it within 5 s",
  );
  await clock.advance(5000);
  await rejected;
  assert.equal(seen?.signal.aborted, true);
  assert.equal(seen?.deadlineMs, clock.now());
});

Deno.test("withDeadline() throws the reason of the call's end, before and while the action runs", async () => {
  const clock = new FakeClock();
  const reason = new VolumeError("cancelled", "gone");
  const controller = new AbortController();
  const rejected = assert.rejects(
    withDeadline(clock, call(controller.signal), 5000, "look", never),
    (e) => e === reason,
  );
  controller.abort(reason);
  await rejected;
  let begun = false;
  const late = withDeadline(clock, call(controller.signal), 5000, "look", () => {
    begun = true;
    return never();
  });
  await assert.rejects(late, (error) => error === reason);
  assert.equal(begun, false);
  assert.equal(clock.waiting, 0);
});

Deno.test("withDeadline() throws what the action throws", async () => {
  const clock = new FakeClock();
  const failure = new VolumeError("unavailable", "dead");
  await assert.rejects(
    withDeadline(clock, call(), 1000, "look", () => Promise.reject(failure)),
    (e) => e === failure,
  );
  assert.equal(clock.waiting, 0);
});

Deno.test("endsWithin() returns whether work ended in time, passes its failure on, and leaves no timer", async () => {
  const clock = new FakeClock();
  assert.equal(await endsWithin(clock, 1000, Promise.resolve(7)), true);
  await assert.rejects(endsWithin(clock, 1000, Promise.reject(new Error("failed"))), /failed/);
  const late = endsWithin(clock, 1000, never());
  await clock.advance(1000);
  assert.equal(await late, false);
  assert.equal(clock.waiting, 0);
});

Deno.test("runLimited() ends the call of its work by time or signal, and waits until the work has ended", async () => {
  const clock = new FakeClock();
  const never = new AbortController().signal;
  const obeying = ({ signal }: CallContext) => clock.sleep(60_000, signal);
  const late = assert.rejects(
    runLimited(clock, { name: "audit", timeoutMs: 5000, signal: never }, obeying),
    refusal("deadline", /^Cannot finish audit within 5 s$/),
  );
  await clock.advance(5000);
  await late;
  const stop = new AbortController();
  const stopped = runLimited(clock, { name: "audit", timeoutMs: 5000, signal: stop.signal }, obeying);
  stop.abort(new VolumeError("cancelled", "stopped"));
  await assert.rejects(stopped, (error) => error === stop.signal.reason);
  assert.equal(clock.waiting, 0);
});

Deno.test("limitCall() ends a call at the earlier of two deadlines, which is the time that it has left", async () => {
  const clock = new FakeClock();
  const late = (text: string) => new VolumeError("deadline", text);
  const whole = { requestId: "t", signal: new AbortController().signal };
  assert.equal(timeLeftMs(whole, clock), Infinity);
  using outer = limitCall(clock, whole, 5000, late("outer"));
  using inner = limitCall(clock, outer.context, 9000, late("inner"));
  assert.equal(timeLeftMs(inner.context, clock), 5000);
  const over = assert.rejects(duringCall(never(), inner.context.signal), refusal("deadline", /^outer$/));
  await clock.advance(5000);
  await over;
});
