// When a session connects, how long it waits between attempts, and when requests no longer wait.
import assert from "node:assert/strict";
import { fakeCall } from "../../../tests/fakes/contexts.ts";
import { ended, notRun } from "../../../tests/fakes/ssh_transport.ts";
import { rejectsWith } from "../../../tests/fakes/volume_errors.ts";
import {
  bench,
  frozen,
  hangConnecting,
  manual,
  openBreaker,
  refuse,
} from "../../../tests/support/ssh_session.ts";
import { ConnectError } from "./transport.ts";

Deno.test("Session connects with the first command and keeps the connection", async () => {
  const { session, ssh, run, states } = bench();
  ssh.router = () => ended("hello");
  assert.equal(session.state, "idle");
  const reply = await run("a");
  assert.deepEqual([reply.output, reply.ended], ["hello", true]);
  assert.equal((await run("b")).connection, reply.connection);
  assert.equal(ssh.attempts, 1);
  assert.deepEqual(states, ["connecting", "ready"]);
  session.close();
});

Deno.test("Session answers running commands as not ended when the connection breaks, and reconnects at once", async () => {
  const { session, ssh, run, clock } = bench();
  ssh.router = () => ended("");
  await run("useful");
  manual(ssh);
  const running = run("a");
  await clock.advance(0);
  ssh.drop();
  assert.equal((await running).ended, false);
  ssh.router = () => ended("again");
  const next = await run("b");
  assert.deepEqual([next.connection, next.output], [2, "again"]);
  session.close();
});

Deno.test("Session backs off between attempts, and a command waits through two failures", async () => {
  const { session, ssh, run, clock } = bench();
  ssh.onConnect = (attempt) => {
    if (attempt < 3) throw new ConnectError("ECONNREFUSED", { lasting: false });
  };
  ssh.router = () => ended("hello");
  const reply = run("a");
  await clock.advance(0);
  assert.equal(session.state, "backing-off");
  await clock.advance(100);
  assert.equal(ssh.attempts, 1);
  await clock.advance(150);
  assert.equal(ssh.attempts, 2);
  await clock.advance(500);
  assert.equal((await reply).output, "hello");
  session.close();
});

Deno.test("Session gives up a connection attempt that never ends", async () => {
  const { session, ssh, run, clock } = bench({ openAfter: 1 });
  hangConnecting(ssh);
  const failure = rejectsWith(run("a"), "unavailable", /within 15 s.*router=test@router:22/);
  await clock.advance(15_000);
  await failure;
  session.close();
});

Deno.test("Session does not reconnect in a loop to a router that drops every connection", async () => {
  const { session, ssh, run, clock } = bench();
  const connect = ssh.connect.bind(ssh);
  ssh.connect = async () => {
    await connect();
    return {
      closed: Promise.resolve("the connection broke"),
      exec: () => Promise.resolve(notRun()),
      close() {},
    };
  };
  const failure = rejectsWith(run("a"), "unavailable");
  await clock.advance(1000);
  assert.ok(ssh.attempts <= 4, `${ssh.attempts} attempts in a second`);
  await clock.advance(60_000);
  await failure;
  assert.ok(ssh.attempts <= 8, `${ssh.attempts} attempts in all`);
  session.close();
});

Deno.test("Session refuses commands after close() and leaves no timer", async () => {
  const { session, run, clock } = bench();
  await run("a");
  session.close();
  session.close();
  await rejectsWith(run("b"), "unavailable", /shutting down/);
  await clock.advance(0);
  assert.deepEqual([clock.waiting, session.state], [0, "closed"]);
});

Deno.test("Session closes a connection that comes after close()", async () => {
  const { session, ssh, run, clock } = bench();
  const gate = Promise.withResolvers<void>();
  ssh.onConnect = () => gate.promise;
  const failure = rejectsWith(run("a"), "unavailable");
  session.close();
  await failure;
  gate.resolve();
  await clock.advance(0);
  assert.deepEqual(ssh.commands, []);
  assert.deepEqual([clock.waiting, session.state], [0, "closed"]);
});

Deno.test("Session fails all waiting commands when the breaker opens, however late they came", async () => {
  const { ssh, run, clock, session } = bench();
  refuse(ssh);
  const early = rejectsWith(run("early"), "unavailable", /3 times/);
  for (let i = 0; i < 100 && ssh.attempts < 2; i++) await clock.advance(10);
  const late = rejectsWith(run("late"), "unavailable", /3 times/);
  await clock.advance(1000);
  await Promise.all([early, late]);
  session.close();
});

Deno.test("Session opens its breaker at once for a lasting failure, and fails all waiting commands", async () => {
  const { ssh, run, clock, session, breaker } = bench();
  refuse(ssh, "it refused the login", true);
  const form = /refused the login; that failed once/;
  await Promise.all(["a", "b"].map((name) => rejectsWith(run(name), "unavailable", form)));
  await rejectsWith(run("c"), "unavailable", form);
  assert.deepEqual(breaker, ["open"]);
  await clock.advance(250);
  assert.equal(ssh.attempts, 1);
  session.close();
});

Deno.test("Session sends one request as a test after the delay, refuses the others, and closes with its success", async () => {
  const all = bench();
  const { ssh, run, clock, session, breaker } = all;
  await openBreaker(all);
  const form =
    /because ECONNREFUSED; that failed 3 times in a row, .* not before 2026-01-01T00:00:0\S+Z: router=/;
  await rejectsWith(run("too early"), "unavailable", form);
  await clock.advance(1000);
  assert.equal(ssh.attempts, 3, "nobody asks, so nobody connects");
  const gate = Promise.withResolvers<void>();
  ssh.onConnect = () => gate.promise;
  const trying = run("try");
  await rejectsWith(run("other"), "unavailable", /another try is under way/);
  gate.resolve();
  assert.equal((await trying).ended, true);
  assert.equal((await run("next")).ended, true);
  assert.deepEqual(breaker, ["open", "trying", "closed"]);
  assert.equal(ssh.attempts, 4);
  session.close();
});

Deno.test("Session sends one command at a time over a new connection until one has ended in order", async () => {
  const all = bench();
  const { ssh, run, clock, session, breaker } = all;
  await openBreaker(all);
  await clock.advance(1000);
  ssh.onConnect = () => {};
  ssh.router = frozen;
  const hung = rejectsWith(run("hung", { context: fakeCall(clock, 500) }), "deadline");
  await clock.advance(100);
  assert.equal(session.state, "ready");
  await rejectsWith(run("other"), "unavailable", /under way/);
  await clock.advance(400);
  await hung;
  ssh.router = () => ended("");
  assert.equal((await run("next")).ended, true);
  assert.deepEqual(breaker, ["open", "trying", "closed"]);
  session.close();
});

Deno.test("Session tries on after the call whose request was the test has gone", async () => {
  const all = bench();
  const { ssh, run, clock, session, breaker } = all;
  await openBreaker(all);
  await clock.advance(1000);
  const gate = Promise.withResolvers<void>();
  ssh.onConnect = () => gate.promise;
  const context = fakeCall(clock);
  const gone = rejectsWith(run("gone", { context }), "cancelled");
  context.cancel();
  await gone;
  const next = run("next");
  gate.resolve();
  assert.equal((await next).ended, true);
  assert.equal(ssh.attempts, 4);
  assert.deepEqual(ssh.commands, [`/test name="next"`]);
  assert.deepEqual(breaker, ["open", "trying", "closed"]);
  session.close();
});

Deno.test("Session lets no more than the queue's limit wait for a frozen router, each to its deadline", async () => {
  const { ssh, run, clock, session } = bench({ maxQueued: 10, connectTimeoutMs: 15_000 });
  hangConnecting(ssh);
  const ends: string[] = [];
  const waiting = Array.from({ length: 30 }, async (_, i) => {
    const context = fakeCall(clock, 10_000);
    await rejectsWith(run(`${i}`, { context }), i < 10 ? "deadline" : "unavailable");
    ends.push(`${i < 10} ${clock.monotonicMs()}`);
  });
  const startedMs = clock.monotonicMs();
  await clock.advance(0);
  assert.deepEqual(ends, Array(20).fill(`false ${startedMs}`));
  await clock.advance(10_000);
  await Promise.all(waiting);
  assert.deepEqual(new Set(ends.slice(20)), new Set([`true ${startedMs + 10_000}`]));
  session.close();
});

Deno.test("Session's breaker opens for a router that accepts connections and answers nothing", async () => {
  const { ssh, run, clock, session, breaker } = bench({ commandTimeoutMs: 1000, lingerMs: 100 });
  ssh.router = () => new Promise(() => {});
  for (let i = 0; i < 3; i++) {
    const reply = run(`${i}`);
    await clock.advance(2000);
    assert.equal((await reply).ended, false);
  }
  assert.deepEqual(breaker, ["open"]);
  session.close();
});

Deno.test("Session keeps its breaker closed for one lost connection", async () => {
  const { ssh, run, clock, session, breaker } = bench();
  await run("useful");
  ssh.drop();
  ssh.onConnect = (attempt) => {
    if (attempt < 4) throw new ConnectError("ECONNREFUSED", { lasting: false });
  };
  const reply = run("a");
  await clock.advance(2000);
  assert.equal((await reply).ended, true);
  assert.equal(ssh.attempts, 4);
  assert.deepEqual(breaker, []);
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

Deno.test("Session's breaker opens 20 s after the first command that a frozen router does not answer", async () => {
  const { ssh, run, clock, session, breaker } = bench();
  await run("first");
  ssh.router = frozen;
  const hung = Array.from({ length: 8 }, (_, i) => run(`hung-${i}`));
  const queued = rejectsWith(run("queued"), "unavailable", /answered no command for 20 s/);
  await clock.advance(19_999);
  assert.deepEqual(breaker, []);
  await clock.advance(1);
  assert.deepEqual(breaker, ["open"]);
  await queued;
  await rejectsWith(run("later"), "unavailable", /takes connections and has answered no command for 20 s/);
  await clock.advance(10_000);
  for (const { ended } of await Promise.all(hung)) assert.equal(ended, false);
  const trying = run("trying");
  await clock.advance(0);
  await rejectsWith(run("beside it"), "unavailable", /another try is under way/);
  await clock.advance(30_000);
  assert.equal((await trying).ended, false);
  assert.deepEqual(breaker, ["open", "trying", "open"]);
  ssh.router = () => ended("");
  assert.equal((await run("thawed")).ended, true);
  assert.equal(breaker.at(-1), "closed");
  session.close();
});

Deno.test("Session's breaker stays closed for a slow router that answers other commands", async () => {
  const { ssh, run, clock, session, breaker } = bench();
  const open = manual(ssh);
  const slow = run("slow");
  await clock.advance(10_000);
  const quick = run("quick");
  await clock.advance(3_000);
  open[1]!.end(ended(""));
  await quick;
  await clock.advance(16_000);
  open[0]!.end(ended(""));
  assert.equal((await slow).ended, true);
  assert.deepEqual(breaker, []);
  session.close();
});

Deno.test("Session's breaker stays closed while each command takes 19 s, and for a long one of hours", async () => {
  const { ssh, run, clock, session, breaker } = bench();
  const open = manual(ssh);
  const copy = run("copy", { timeoutMs: 86_400_000 });
  await clock.advance(7_200_000);
  for (let i = 1; i < 5; i++) {
    const reply = run(`slow-${i}`);
    await clock.advance(19_000);
    open[i]!.end(ended(""));
    assert.equal((await reply).ended, true);
  }
  open[0]!.end(ended(""));
  await copy;
  assert.deepEqual(breaker, []);
  session.close();
});

Deno.test("Session closes its breaker as soon as the command that opened it is answered", async () => {
  const { ssh, run, clock, session, breaker } = bench();
  const open = manual(ssh);
  const slow = run("slow");
  await clock.advance(25_000);
  assert.deepEqual(breaker, ["open"]);
  open[0]!.end(ended("done"));
  assert.equal((await slow).output, "done");
  assert.deepEqual(breaker, ["open", "closed"]);
  session.close();
});

Deno.test("Session says at a call's deadline what it was waiting for", async () => {
  const { ssh, run, clock, session } = bench({ maxChannels: 1 });
  ssh.router = frozen;
  const soon = (ms: number) => ({ context: fakeCall(clock, ms) });
  const running = rejectsWith(run("a", soon(9_000)), "deadline", /not answered the command for 9 s: router=/);
  const waiting = rejectsWith(run("b", soon(8_000)), "deadline", /still waited for its turn: router=/);
  await clock.advance(9_000);
  await Promise.all([running, waiting]);
  session.close();
  const unconnected = bench();
  hangConnecting(unconnected.ssh);
  const context = fakeCall(unconnected.clock, 5_000);
  const failure = rejectsWith(unconnected.run("c", { context }), "deadline", /no connection to the router/);
  await unconnected.clock.advance(5_000);
  await failure;
  unconnected.session.close();
});

Deno.test("Session's breaker opens also where every caller gives up before 20 s, with pauses in between", async () => {
  const { ssh, run, clock, session, breaker } = bench();
  await run("first");
  ssh.router = frozen;
  for (const [i, state] of [[], [], ["open"]].entries()) {
    const context = fakeCall(clock, 8_000);
    const failure = rejectsWith(run(`hung-${i}`, { context }), "deadline");
    await clock.advance(8_000);
    await failure;
    assert.deepEqual(breaker, state);
    await clock.advance(60_000);
  }
  session.close();
  assert.equal(clock.waiting, 0);
});

Deno.test("Session's breaker stays closed while callers give up and others are answered in between", async () => {
  const { ssh, run, clock, session, breaker } = bench();
  for (let i = 0; i < 10; i++) {
    ssh.router = frozen;
    const failure = rejectsWith(run("hung", { context: fakeCall(clock, 15_000) }), "deadline");
    await clock.advance(15_000);
    await failure;
    ssh.router = () => ended("");
    await run("answered");
  }
  assert.deepEqual(breaker, []);
  session.close();
});
