// What a session sends, in which order, and how often.
import assert from "node:assert/strict";
import { fakeCall } from "../../../tests/fakes/contexts.ts";
import { ended, notRun, torn } from "../../../tests/fakes/ssh_transport.ts";
import { rejectsWith } from "../../../tests/fakes/volume_errors.ts";
import { bench, frozen, manual, refuse } from "../../../tests/support/ssh_session.ts";

Deno.test("Session runs at most eight commands at once and serves keys in turn", async () => {
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

for (const kind of ["cancelled", "deadline"] as const) {
  Deno.test(`Session never sends a command whose call ended (${kind}) while it waited`, async () => {
    const { session, ssh, run, clock } = bench({ maxChannels: 1 });
    const open = manual(ssh);
    const first = run("running");
    const call = fakeCall(clock, kind === "deadline" ? 1000 : undefined);
    const failure = rejectsWith(run("waiting", { context: call }), kind);
    await clock.advance(0);
    if (kind === "cancelled") call.cancel();
    await clock.advance(1000);
    await failure;
    open[0]!.end(ended(""));
    await first;
    await clock.advance(0);
    assert.deepEqual(ssh.commands, [`/test name="running"`]);
    session.close();
  });
}

Deno.test("Session refuses a call that is over before it starts", async () => {
  const { ssh, run, clock } = bench();
  const call = fakeCall(clock);
  call.cancel();
  await rejectsWith(run("a", { context: call }), "cancelled");
  await rejectsWith(run("a", { context: fakeCall(clock, 0) }), "deadline");
  assert.equal(ssh.attempts, 0);
});

Deno.test("Session gives up the channel when a call ends while its command runs", async () => {
  const { session, ssh, run, clock, events } = bench();
  ssh.router = frozen;
  const call = fakeCall(clock);
  const failure = rejectsWith(run("a", { context: call }), "cancelled");
  await clock.advance(0);
  call.cancel();
  await failure;
  await clock.advance(0);
  assert.equal(events[0]?.outcome, "cancelled");
  assert.equal(clock.waiting, 0);
  session.close();
});

Deno.test("Session answers a command that takes too long as not ended, with the output so far", async () => {
  const { session, ssh, run, clock, events } = bench();
  ssh.router = frozen;
  const reply = run("a");
  await clock.advance(30_000);
  const { receivedMs: _, ...rest } = await reply;
  assert.deepEqual(rest, { output: "half", ended: false, connection: 1 });
  assert.equal(events[0]?.outcome, "timeout");
  session.close();
});

Deno.test("Session closes the connection when an abandoned channel lingers", async () => {
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

Deno.test("Session sends a command again when no channel could be opened, eight times", async () => {
  const { session, ssh, run, clock } = bench();
  let refusals = 2;
  ssh.router = () => refusals-- > 0 ? notRun() : ended("hello");
  const reply = run("a");
  await clock.advance(500);
  assert.equal((await reply).output, "hello");
  assert.equal(ssh.commands.length, 3);
  ssh.router = () => notRun("session limit");
  const failure = rejectsWith(run("b"), "unavailable", /session limit.*limit of SSH sessions/);
  await clock.advance(60_000);
  await failure;
  assert.equal(ssh.commands.length, 3 + 8);
  session.close();
});

Deno.test("Session lets a refused command wait until a channel is free", async () => {
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
  const event = { kind: "test", requestId: "test", outcome: "ended", statements: 1 };
  assert.deepEqual(events, [
    { ...event, ms: 40, queued: 1 },
    { ...event, ms: 7, queued: 0 },
  ]);
  session.close();
});

Deno.test("a command is sent only while the fence allows it, even one that waited while it was allowed", async () => {
  let reason: string | undefined;
  const { ssh, run, clock } = bench({ maxChannels: 1, fence: () => reason });
  const open = manual(ssh);
  const first = run("first");
  const second = run("second");
  await clock.advance(0);
  assert.deepEqual(open.map(({ name }) => name), ["first"]);
  reason = "another one leads";
  open[0]!.end(ended("done"));
  assert.equal((await first).ended, true);
  await rejectsWith(second, "unavailable", /another one leads/);
  await rejectsWith(run("third"), "unavailable", /another one leads/);
  assert.deepEqual(open.map(({ name }) => name), ["first"]);
  reason = undefined;
  const fourth = run("fourth");
  await clock.advance(0);
  open[1]!.end(ended("done"));
  assert.equal((await fourth).ended, true);
});

const hourMs = 3_600_000;
/** Makes a request a long one that may take a day: it gets few channels, and its silence proves nothing. */
const long = { timeoutMs: 24 * hourMs };

Deno.test("Session runs at most two long requests at once; a third waits, and delays no other request", async () => {
  const { clock, ssh, session, run } = bench();
  const open = manual(ssh);
  const names = () => open.map(({ name }) => name);
  const copies = ["a", "b", "c"].map((name) => run(name, long));
  await clock.advance(23 * hourMs);
  assert.deepEqual(names(), ["a", "b"]);
  const other = run("d");
  await clock.advance(0);
  open[2]!.end(ended(""));
  assert.equal((await other).ended, true);
  open[0]!.end(ended("done"));
  await clock.advance(0);
  assert.deepEqual(names(), ["a", "b", "d", "c"]);
  for (const { end } of open) end(ended(""));
  assert.equal((await Promise.all(copies))[0]?.output, "done");
  assert.equal(ssh.attempts, 1);
  session.close();
});

Deno.test("Session keeps the connection when the call of a long request ends, however long the channel lingers", async () => {
  const { clock, ssh, session, run } = bench();
  let hasGivenUp = false;
  ssh.router = (_text, signal) => {
    signal.addEventListener("abort", () => hasGivenUp = true);
    return new Promise(() => {});
  };
  const context = fakeCall(clock);
  const copy = rejectsWith(run("a", { context, ...long }), "cancelled");
  await clock.advance(1000);
  context.cancel();
  await copy;
  await clock.advance(hourMs);
  assert.ok(hasGivenUp);
  ssh.router = () => ended("");
  assert.equal((await run("b")).connection, 1);
  session.close();
});

Deno.test("Session treats a router as frozen when even a long request overruns its time and its channel lingers", async () => {
  const { clock, ssh, session, run } = bench();
  ssh.router = (text) => text.includes("copy") ? new Promise(() => {}) : ended("");
  await run("first");
  const copy = run("copy", { timeoutMs: hourMs });
  await clock.advance(hourMs + 5000);
  assert.equal((await copy).ended, false);
  assert.equal((await run("b")).connection, 2);
  session.close();
});

Deno.test("Session never sends a long request to test whether the router is back", async () => {
  const { clock, ssh, session, run } = bench();
  refuse(ssh);
  const failure = rejectsWith(run("first"), "unavailable");
  await clock.advance(5000);
  await failure;
  ssh.onConnect = () => {};
  await clock.advance(10_000);
  await rejectsWith(run("a", long), "unavailable", /ECONNREFUSED/);
  assert.equal((await run("b")).ended, true);
  assert.equal((await run("c", long)).ended, true);
  session.close();
});

Deno.test("Session leaves the connection alone when a command aside hangs for good, and sends no second one", async () => {
  const { session, ssh, run, clock, breaker, states } = bench();
  ssh.router = (text) => text.includes("aside") ? new Promise(() => {}) : ended("answered");
  const failure = rejectsWith(
    run("aside", { context: { ...fakeCall(clock, 20_000), aside: true } }),
    "deadline",
  );
  await clock.advance(20_000);
  await failure;
  await clock.advance(60_000);
  assert.equal((await run("other")).output, "answered");
  const again = rejectsWith(
    run("aside", { context: { ...fakeCall(clock, 20_000), aside: true } }),
    "deadline",
  );
  await clock.advance(20_000);
  await again;
  assert.deepEqual([breaker, states, ssh.attempts], [[], ["connecting", "ready"], 1]);
  assert.deepEqual(ssh.commands, [`/test name="aside"`, `/test name="other"`]);
  session.close();
});

Deno.test("Session sends a command aside although one of another call hangs", async () => {
  const { session, ssh, run, clock, breaker } = bench();
  ssh.router = (text) => text.includes("hangs") ? new Promise(() => {}) : ended("answered");
  const aside = (requestId: string) => ({
    context: { ...fakeCall(clock, 20_000), requestId, aside: true } as const,
  });
  const failure = rejectsWith(run("hangs", aside("names")), "deadline");
  assert.equal((await run("health", aside("hardware"))).output, "answered");
  await clock.advance(20_000);
  await failure;
  assert.deepEqual(breaker, []);
  session.close();
});

Deno.test("Session tests whether a frozen router is back although a command aside hangs", async () => {
  const { session, ssh, run, clock, breaker } = bench();
  ssh.router = (text, signal) => text.includes("aside") ? new Promise(() => {}) : frozen(text, signal);
  const aside = rejectsWith(
    run("aside", { context: { ...fakeCall(clock, 20_000), aside: true } }),
    "deadline",
  );
  const first = run("first", { context: fakeCall(clock) });
  const end = first.then(() => {}, () => {});
  await clock.advance(20_000);
  await aside;
  assert.deepEqual(breaker, ["open"]);
  await rejectsWith(
    run("aside", { context: { ...fakeCall(clock), aside: true } }),
    "unavailable",
    /has answered no command/,
  );
  await clock.advance(11_000);
  await end;
  ssh.router = () => ended("answered");
  assert.equal((await run("second")).output, "answered");
  assert.equal(breaker.at(-1), "closed");
  session.close();
});
