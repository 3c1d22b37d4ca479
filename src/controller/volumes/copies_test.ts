import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { testContext } from "../../../tests/fakes/controller_deps.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { ImageCopies } from "./copies.ts";

/** Work that a test ends, and how often it was begun. */
function work() {
  const clock = new FakeClock();
  const copies = new ImageCopies<string, string>(clock);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const contexts: CallContext[] = [];
  const start = (context: CallContext) => {
    contexts.push(context);
    return promise;
  };
  const join = (over: Partial<CallContext> = {}, key = "a") =>
    copies.join(key, "about", start, testContext({ requestId: "first", ...over }));
  return { clock, copies, contexts, start, join, resolve, reject };
}

Deno.test("ImageCopies.join() starts work once and gives its result to all who wait", async () => {
  const { join, contexts, resolve, copies } = work();
  const calls = [join(), join({ requestId: "second" })];
  assert.equal(copies.find("a"), "about");
  resolve("done");
  assert.deepEqual(await Promise.all(calls), ["done", "done"]);
  assert.deepEqual(contexts.map(({ requestId, deadlineMs }) => [requestId, deadlineMs]), [[
    "first",
    undefined,
  ]]);
  assert.equal(copies.find("a"), undefined);
});

Deno.test("ImageCopies.join() gives a result once: who comes later starts anew", async () => {
  const { join, contexts, resolve } = work();
  resolve("done");
  await join();
  await join();
  assert.equal(contexts.length, 2);
});

Deno.test("ImageCopies.join() answers in time that the work goes on, and a later call gets the result", async () => {
  const { clock, join, contexts, resolve, copies } = work();
  const call = join({ deadlineMs: clock.now() + 10_000 });
  let answered = false;
  const mark = call.then(() => answered = true);
  await clock.advance(7_999);
  assert.equal(answered, false);
  await clock.advance(1);
  await mark;
  assert.equal(await call, undefined);
  assert.equal(clock.waiting, 0);
  assert.equal(copies.find("a"), "about");
  const later = join({ deadlineMs: clock.now() + 10_000 });
  resolve("done");
  assert.equal(await later, "done");
  assert.deepEqual([contexts.length, clock.waiting], [1, 0]);
});

Deno.test("ImageCopies.join() takes a result that is there even when the call's time is up", async () => {
  const { clock, join, resolve } = work();
  const first = join({ deadlineMs: clock.now() });
  await clock.advance(0);
  assert.equal(await first, undefined);
  resolve("done");
  await clock.advance(0);
  assert.equal(await join({ deadlineMs: clock.now() + 1 }), "done");
});

Deno.test("ImageCopies.join() reports a failure to one call, also one that comes later, and then starts anew", async () => {
  const { clock, join, contexts, reject } = work();
  const call = join({ deadlineMs: clock.now() + 3_000 });
  await clock.advance(1_000);
  assert.equal(await call, undefined);
  reject(new VolumeError("unavailable", "Cannot copy"));
  await clock.advance(0);
  await assert.rejects(join(), refusal("unavailable"));
  assert.equal(contexts.length, 1);
  await assert.rejects(join(), refusal("unavailable"));
  assert.equal(contexts.length, 2);
});

Deno.test("ImageCopies.cancel() ends the work, waits until it has ended, and forgets it", async () => {
  const clock = new FakeClock();
  const copies = new ImageCopies<string, string>(clock);
  let cleanedUp = false;
  const start = async (context: CallContext) => {
    try {
      await clock.sleep(60_000, context.signal);
      return "done";
    } finally {
      await clock.sleep(1_000);
      cleanedUp = true;
    }
  };
  const call = copies.join("a", "about", start, testContext());
  const reported = assert.rejects(call, refusal("cancelled", /no longer wanted/));
  let ended = false;
  const cancelled = copies.cancel("a").then(() => ended = true);
  await clock.advance(999);
  assert.equal(ended, false);
  assert.equal(copies.find("a"), undefined);
  await clock.advance(1);
  await cancelled;
  await reported;
  assert.equal(cleanedUp, true);
});

Deno.test("ImageCopies.cancel() does nothing where there is no work, and takes away a result that waits", async () => {
  const { copies, join, resolve, contexts, clock } = work();
  await copies.cancel("a");
  resolve("done");
  const call = join({ deadlineMs: clock.now() });
  await clock.advance(0);
  await call;
  await copies.cancel("a");
  await join();
  assert.equal(contexts.length, 2);
});

Deno.test("ImageCopies.cancel() does not take away what was begun after it", async () => {
  const { clock, copies } = work();
  const slow = async (context: CallContext) => {
    await clock.sleep(60_000, context.signal).catch(() => clock.sleep(1_000));
    return "old";
  };
  const old = copies.join("a", "old", slow, testContext());
  const cancelled = copies.cancel("a");
  const fresh = copies.join("a", "new", () => Promise.resolve("new"), testContext());
  assert.equal(copies.find("a"), "new");
  assert.equal(await fresh, "new");
  await clock.advance(1_000);
  await cancelled;
  assert.equal(await old, "old");
});

Deno.test("ImageCopies.close() ends all work, and waits until it has ended", async () => {
  const clock = new FakeClock();
  const copies = new ImageCopies<string, string>(clock);
  const ended: string[] = [];
  const start = (key: string) => async (context: CallContext) => {
    try {
      await clock.sleep(60_000, context.signal);
      return "done";
    } finally {
      await clock.sleep(1_000);
      ended.push(key);
    }
  };
  const reported = ["a", "b"].map((key) =>
    assert.rejects(copies.join(key, "about", start(key), testContext()), refusal("cancelled"))
  );
  const closed = copies.close();
  await clock.advance(1_000);
  await closed;
  await Promise.all(reported);
  assert.deepEqual(ended, ["a", "b"]);
  assert.equal(copies.find("a"), undefined);
});
