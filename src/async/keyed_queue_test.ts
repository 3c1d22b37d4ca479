import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { VolumeError } from "../volume/errors.ts";
import { KeyedQueue } from "./keyed_queue.ts";

const never = new AbortController().signal;

/** Work under one key that ends when told to; returns the kind of error, or "done". */
function deps() {
  const clock = new FakeClock();
  const queue = new KeyedQueue(clock);
  const end: (() => void)[] = [];
  const run = (timeoutMs: number, signal = never) =>
    queue.run("work on x", { timeoutMs, signal }, () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      end.push(resolve);
      return { result: promise, giveUp: () => Promise.resolve() };
    }).then(() => "done", (error) => VolumeError.is(error) ? error.kind : String(error));
  return { clock, queue, end, run };
}

Deno.test("KeyedQueue.run() runs work one after the other, in the order of the calls", async () => {
  const { clock, end, run } = deps();
  const all = [run(1000), run(1000), run(1000)];
  for (let at = 0; at < 3; at++) {
    await clock.advance(1);
    assert.equal(end.length, at + 1);
    end[at]!();
  }
  assert.deepEqual(await Promise.all(all), ["done", "done", "done"]);
});

for (const margin of [-1, 0, 1]) {
  Deno.test(`KeyedQueue.run() loses no turn when it comes ${margin} ms after the waiting caller gave up`, async () => {
    const { clock, queue, end, run } = deps();
    const first = run(1000);
    const second = run(500);
    clock.timer(500 + margin, () => end[0]!());
    await clock.advance(502);
    for (const finish of end) finish();
    assert.deepEqual([await first, queue.hanging], ["done", 0]);
    assert.ok(["done", "deadline"].includes(await second));
    const third = run(1000);
    await clock.advance(0);
    end.at(-1)!();
    assert.equal(await third, "done");
  });

  Deno.test(`KeyedQueue.run() refuses the next caller when the first work hangs ${margin} ms after the other gave up`, async () => {
    const { clock, queue, run } = deps();
    const first = run(500 + margin);
    const second = run(500);
    await clock.advance(600);
    assert.deepEqual([await first, queue.hanging], ["deadline", 1]);
    assert.ok(["unavailable", "deadline"].includes(await second));
    assert.equal(await run(1000), "unavailable");
  });
}

Deno.test("KeyedQueue.run() gives up a waiting caller whose signal is aborted, and runs work for the next", async () => {
  const { clock, end, run } = deps();
  const controller = new AbortController();
  const [first, second, third] = [run(1000), run(1000, controller.signal), run(1000)];
  controller.abort(new VolumeError("cancelled", "gone"));
  assert.equal(await second, "cancelled");
  end[0]!();
  await clock.advance(0);
  end[1]!();
  assert.deepEqual([await first, await third, end.length], ["done", "done", 2]);
});

Deno.test("KeyedQueue.run() passes the turn on when the work cannot be begun", async () => {
  const { queue, end, clock, run } = deps();
  const error = new Error("no such tool");
  const timeouts = { timeoutMs: 1000, signal: never };
  const begin = () => {
    throw error;
  };
  await assert.rejects(queue.run("work on x", timeouts, begin), (thrown) => thrown === error);
  const next = run(1000);
  await clock.advance(0);
  end[0]!();
  assert.equal(await next, "done");
});

Deno.test("KeyedQueue.run() ends at once when its signal was aborted before", async () => {
  const { run } = deps();
  assert.equal(await run(1000, AbortSignal.abort(new VolumeError("cancelled", "gone"))), "cancelled");
});
