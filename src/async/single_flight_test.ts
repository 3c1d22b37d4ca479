import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { fakeCall } from "../../tests/fakes/contexts.ts";
import { VolumeError, type VolumeErrorKind } from "../volume/errors.ts";
import type { CallContext } from "../volume/ports/system.ts";
import { SingleFlight } from "./single_flight.ts";

interface Read extends PromiseWithResolvers<string> {
  readonly signal: AbortSignal;
  readonly onSent: () => void;
}

function bench() {
  const clock = new FakeClock();
  const reads: Read[] = [];
  const flights = new SingleFlight<string>();
  const run = (call: CallContext) =>
    flights.runDuringCall(call.signal, (signal, onSent) => {
      const result = Promise.withResolvers<string>();
      reads.push({ ...result, signal, onSent });
      signal.addEventListener("abort", () => result.reject(signal.reason));
      return result.promise;
    });
  return { clock, reads, flights, run };
}

async function rejectsWith(promise: Promise<unknown>, kind: VolumeErrorKind, form = /./): Promise<void> {
  await assert.rejects(promise, (error) => VolumeError.is(error, kind) && form.test(error.message));
}

Deno.test("SingleFlight.runDuringCall() works once for all calls that come before it departs", async () => {
  const { run, reads, clock, flights } = bench();
  const calls = Array.from({ length: 50 }, () => run(fakeCall(clock)));
  assert.equal(flights.calls(), 50);
  reads[0]!.onSent();
  assert.equal(flights.calls(), 0);
  reads[0]!.resolve("list");
  assert.deepEqual(await Promise.all(calls), Array.from({ length: 50 }, () => "list"));
  assert.equal(reads.length, 1);
  assert.equal(clock.waiting, 0);
});

Deno.test("SingleFlight.runDuringCall() gives no call the outcome of work that departed before the call began", async () => {
  const { run, reads, clock } = bench();
  const early = run(fakeCall(clock));
  reads[0]!.onSent();
  const late = run(fakeCall(clock));
  const joining = run(fakeCall(clock));
  assert.equal(reads.length, 2);
  reads[1]!.resolve("new");
  reads[0]!.onSent();
  reads[0]!.resolve("old");
  assert.deepEqual(await Promise.all([early, late, joining]), ["old", "new", "new"]);
});

Deno.test("SingleFlight.runDuringCall() passes a failure to all calls, and starts again for the next", async () => {
  const { run, reads, clock } = bench();
  const calls = [run(fakeCall(clock)), run(fakeCall(clock))];
  const failures = calls.map((call) => rejectsWith(call, "unavailable", /down/));
  reads[0]!.reject(new VolumeError("unavailable", "down"));
  await Promise.all(failures);
  const next = run(fakeCall(clock));
  reads[1]!.resolve("list");
  assert.equal(await next, "list");
});

Deno.test("SingleFlight.runDuringCall() lets each call leave on its own, and continues for the others", async () => {
  const { run, reads, clock } = bench();
  const cancelled = fakeCall(clock);
  const first = run(cancelled);
  const short = rejectsWith(run(fakeCall(clock, 100)), "deadline");
  const long = run(fakeCall(clock, 10_000));
  cancelled.cancel();
  await rejectsWith(first, "cancelled");
  await clock.advance(100);
  await short;
  assert.equal(reads[0]!.signal.aborted, false);
  reads[0]!.resolve("list");
  assert.equal(await long, "list");
});

Deno.test("SingleFlight.runDuringCall() gives up work when no call waits any more, and lets no call join it", async () => {
  const { run, reads, clock } = bench();
  const calls = [fakeCall(clock), fakeCall(clock)];
  const failures = calls.map((call) => rejectsWith(run(call), "cancelled"));
  calls[0]!.cancel();
  assert.equal(reads[0]!.signal.aborted, false);
  calls[1]!.cancel();
  await Promise.all(failures);
  assert.equal(reads[0]!.signal.aborted, true);
  const next = run(fakeCall(clock));
  assert.equal(reads.length, 2);
  reads[1]!.resolve("list");
  assert.equal(await next, "list");
  assert.equal(clock.waiting, 0);
});

Deno.test("SingleFlight.runDuringCall() refuses a call that is over before it starts", async () => {
  const { run, reads, clock } = bench();
  await rejectsWith(run(fakeCall(clock, 0)), "deadline");
  assert.equal(reads.length, 0);
});

Deno.test("SingleFlight.run() shares work of one key while it runs, also its failure, and starts it again afterwards", async () => {
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
