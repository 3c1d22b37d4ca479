import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { fakeCall } from "../../../tests/fakes/contexts.ts";
import { VolumeError, type VolumeErrorKind } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { SharedRead } from "./shared_read.ts";

interface Read extends PromiseWithResolvers<string> {
  readonly context: CallContext;
  readonly onSent: () => void;
}

function bench(maxJoined?: number) {
  const clock = new FakeClock();
  const reads: Read[] = [];
  const state: { refusal: VolumeError | undefined } = { refusal: undefined };
  const shared = new SharedRead<string>({
    clock,
    read: (context, onSent) => {
      const result = Promise.withResolvers<string>();
      reads.push({ ...result, context, onSent });
      context.signal.addEventListener("abort", () => result.reject(context.signal.reason));
      return result.promise;
    },
    refusal: () => state.refusal,
    maxJoined,
  });
  return { clock, reads, shared, state };
}

async function rejectsWith(promise: Promise<unknown>, kind: VolumeErrorKind, form = /./): Promise<void> {
  await assert.rejects(promise, (error) => VolumeError.is(error, kind) && form.test(error.message));
}

Deno.test("SharedRead reads once for all calls that come before it is sent", async () => {
  const { shared, reads, clock } = bench();
  const calls = Array.from({ length: 50 }, () => shared.run(fakeCall(clock, 1000)));
  reads[0]!.onSent();
  reads[0]!.resolve("list");
  assert.deepEqual(await Promise.all(calls), Array.from({ length: 50 }, () => "list"));
  assert.equal(reads.length, 1);
  assert.equal(clock.waiting, 0);
});

Deno.test("SharedRead gives no call an answer to what was sent before the call began", async () => {
  const { shared, reads, clock } = bench();
  const early = shared.run(fakeCall(clock));
  reads[0]!.onSent();
  const late = shared.run(fakeCall(clock));
  const joining = shared.run(fakeCall(clock));
  assert.equal(reads.length, 2);
  reads[1]!.resolve("new");
  reads[0]!.onSent();
  reads[0]!.resolve("old");
  assert.deepEqual(await Promise.all([early, late, joining]), ["old", "new", "new"]);
});

Deno.test("SharedRead hands its failure to all calls, and reads anew for the next", async () => {
  const { shared, reads, clock } = bench();
  const calls = [shared.run(fakeCall(clock)), shared.run(fakeCall(clock))];
  const failures = calls.map((call) => rejectsWith(call, "unavailable", /down/));
  reads[0]!.reject(new VolumeError("unavailable", "down"));
  await Promise.all(failures);
  const next = shared.run(fakeCall(clock));
  reads[1]!.resolve("list");
  assert.equal(await next, "list");
});

Deno.test("SharedRead lets each call go on its own, and reads on for the others", async () => {
  const { shared, reads, clock } = bench();
  const cancelled = fakeCall(clock);
  const first = shared.run(cancelled);
  const short = rejectsWith(shared.run(fakeCall(clock, 100)), "deadline");
  const long = shared.run(fakeCall(clock, 10_000));
  cancelled.cancel();
  await rejectsWith(first, "cancelled");
  await clock.advance(100);
  await short;
  assert.equal(reads[0]!.context.signal.aborted, false);
  reads[0]!.resolve("list");
  assert.equal(await long, "list");
});

Deno.test("SharedRead gives the read up when no call waits any more, and lets nobody join it", async () => {
  const { shared, reads, clock } = bench();
  const calls = [fakeCall(clock), fakeCall(clock)];
  const failures = calls.map((call) => rejectsWith(shared.run(call), "cancelled"));
  calls[0]!.cancel();
  assert.equal(reads[0]!.context.signal.aborted, false);
  calls[1]!.cancel();
  assert.equal(reads[0]!.context.signal.aborted, true);
  const next = shared.run(fakeCall(clock));
  assert.equal(reads.length, 2);
  reads[1]!.resolve("list");
  assert.equal(await next, "list");
  await Promise.all(failures);
  assert.equal(clock.waiting, 0);
});

Deno.test("SharedRead refuses to let a call join when none may wait, or too many do", async () => {
  const { shared, reads, clock, state } = bench(2);
  const calls = [shared.run(fakeCall(clock)), shared.run(fakeCall(clock))];
  await rejectsWith(shared.run(fakeCall(clock)), "unavailable", /2 calls already wait/);
  state.refusal = new VolumeError("unavailable", "the breaker is open");
  await rejectsWith(shared.run(fakeCall(clock)), "unavailable", /breaker is open/);
  reads[0]!.resolve("list");
  await Promise.all(calls);
  assert.equal(reads.length, 1);
});

Deno.test("SharedRead refuses a call that is over before it starts", async () => {
  const { shared, reads, clock } = bench();
  await rejectsWith(shared.run(fakeCall(clock, 0)), "deadline");
  assert.equal(reads.length, 0);
});
