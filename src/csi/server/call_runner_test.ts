import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { systemClock } from "../../host/clock.ts";
import { createLogger, type LogLevel } from "../../telemetry/log.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { CallRecord } from "./access_log.ts";
import { method, type UnaryHandler, VolumeLocks } from "./call.ts";
import { type CallAnswer, CallRunner } from "./call_runner.ts";

interface Request {
  readonly volumeId: string;
  readonly name?: string;
  readonly secrets?: Readonly<Record<string, string>>;
}

type LogLine = Record<string, unknown> & { message: string; level: string };

function setUp(level: LogLevel = "debug") {
  const clock = new FakeClock();
  const lines: LogLine[] = [];
  const records: CallRecord[] = [];
  const log = createLogger({ clock, level, sink: (line) => void lines.push(JSON.parse(line)) });
  const observe = (record: CallRecord) => void records.push(record);
  const runner = new CallRunner({ clock, random: new SeededRandom(), log, observe });
  const locks = new VolumeLocks();
  const run = (
    handler: UnaryHandler<Request, unknown>,
    options: {
      path?: string;
      request?: Request;
      deadlineMs?: number;
      changing?: boolean;
      cancel?: AbortSignal;
      whenBusy?: (request: Request) => Promise<void>;
    } = {},
  ): Promise<CallAnswer> => {
    const lockKey = (request: Request) => [request.volumeId, request.name ?? ""];
    const description = options.changing === false
      ? method({ changing: false, handler })
      : method({ changing: true, lockKey, handler, ...(options.whenBusy && { whenBusy: options.whenBusy }) });
    return runner.run(description, locks, {
      path: options.path ?? "/csi.v1.Controller/DeleteVolume",
      request: options.request ?? { volumeId: "v" },
      deadlineMs: options.deadlineMs ?? Infinity,
      onCancel: (listener) => options.cancel?.addEventListener("abort", listener, { once: true }),
    });
  };
  const callLines = () => lines.filter((line) => line.message === "call");
  return { clock, lines, callLines, records, runner, locks, run };
}

/** A handler that runs until the test ends it, and ignores its signal. */
function stubborn(): { handler: UnaryHandler<Request, unknown>; end: () => void; contexts: CallContext[] } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const contexts: CallContext[] = [];
  const handler = async (_request: Request, context: CallContext) => {
    contexts.push(context);
    await promise;
    return {};
  };
  return { handler, end: resolve, contexts };
}

/** A handler that obeys its signal. */
const obedient: UnaryHandler<Request, unknown> = (_request, { signal }) =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

function code(answer: CallAnswer): string {
  return answer.ok ? "OK" : answer.code;
}

Deno.test("CallRunner answers with the handler's response and passes it the deadline and a short request id", async () => {
  const { run } = setUp();
  const answer = await run((request, context) => {
    assert.equal(context.deadlineMs, Infinity);
    assert.match(context.requestId, /^[0-9a-f]{8}$/);
    return Promise.resolve({ seen: request.volumeId });
  });
  assert.deepEqual(answer, { ok: true, response: { seen: "v" } });
});

Deno.test("CallRunner gives every call another request id", async () => {
  const { run, records } = setUp();
  for (let i = 0; i < 20; i++) await run(() => Promise.resolve({}));
  assert.equal(new Set(records.map((record) => record.requestId)).size, 20);
});

Deno.test("CallRunner answers a VolumeError with its code and message", async () => {
  const { run } = setUp();
  const answer = await run(() => Promise.reject(new VolumeError("in-use", "Cannot do it")));
  assert.deepEqual(answer, { ok: false, code: "FAILED_PRECONDITION", details: "Cannot do it" });
});

Deno.test("CallRunner answers anything else INTERNAL, with the reason only in the log", async () => {
  for (const changing of [true, false]) {
    const { run, callLines } = setUp("info");
    const answer = await run(() => Promise.reject(new TypeError("s3cret", { cause: new Error("deep") })), {
      changing,
    });
    assert.equal(code(answer), "INTERNAL");
    const [line] = callLines();
    assert.equal(line?.level, "ERROR");
    assert.ok(
      !answer.ok && answer.details.includes(String(line.requestId)) && !answer.details.includes("s3cret"),
    );
    const logged = line.error as { message: string; stack: string; cause: { message: string } };
    assert.equal(logged.message, "s3cret");
    assert.match(logged.stack, /call_runner_test/);
    assert.equal(logged.cause.message, "deep");
  }
});

Deno.test("CallRunner answers a handler that throws before its first await", async () => {
  const { run, runner } = setUp();
  const answer = await run(() => {
    throw new VolumeError("invalid", "at once");
  });
  assert.equal(code(answer), "INVALID_ARGUMENT");
  assert.equal(runner.running, 0);
});

Deno.test("CallRunner aborts the signal with kind deadline when the deadline passes", async () => {
  const { run, clock } = setUp();
  let reason: unknown;
  const answer = run(async (request, context) => {
    context.signal.addEventListener("abort", () => reason = context.signal.reason);
    return await obedient(request, context);
  }, { deadlineMs: clock.now() + 1000 });
  await clock.advance(999);
  assert.equal(reason, undefined);
  await clock.advance(1);
  assert.ok(VolumeError.is(reason, "deadline"));
  assert.equal(code(await answer), "DEADLINE_EXCEEDED");
  assert.equal(clock.waiting, 0);
});

Deno.test("CallRunner does not start the handler of a call whose deadline has passed", async () => {
  const { run, clock, locks } = setUp();
  let called = false;
  const answer = await run(() => {
    called = true;
    return Promise.resolve({});
  }, { deadlineMs: clock.now() });
  assert.equal(code(answer), "DEADLINE_EXCEEDED");
  assert.equal(called, false);
  assert.equal(locks.size, 0);
});

Deno.test("CallRunner aborts the signal with kind cancelled when the client goes away", async () => {
  const { run, clock } = setUp();
  const client = new AbortController();
  const answer = run(obedient, { cancel: client.signal, deadlineMs: clock.now() + 60_000 });
  client.abort();
  assert.equal(code(await answer), "CANCELLED");
  assert.equal(clock.waiting, 0);
});

Deno.test("CallRunner treats a cancellation just before the deadline as the deadline", async () => {
  const { run, clock } = setUp();
  const client = new AbortController();
  const answer = run(obedient, { cancel: client.signal, deadlineMs: clock.now() + 1000 });
  await clock.advance(990);
  client.abort();
  assert.equal(code(await answer), "DEADLINE_EXCEEDED");
});

Deno.test("CallRunner leaves the signal alone when the client cancels after the handler has settled", async () => {
  const { run, clock } = setUp();
  const client = new AbortController();
  let signal: AbortSignal | undefined;
  await run((_request, context) => {
    signal = context.signal;
    return Promise.resolve({});
  }, { cancel: client.signal, deadlineMs: clock.now() + 10 });
  client.abort();
  await clock.advance(20);
  assert.equal(signal?.aborted, false);
});

Deno.test("CallRunner gives the reason when a handler answers its signal with an AbortError", async () => {
  const { run, clock } = setUp();
  const answer = run((_request, { signal }) =>
    new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")));
    }), { deadlineMs: clock.now() + 5 });
  await clock.advance(5);
  assert.equal(code(await answer), "DEADLINE_EXCEEDED");
});

Deno.test("CallRunner has no timer for a deadline beyond a timer's range", async () => {
  const { run, clock } = setUp();
  const answer = await run(() => Promise.resolve({ waiting: clock.waiting }), {
    deadlineMs: clock.now() + 2 ** 32,
  });
  assert.deepEqual(answer, { ok: true, response: { waiting: 0 } });
});

Deno.test("CallRunner answers a second changing call for a volume ABORTED at once, naming the first", async () => {
  const { run } = setUp();
  const first = stubborn();
  const running = run(first.handler);
  const second = await run(() => Promise.resolve({}));
  assert.equal(code(second), "ABORTED");
  assert.ok(!second.ok && second.details.includes(`DeleteVolume request=${first.contexts[0]!.requestId}`));
  first.end();
  assert.equal(code(await running), "OK");
  assert.equal(code(await run(() => Promise.resolve({}))), "OK");
});

const LOCK_TABLE: readonly [string, Request, Request, boolean, string][] = [
  ["another volume", { volumeId: "a" }, { volumeId: "b" }, true, "OK"],
  ["the same volume", { volumeId: "a" }, { volumeId: "a" }, true, "ABORTED"],
  ["the same name", { volumeId: "a", name: "n" }, { volumeId: "b", name: "n" }, true, "ABORTED"],
  ["no volume", { volumeId: "" }, { volumeId: "" }, true, "OK"],
  ["the same volume, only reading", { volumeId: "a" }, { volumeId: "a" }, false, "OK"],
];

for (const [what, first, second, changing, expected] of LOCK_TABLE) {
  Deno.test(`CallRunner answers a call for ${what} ${expected} while a changing one runs`, async () => {
    const { run } = setUp();
    const held = stubborn();
    const running = run(held.handler, { request: first });
    assert.equal(code(await run(() => Promise.resolve({}), { request: second, changing })), expected);
    held.end();
    await running;
  });
}

Deno.test("CallRunner calls whenBusy for a call that finds the lock held, before it answers it ABORTED", async () => {
  const { run } = setUp();
  const first = stubborn();
  const running = run(first.handler);
  const reported: string[] = [];
  const whenBusy = async (request: Request) => void await Promise.resolve(reported.push(request.volumeId));
  assert.equal(code(await run(() => assert.fail("it ran"), { whenBusy })), "ABORTED");
  assert.deepEqual(reported, ["v"]);
  first.end();
  await running;
  assert.equal((await run(() => Promise.resolve({}), { whenBusy })).ok, true);
  assert.deepEqual(reported, ["v"], "a call that takes the lock is told nothing");
});

Deno.test("CallRunner answers with the error of whenBusy", async () => {
  const { run } = setUp();
  const first = stubborn();
  const running = run(first.handler);
  const whenBusy = () => Promise.reject(new VolumeError("invalid", "no id"));
  assert.equal(code(await run(() => assert.fail("it ran"), { whenBusy })), "INVALID_ARGUMENT");
  first.end();
  await running;
});

Deno.test("CallRunner takes no lock for a reading call", async () => {
  const { run, locks } = setUp();
  const reading = stubborn();
  const running = run(reading.handler, { changing: false });
  assert.equal(locks.size, 0);
  reading.end();
  await running;
});

Deno.test("CallRunner takes the lock before anything else can run", async () => {
  const { run, locks } = setUp();
  const running = run(() => Promise.resolve({}));
  assert.equal(locks.size, 1);
  await running;
  assert.equal(locks.size, 0);
});

Deno.test("CallRunner lets one of eight simultaneous calls for a volume through", async () => {
  const { run } = setUp();
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => run(async () => await Promise.resolve({}))),
  );
  assert.deepEqual(answers.map(code).toSorted(), [...Array(7).fill("ABORTED"), "OK"]);
});

Deno.test("CallRunner answers a cancelled call at once and keeps its lock until the handler has settled", async () => {
  const { run, locks, runner } = setUp();
  const client = new AbortController();
  const mkfs = stubborn();
  const first = run(mkfs.handler, { cancel: client.signal });
  client.abort();
  assert.equal(code(await first), "CANCELLED");
  assert.equal(code(await run(() => Promise.resolve({}))), "ABORTED");
  assert.equal(runner.running, 1);
  mkfs.end();
  await systemClock.sleep(0);
  assert.equal(locks.size, 0);
  assert.equal(code(await run(() => Promise.resolve({}))), "OK");
});

Deno.test("CallRunner releases the lock when the handler fails", async () => {
  const { run, locks } = setUp();
  await run(() => Promise.reject(new Error("x")));
  assert.equal(locks.size, 0);
});

Deno.test("CallRunner answers with the VolumeError of a lock key that refuses the request", async () => {
  const { runner, locks, callLines } = setUp();
  const refusing = method<Request, unknown>({
    changing: true,
    lockKey: () => {
      throw new VolumeError("invalid", "no such form");
    },
    handler: () => Promise.resolve({}),
  });
  const answer = await runner.run(refusing, locks, {
    path: "/csi.v1.Controller/DeleteVolume",
    request: { volumeId: "odd" },
    deadlineMs: Infinity,
    onCancel: () => {},
  });
  assert.equal(code(answer), "INVALID_ARGUMENT");
  assert.equal(callLines()[0]?.volumeId, "odd");
});

Deno.test("CallRunner writes exactly one line at info for a changing call, with method, volume, code, ms and id", async () => {
  const { run, clock, lines } = setUp("info");
  const running = run(() => clock.sleep(1234));
  await clock.advance(1234);
  await running;
  assert.equal(lines.length, 1);
  const { "@timestamp": _time, logger: _logger, requestId, ...line } = lines[0]!;
  assert.match(String(requestId), /^[0-9a-f]{8}$/);
  assert.deepEqual(line, {
    level: "INFO",
    message: "call",
    method: "/csi.v1.Controller/DeleteVolume",
    volumeId: "v",
    code: "OK",
    ms: 1234,
  });
});

Deno.test("CallRunner logs the message and the causes of a changing call that failed", async () => {
  const { run, lines } = setUp("info");
  const cause = new VolumeError("unavailable", "channel torn", { cause: new Error("ECONNRESET") });
  await run(() => Promise.reject(new VolumeError("unavailable", "Cannot delete", { cause })));
  assert.equal(lines.length, 1);
  assert.equal(lines[0]?.level, "WARN");
  assert.equal(lines[0]?.code, "UNAVAILABLE");
  assert.equal(lines[0]?.error, "Cannot delete");
  assert.deepEqual(lines[0]?.causes, ["unavailable: channel torn", "ECONNRESET"]);
});

Deno.test("CallRunner logs the chain of causes of an error that is its own cause", async () => {
  const { run, lines } = setUp("info");
  const error = new VolumeError("unavailable", "round");
  error.cause = error;
  await run(() => Promise.reject(error));
  assert.equal((lines[0]?.causes as string[]).length, 8);
});

Deno.test("CallRunner logs a refused second call with its own line", async () => {
  const { run, callLines } = setUp("info");
  const first = stubborn();
  const running = run(first.handler);
  await run(() => Promise.resolve({}));
  first.end();
  await running;
  assert.deepEqual(callLines().map((line) => line.code), ["ABORTED", "OK"]);
});

Deno.test("CallRunner writes one line at info for a call that goes on after its answer", async () => {
  const { run, lines } = setUp("debug");
  const client = new AbortController();
  const mkfs = stubborn();
  const running = run(mkfs.handler, { cancel: client.signal });
  client.abort();
  await running;
  mkfs.end();
  await systemClock.sleep(0);
  assert.deepEqual(lines.filter((line) => line.level === "INFO").map((line) => line.code), ["CANCELLED"]);
  assert.deepEqual(
    lines.filter((line) => line.message === "call ended after its answer").map((
      line,
    ) => [line.level, line.code]),
    [["DEBUG", "OK"]],
  );
});

Deno.test("CallRunner does not hide a fault that appears after the answer", async () => {
  const { run, lines } = setUp("info");
  const client = new AbortController();
  const { promise, reject } = Promise.withResolvers<never>();
  const running = run(() => promise, { cancel: client.signal });
  client.abort();
  await running;
  reject(new TypeError("bug"));
  await systemClock.sleep(0);
  assert.deepEqual(lines.map((line) => [line.level, line.code]), [["INFO", "CANCELLED"], [
    "ERROR",
    "INTERNAL",
  ]]);
});

Deno.test("CallRunner writes nothing at info for reading calls, failed ones included", async () => {
  const { run, lines } = setUp("info");
  await run(() => Promise.resolve({}), { changing: false });
  await run(() => Promise.reject(new VolumeError("unavailable", "x")), { changing: false });
  assert.deepEqual(lines, []);
});

Deno.test("CallRunner never logs a secret, and logs a request at debug only", async () => {
  const request = { volumeId: "v", secrets: { password: "s3cret" } };
  for (const level of ["debug", "info"] as const) {
    const { run, lines } = setUp(level);
    await run(() => Promise.resolve({}), { request });
    await run(() => Promise.reject(new Error("x")), { request });
    assert.ok(!JSON.stringify(lines).includes("s3cret"));
    assert.equal(lines.some((line) => line.message === "request"), level === "debug");
  }
});

Deno.test("CallRunner cuts an overlong volume id in the log", async () => {
  const { run, lines } = setUp("info");
  await run(() => Promise.resolve({}), { request: { volumeId: "x".repeat(1e6) } });
  assert.equal(String(lines[0]?.volumeId).length, 128);
});

Deno.test("CallRunner reports every call to its observer", async () => {
  const { run, records } = setUp("error");
  await run(() => Promise.resolve({}), { changing: false });
  await run(() => Promise.reject(new VolumeError("exhausted", "full")));
  assert.deepEqual(records.map(({ changing, code }) => [changing, code]), [
    [false, "OK"],
    [true, "RESOURCE_EXHAUSTED"],
  ]);
});

Deno.test("CallRunner.stop() refuses new calls and waits for the running ones", async () => {
  const { run, runner, clock } = setUp();
  const slow = stubborn();
  const running = run(slow.handler);
  let stopped = false;
  const stopping = runner.stop(25_000).then(() => stopped = true);
  assert.equal(code(await run(() => Promise.resolve({}), { request: { volumeId: "other" } })), "UNAVAILABLE");
  await clock.advance(24_000);
  assert.equal(stopped, false);
  assert.equal(slow.contexts[0]?.signal.aborted, false);
  slow.end();
  await stopping;
  assert.equal(code(await running), "OK");
  assert.equal(clock.waiting, 0);
});

Deno.test("CallRunner.stop() aborts running calls after its grace and resolves even if a handler does not react", async () => {
  const { run, runner, clock } = setUp();
  const slow = stubborn();
  const deaf = run(slow.handler);
  const listening = run(obedient, { request: { volumeId: "other" } });
  const stopping = runner.stop(25_000);
  await clock.advance(26_000);
  await stopping;
  assert.ok(VolumeError.is(slow.contexts[0]?.signal.reason, "unavailable"));
  assert.equal(code(await deaf), "UNAVAILABLE");
  assert.equal(code(await listening), "UNAVAILABLE");
  slow.end();
});

Deno.test("CallRunner.stop() resolves at once when nothing runs", async () => {
  const { runner, clock } = setUp();
  await runner.stop(25_000);
  assert.equal(clock.waiting, 0);
});
