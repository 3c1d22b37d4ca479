// Requests that work for hours beside the others: they get few channels, and nothing is concluded from their silence.
import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { fakeCall } from "../../../tests/fakes/contexts.ts";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { ended, FakeSshTransport, torn } from "../../../tests/fakes/ssh_transport.ts";
import { VolumeError, type VolumeErrorKind } from "../../volume/errors.ts";
import { command, ros } from "../console/command.ts";
import { Session, type SessionOptions } from "./session.ts";
import type { ExecEnd } from "./transport.ts";

const hourMs = 3_600_000;

/** A router whose long requests end when told to, and whose others end at once. */
function bench(options: Partial<SessionOptions> = {}) {
  const clock = new FakeClock();
  const copies: { readonly name: string; readonly end: (end: ExecEnd) => void }[] = [];
  let given = 0;
  const ssh = new FakeSshTransport((text, signal) => {
    if (text.startsWith("/test")) return ended("");
    signal.addEventListener("abort", () => given++);
    return new Promise((resolve) => copies.push({ name: text.slice(12, -1), end: resolve }));
  });
  const session = new Session({ transport: ssh, clock, random: new SeededRandom(), ...options });
  const run = (name: string, context = fakeCall(clock)) =>
    session.run({ kind: "test", key: name, command: command(ros`/test name=${name}`), context });
  const copy = (name: string, context = fakeCall(clock), timeoutMs = 24 * hourMs) =>
    session.run({ kind: "copy", key: name, command: command(ros`/copy name=${name}`), context, timeoutMs });
  return { clock, ssh, session, run, copy, copies, givenUp: () => given };
}

async function rejectsWith(promise: Promise<unknown>, kind: VolumeErrorKind, form = /./): Promise<void> {
  await assert.rejects(promise, (error) => VolumeError.is(error, kind) && form.test(error.message));
}

Deno.test("Session waits hours for a request that may take them, and lets others go on meanwhile", async () => {
  const { clock, ssh, session, run, copy, copies } = bench();
  const long = copy("a");
  await clock.advance(23 * hourMs);
  assert.equal((await run("b")).ended, true);
  copies[0]!.end(ended("done"));
  assert.equal((await long).output, "done");
  assert.equal(ssh.attempts, 1);
  session.close();
});

Deno.test("Session runs at most two long requests at once; the third waits, and nobody behind it does", async () => {
  const { clock, session, run, copy, copies } = bench();
  const long = ["a", "b", "c"].map((name) => copy(name));
  await clock.advance(0);
  assert.deepEqual(copies.map(({ name }) => name), ["a", "b"]);
  assert.equal((await run("d")).ended, true);
  copies[0]!.end(ended(""));
  await clock.advance(0);
  assert.deepEqual(copies.map(({ name }) => name), ["a", "b", "c"]);
  for (const { end } of copies) end(ended(""));
  await Promise.all(long);
  session.close();
});

Deno.test("Session keeps the connection when the call of a long request ends, however long the channel lingers", async () => {
  const { clock, ssh, session, run, copy, copies, givenUp } = bench();
  const call = fakeCall(clock);
  const long = rejectsWith(copy("a", call), "cancelled");
  await clock.advance(1000);
  call.cancel();
  await long;
  await clock.advance(hourMs);
  assert.equal(givenUp(), 1);
  assert.equal((await run("b")).ended, true);
  copies[0]!.end(torn());
  await clock.advance(0);
  assert.equal(ssh.attempts, 1);
  session.close();
});

Deno.test("Session takes a router for frozen that lets even a long request's time pass and its channel linger", async () => {
  const { clock, ssh, session, run, copy } = bench();
  await run("first");
  const long = copy("a", fakeCall(clock), hourMs);
  await clock.advance(hourMs + 5000);
  assert.equal((await long).ended, false);
  assert.equal((await run("b")).ended, true);
  assert.equal(ssh.attempts, 2);
  session.close();
});

Deno.test("Session never sends a long request to find out whether the router is back", async () => {
  const { clock, ssh, session, run, copy } = bench();
  ssh.onConnect = () => {
    throw new Error("ECONNREFUSED");
  };
  const failure = rejectsWith(run("first"), "unavailable");
  await clock.advance(5000);
  await failure;
  ssh.onConnect = () => {};
  await clock.advance(10_000);
  await rejectsWith(copy("a"), "unavailable", /ECONNREFUSED/);
  assert.equal((await run("b")).ended, true);
  const long = copy("c");
  await clock.advance(0);
  session.close();
  assert.equal((await long).ended, false);
});
