import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { fakeCall } from "../../../tests/fakes/contexts.ts";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { ended, FakeSshTransport, notRun, torn } from "../../../tests/fakes/ssh_transport.ts";
import { VolumeError, type VolumeErrorKind } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/ports.ts";
import { command, ros } from "../console/command.ts";
import { Session, type SessionOptions } from "./session.ts";
import { ConnectError } from "./transport.ts";

function bench(options: Partial<SessionOptions> = {}) {
  const clock = new FakeClock();
  const ssh = new FakeSshTransport();
  const states: string[] = [];
  const session = new Session({
    transport: ssh,
    clock,
    random: new SeededRandom(),
    observer: { breaker: ({ state }) => states.push(state) },
    ...options,
  });
  const run = (name: string, context: CallContext = fakeCall(clock)) =>
    session.run({ kind: "test", key: name, command: command(ros`/test name=${name}`), context });
  return { clock, ssh, session, states, run };
}

type Bench = ReturnType<typeof bench>;

async function rejectsWith(promise: Promise<unknown>, kind: VolumeErrorKind, form = /./): Promise<void> {
  await assert.rejects(promise, (error) => {
    assert.ok(VolumeError.is(error, kind) && form.test(error.message), String(error));
    return true;
  });
}

function refuse(ssh: FakeSshTransport, reason = "ECONNREFUSED", lasting = false): void {
  ssh.onConnect = () => {
    throw new ConnectError(reason, { lasting });
  };
}

/** Opens the breaker; afterwards its first delay, of at most a second, has begun. */
async function open({ ssh, run, clock, states }: Bench): Promise<void> {
  refuse(ssh);
  const failure = rejectsWith(run("first"), "unavailable");
  for (let i = 0; i < 100 && states.length === 0; i++) await clock.advance(50);
  await failure;
  assert.deepEqual(states, ["open"]);
  assert.equal(ssh.attempts, 3);
}

Deno.test("Session refuses at once while its breaker is open, with the cause and the time of the next try", async () => {
  const all = bench();
  await open(all);
  const form = /as ECONNREFUSED; that failed 3 times in a row, .* not before 2026-01-01T00:00:0\S+Z: router=/;
  await Promise.all(Array.from({ length: 50 }, (_, i) => rejectsWith(all.run(`${i}`), "unavailable", form)));
  assert.equal(all.ssh.attempts, 3);
  all.session.close();
});

Deno.test("Session fails all that waits when the breaker opens, however late it came", async () => {
  const { ssh, run, clock, session } = bench();
  refuse(ssh);
  const early = rejectsWith(run("early"), "unavailable", /3 times/);
  for (let i = 0; i < 100 && ssh.attempts < 2; i++) await clock.advance(10);
  const late = rejectsWith(run("late"), "unavailable", /3 times/);
  await clock.advance(1000);
  await Promise.all([early, late]);
  session.close();
});

Deno.test("Session opens its breaker at once when a failure lasts", async () => {
  const { ssh, run, session, states } = bench();
  refuse(ssh, "it refused the login", true);
  await rejectsWith(run("a"), "unavailable", /refused the login; that failed once/);
  await rejectsWith(run("b"), "unavailable", /refused the login; that failed once/);
  assert.deepEqual(states, ["open"]);
  assert.equal(ssh.attempts, 1);
  session.close();
});

Deno.test("Session lets one request try after the delay, refuses the others, and closes with its success", async () => {
  const all = bench();
  const { ssh, run, clock, session, states } = all;
  await open(all);
  await clock.advance(1000);
  assert.equal(ssh.attempts, 3, "nobody asks, so nobody connects");
  const gate = Promise.withResolvers<void>();
  ssh.onConnect = () => gate.promise;
  ssh.router = (text) => ended(text);
  const trying = run("try");
  await rejectsWith(run("other"), "unavailable", /another try is under way/);
  gate.resolve();
  assert.equal((await trying).ended, true);
  assert.equal((await run("next")).ended, true);
  assert.deepEqual(states, ["open", "trying", "closed"]);
  assert.equal(ssh.attempts, 4);
  session.close();
});

Deno.test("Session waits longer after a try that failed", async () => {
  const all = bench();
  const { ssh, run, clock, session, states } = all;
  await open(all);
  await clock.advance(1000);
  await rejectsWith(run("try"), "unavailable", /4 times/);
  await clock.advance(900);
  await rejectsWith(run("too early"), "unavailable", /4 times/);
  assert.equal(ssh.attempts, 4);
  await clock.advance(1100);
  await rejectsWith(run("try again"), "unavailable", /5 times/);
  assert.deepEqual(states, ["open", "trying", "open", "trying", "open"]);
  session.close();
});

Deno.test("Session sends one command at a time over a new connection until one has ended in order", async () => {
  const all = bench();
  const { ssh, run, clock, session, states } = all;
  await open(all);
  await clock.advance(1000);
  ssh.onConnect = () => {};
  ssh.router = (_text, signal) =>
    new Promise((resolve) => signal.addEventListener("abort", () => resolve(torn())));
  const hung = rejectsWith(run("hung", fakeCall(clock, 500)), "deadline");
  await clock.advance(100);
  assert.equal(session.state, "ready");
  await rejectsWith(run("other"), "unavailable", /under way/);
  await clock.advance(400);
  await hung;
  ssh.router = () => ended("");
  assert.equal((await run("next")).ended, true);
  assert.deepEqual(states, ["open", "trying", "closed"]);
  session.close();
});

Deno.test("Session tries on after the call whose try it was has gone", async () => {
  const all = bench();
  const { ssh, run, clock, session, states } = all;
  await open(all);
  await clock.advance(1000);
  const gate = Promise.withResolvers<void>();
  ssh.onConnect = () => gate.promise;
  const call = fakeCall(clock);
  const gone = rejectsWith(run("gone", call), "cancelled");
  call.cancel();
  await gone;
  const next = run("next");
  gate.resolve();
  assert.equal((await next).ended, true);
  assert.equal(ssh.attempts, 4);
  assert.deepEqual(ssh.commands, [`/test name="next"`]);
  assert.deepEqual(states, ["open", "trying", "closed"]);
  session.close();
});

Deno.test("Session lets no more than the queue's bound wait for a frozen router, each to its deadline", async () => {
  const { ssh, run, clock, session } = bench({ maxQueued: 10, connectTimeoutMs: 15_000 });
  ssh.connect = (signal?: AbortSignal) =>
    new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(new Error("aborted"))));
  const ends: string[] = [];
  const waiting = Array.from({ length: 30 }, async (_, i) => {
    await rejectsWith(run(`${i}`, fakeCall(clock, 10_000)), i < 10 ? "deadline" : "unavailable");
    ends.push(`${i < 10} ${clock.monotonicMs()}`);
  });
  const startedMs = clock.monotonicMs();
  await clock.advance(0);
  assert.deepEqual(new Set(ends), new Set([`false ${startedMs}`]));
  assert.equal(ends.length, 20);
  await clock.advance(10_000);
  await Promise.all(waiting);
  assert.deepEqual(new Set(ends.slice(20)), new Set([`true ${startedMs + 10_000}`]));
  session.close();
});

Deno.test("Session's breaker opens for a router that takes connections and answers nothing", async () => {
  const { ssh, run, clock, session, states } = bench({ commandTimeoutMs: 1000, lingerMs: 100 });
  ssh.router = () => new Promise(() => {});
  for (let i = 0; i < 3; i++) {
    const reply = run(`${i}`);
    await clock.advance(2000);
    assert.equal((await reply).ended, false);
  }
  assert.deepEqual(states, ["open"]);
  session.close();
});

Deno.test("Session keeps its breaker closed for one lost connection", async () => {
  const { ssh, run, clock, session, states } = bench();
  ssh.router = () => ended("");
  await run("useful");
  ssh.drop();
  ssh.onConnect = (attempt) => {
    if (attempt < 4) throw new ConnectError("ECONNREFUSED", { lasting: false });
  };
  const reply = run("a");
  await clock.advance(2000);
  assert.equal((await reply).ended, true);
  assert.equal(ssh.attempts, 4);
  assert.deepEqual(states, []);
  session.close();
});

Deno.test("Session puts no command back into the queue when its connection's end has opened the breaker", async () => {
  const { ssh, run, clock, session } = bench({ openAfter: 1 });
  ssh.connect = () => {
    ssh.attempts++;
    const exec = async () => {
      await clock.sleep(10);
      return notRun();
    };
    return Promise.resolve({ closed: Promise.resolve("the connection broke"), exec, close() {} });
  };
  const failure = rejectsWith(run("a"), "unavailable", /connection broke; that failed once/);
  await clock.advance(10);
  await failure;
  await clock.advance(5000);
  assert.equal(ssh.attempts, 1);
  session.close();
});
