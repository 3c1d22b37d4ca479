import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { fakeCall } from "../../../tests/fakes/contexts.ts";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { ended, FakeSshTransport, notRun, torn } from "../../../tests/fakes/ssh_transport.ts";
import { VolumeError, type VolumeErrorKind } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/ports.ts";
import { command, ros } from "../console/command.ts";
import type { CommandEvent } from "./observer.ts";
import type { ExecReply } from "./exec_request.ts";
import { Session, type SessionOptions } from "./session.ts";
import { ConnectError, type ExecEnd } from "./transport.ts";

interface Bench {
  readonly clock: FakeClock;
  readonly ssh: FakeSshTransport;
  readonly session: Session;
  readonly events: CommandEvent[];
  readonly states: string[];
  run(name: string, options?: { key?: string; context?: CallContext }): Promise<ExecReply>;
}

function bench(options: Partial<SessionOptions> = {}): Bench {
  const clock = new FakeClock();
  const ssh = new FakeSshTransport();
  const events: CommandEvent[] = [];
  const states: string[] = [];
  const session = new Session({
    transport: ssh,
    clock,
    random: new SeededRandom(),
    observer: { command: (event) => events.push(event), connection: ({ state }) => states.push(state) },
    ...options,
  });
  return {
    clock,
    ssh,
    session,
    events,
    states,
    run: (name, { key = name, context = fakeCall(clock) } = {}) =>
      session.run({ kind: "test", key, command: command(ros`/test name=${name}`), context }),
  };
}

/** A router that answers each command only when told to. */
function manual(ssh: FakeSshTransport) {
  const open: { readonly name: string; readonly end: (end: ExecEnd) => void }[] = [];
  ssh.router = (text, signal) =>
    new Promise((resolve) => {
      open.push({ name: text.slice(12, -1), end: resolve });
      signal.addEventListener("abort", () => resolve(torn()));
    });
  return open;
}

async function rejectsWith(promise: Promise<unknown>, kind: VolumeErrorKind, form = /./): Promise<void> {
  await assert.rejects(promise, (error) => VolumeError.is(error, kind) && form.test(error.message));
}

Deno.test("Session connects with the first command and keeps the connection", async () => {
  const { session, ssh, run, states } = bench();
  ssh.router = () => ended("hello");
  assert.equal(session.state, "idle");
  const reply = await run("a");
  assert.equal(reply.output, "hello");
  assert.equal(reply.ended, true);
  assert.equal((await run("b")).connection, reply.connection);
  assert.equal(ssh.attempts, 1);
  assert.deepEqual(states, ["connecting", "ready"]);
  session.close();
});

Deno.test("Session runs at most eight commands at once and lets keys take turns", async () => {
  const { session, ssh, run, clock } = bench();
  const open = manual(ssh);
  const many = Array.from({ length: 20 }, (_, index) => run(`many${index}`, { key: "many" }));
  const one = run("one", { key: "one" });
  await clock.advance(0);
  assert.equal(open.length, 8);
  open[0]!.end(ended(""));
  await clock.advance(0);
  assert.equal(open.length, 9);
  open[1]!.end(ended(""));
  await clock.advance(0);
  assert.ok(open.slice(0, 10).some(({ name }) => name === "one"), open.map(({ name }) => name).join());
  for (let index = 2; index < open.length; index++) {
    open[index]!.end(ended(""));
    await clock.advance(0);
  }
  await Promise.all([...many, one]);
  session.close();
});

Deno.test("Session refuses at once what does not fit into the queue", async () => {
  const { session, ssh, run, clock } = bench({ maxQueued: 2, maxChannels: 1 });
  manual(ssh);
  const first = run("running");
  await clock.advance(0);
  const waiting = [run("a"), run("b")];
  await rejectsWith(run("c"), "unavailable", /2 commands already wait/);
  session.close();
  assert.equal((await first).ended, false);
  await Promise.all(waiting.map((promise) => rejectsWith(promise, "unavailable", /shutting down/)));
});

Deno.test("Session never sends a command whose call was cancelled while it waited", async () => {
  const { session, ssh, run, clock } = bench({ maxChannels: 1 });
  const open = manual(ssh);
  const first = run("running");
  await clock.advance(0);
  const call = fakeCall(clock);
  const waiting = run("waiting", { context: call });
  call.cancel();
  await rejectsWith(waiting, "cancelled");
  open[0]!.end(ended(""));
  await first;
  await clock.advance(0);
  assert.deepEqual(ssh.commands, [`/test name="running"`]);
  session.close();
});

Deno.test("Session never sends a command whose deadline passed while it waited", async () => {
  const { session, ssh, run, clock } = bench({ maxChannels: 1 });
  const open = manual(ssh);
  const first = run("running");
  const waiting = run("waiting", { context: fakeCall(clock, 1000) });
  const failure = rejectsWith(waiting, "deadline");
  await clock.advance(1000);
  await failure;
  open[0]!.end(ended(""));
  await first;
  assert.equal(ssh.commands.length, 1);
  session.close();
});

Deno.test("Session refuses a call that is over before it starts", async () => {
  const { ssh, run, clock } = bench();
  const call = fakeCall(clock);
  call.cancel();
  await rejectsWith(run("a", { context: call }), "cancelled");
  await rejectsWith(run("a", { context: fakeCall(clock, 0) }), "deadline");
  assert.equal(ssh.attempts, 0);
});

Deno.test("Session gives the channel up when a call ends while its command runs", async () => {
  const { session, ssh, run, clock, events } = bench();
  let aborted = false;
  ssh.router = (_text, signal) =>
    new Promise((resolve) =>
      signal.addEventListener("abort", () => {
        aborted = true;
        resolve(torn());
      })
    );
  const call = fakeCall(clock);
  const running = run("a", { context: call });
  const failure = rejectsWith(running, "cancelled");
  await clock.advance(0);
  call.cancel();
  await failure;
  await clock.advance(0);
  assert.equal(aborted, true);
  assert.equal(events[0]?.outcome, "cancelled");
  assert.equal(clock.waiting, 0);
  session.close();
});

Deno.test("Session answers a command that takes too long as not ended, with what had come", async () => {
  const { session, ssh, run, clock, events } = bench();
  ssh.router = (_text, signal) =>
    new Promise((resolve) => signal.addEventListener("abort", () => resolve(torn("half"))));
  const reply = run("a");
  await clock.advance(30_000);
  assert.deepEqual(
    { ...await reply, receivedMs: 0 },
    { output: "half", ended: false, connection: 1, receivedMs: 0 },
  );
  assert.equal(events[0]?.outcome, "timeout");
  session.close();
});

Deno.test("Session closes the connection when a channel that was given up lingers", async () => {
  const { session, ssh, run, clock } = bench();
  ssh.router = () => new Promise(() => {});
  const hung = run("a");
  await clock.advance(30_000);
  assert.equal(session.state, "ready");
  await clock.advance(5000);
  assert.equal((await hung).ended, false);
  assert.notEqual(session.state, "ready");
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
  const reply = await running;
  assert.equal(reply.ended, false);
  ssh.router = () => ended("again");
  const next = await run("b");
  assert.equal(next.connection, 2);
  assert.equal(next.output, "again");
  session.close();
});

Deno.test("Session never sends a command twice when the connection breaks while it runs", async () => {
  const { session, ssh, run, clock } = bench();
  ssh.router = () => {
    ssh.drop();
    return torn();
  };
  assert.equal((await run("once")).ended, false);
  await clock.advance(60_000);
  assert.deepEqual(ssh.commands, [`/test name="once"`]);
  session.close();
});

Deno.test("Session backs off between attempts, and a command sits through two failures", async () => {
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

Deno.test("Session fails a command as unavailable with the cause after three failed attempts", async () => {
  const { session, ssh, run, clock } = bench();
  ssh.onConnect = () => {
    throw new ConnectError("the connection was refused (ECONNREFUSED)", { lasting: false });
  };
  const failure = rejectsWith(run("a"), "unavailable", /ECONNREFUSED.*router=test@router:22/);
  await clock.advance(2000);
  await failure;
  assert.equal(ssh.attempts, 3);
  session.close();
});

Deno.test("Session fails every waiting command at once when a failure lasts", async () => {
  const { session, ssh, run, clock } = bench();
  ssh.onConnect = () => {
    throw new ConnectError("its host key is not the pinned one", { lasting: true });
  };
  const failures = [run("a"), run("b")].map((promise) => rejectsWith(promise, "unavailable", /host key/));
  await Promise.all(failures);
  assert.equal(ssh.attempts, 1);
  assert.equal(session.state, "backing-off");
  await clock.advance(250);
  assert.equal(ssh.attempts, 1, "nobody asks, so nobody connects");
  session.close();
});

Deno.test("Session gives up a connection attempt that never ends", async () => {
  const { session, ssh, run, clock } = bench({ openAfter: 1 });
  ssh.connect = (signal?: AbortSignal) =>
    new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(new Error("aborted"))));
  const failure = rejectsWith(run("a"), "unavailable", /within 15 s/);
  await clock.advance(15_000);
  await failure;
  session.close();
});

Deno.test("Session does not knock in a loop on a router that drops every connection", async () => {
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

Deno.test("Session sends a command again when no channel was to be had", async () => {
  const { session, ssh, run, clock } = bench();
  let refusals = 2;
  ssh.router = () => refusals-- > 0 ? notRun() : ended("hello");
  const reply = run("a");
  await clock.advance(500);
  assert.equal((await reply).output, "hello");
  assert.equal(ssh.commands.length, 3);
  session.close();
});

Deno.test("Session lets a refused command rest until a channel is free", async () => {
  const { session, ssh, run, clock } = bench();
  const open = manual(ssh);
  const first = run("first");
  await clock.advance(0);
  const hold = ssh.router;
  ssh.router = () => notRun();
  const second = run("second");
  await clock.advance(0);
  assert.equal(ssh.commands.length, 2);
  ssh.router = hold;
  open[0]!.end(ended(""));
  await first;
  await clock.advance(0);
  assert.equal(open.at(-1)?.name, "second");
  open.at(-1)!.end(ended("done"));
  assert.equal((await second).output, "done");
  session.close();
});

Deno.test("Session fails a command as unavailable when channels are refused for good", async () => {
  const { session, ssh, run, clock } = bench();
  ssh.router = () => notRun("session limit");
  const failure = rejectsWith(run("a"), "unavailable", /session limit.*limit of SSH sessions/);
  await clock.advance(60_000);
  await failure;
  assert.equal(ssh.commands.length, 8);
  session.close();
});

Deno.test("Session refuses commands after close() and leaves no timer", async () => {
  const { session, ssh, run, clock } = bench();
  ssh.router = () => ended("");
  await run("a");
  session.close();
  session.close();
  await rejectsWith(run("b"), "unavailable", /shutting down/);
  await clock.advance(0);
  assert.equal(clock.waiting, 0);
  assert.equal(session.state, "closed");
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
  assert.equal(session.state, "closed");
  assert.equal(clock.waiting, 0);
});

Deno.test("Session reports each command to its observer", async () => {
  const { session, ssh, run, clock, events } = bench({ maxChannels: 1 });
  const open = manual(ssh);
  const both = [run("a"), run("b")];
  await clock.advance(40);
  open[0]!.end(ended(""));
  await clock.advance(7);
  open[1]!.end(ended(""));
  await Promise.all(both);
  await clock.advance(0);
  assert.deepEqual(events, [
    { kind: "test", requestId: "test", outcome: "ended", ms: 40, waitedMs: 0, statements: 1, queued: 1 },
    { kind: "test", requestId: "test", outcome: "ended", ms: 7, waitedMs: 40, statements: 1, queued: 0 },
  ]);
  session.close();
});

Deno.test("nothing leaves without the fence's leave, not even what has waited for its turn under it", async () => {
  let reason: string | undefined;
  const one = bench({ maxChannels: 1, fence: () => reason });
  const open = manual(one.ssh);
  const first = one.run("first");
  const second = one.run("second");
  await one.clock.advance(0);
  assert.deepEqual(open.map(({ name }) => name), ["first"]);
  reason = "another one leads";
  open[0]!.end(ended("done"));
  assert.equal((await first).ended, true);
  await rejectsWith(second, "unavailable", /another one leads/);
  await rejectsWith(one.run("third"), "unavailable", /another one leads/);
  assert.deepEqual(open.map(({ name }) => name), ["first"]);
  reason = undefined;
  const fourth = one.run("fourth");
  await one.clock.advance(0);
  open[1]!.end(ended("done"));
  assert.equal((await fourth).ended, true);
});
