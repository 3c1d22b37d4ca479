import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import {
  answering,
  ended,
  FakeSshTransport,
  notRun,
  printFrames,
  torn,
} from "../../../tests/fakes/ssh_transport.ts";
import { VolumeError } from "../../volume/errors.ts";
import { command, ros } from "../../routeros/console/command.ts";
import { ConnectError } from "../../routeros/ssh/transport.ts";
import { LostAnswer, ProbeSession, RouterGone } from "./session.ts";

const put = command(ros`:put ${"x"}`);

function lineTo(transport: FakeSshTransport, clock = new FakeClock(), signal = new AbortController().signal) {
  return new ProbeSession({ transport, clock, random: new SeededRandom(), signal });
}

Deno.test("exec() gives stdout and stderr apart, to the byte", async () => {
  const transport = new FakeSshTransport(() => ({
    state: "ended",
    output: "out\r\n\nbad\r\n",
    errors: "bad\r\n",
    exitStatus: 1,
  }));
  assert.deepEqual(await lineTo(transport).exec(put), { stdout: "out\r\n", stderr: "bad\r\n" });
});

Deno.test("exec() sends nothing twice: what ended without a word is lost, and counted", async () => {
  const transport = new FakeSshTransport(() => torn());
  const line = lineTo(transport);
  await assert.rejects(line.exec(put), LostAnswer);
  assert.equal(transport.commands.length, 1);
  assert.equal(line.lost, 1);
});

Deno.test("exec() sends again what certainly was not sent", async () => {
  let refusals = 2;
  const transport = new FakeSshTransport(() => refusals-- > 0 ? notRun() : ended("x\r\n"));
  const clock = new FakeClock();
  const printed = lineTo(transport, clock).exec(put);
  await clock.advance(3000);
  assert.equal((await printed).stdout, "x\r\n");
});

Deno.test("exec() connects again after the connection broke", async () => {
  const transport = new FakeSshTransport(() => ended("x\r\n"));
  const clock = new FakeClock();
  const line = lineTo(transport, clock);
  await line.exec(put);
  transport.drop();
  const again = line.exec(put);
  await clock.advance(1000);
  assert.equal((await again).stdout, "x\r\n");
  assert.equal(transport.attempts, 2);
});

Deno.test("connect() tries three times, and not at all again where that is pointless", async () => {
  for (const [lasting, attempts] of [[false, 3], [true, 1]] as const) {
    const transport = new FakeSshTransport();
    transport.onConnect = () => {
      throw new ConnectError("no", { lasting });
    };
    const clock = new FakeClock();
    const connecting = assert.rejects(lineTo(transport, clock).connect(), RouterGone);
    await clock.advance(5000);
    await connecting;
    assert.equal(transport.attempts, attempts);
  }
});

Deno.test("a command that is never answered ends the connection, and counts as lost", async () => {
  const transport = new FakeSshTransport(() => new Promise(() => {}));
  const clock = new FakeClock();
  const lost = assert.rejects(lineTo(transport, clock).exec(put), LostAnswer);
  await clock.advance(60_000);
  await lost;
});

Deno.test("a line that is stopped lets its command finish, and sends no other", async () => {
  const stop = new AbortController();
  const answer = Promise.withResolvers<ReturnType<typeof ended>>();
  const transport = new FakeSshTransport(() => answer.promise);
  const clock = new FakeClock();
  const line = lineTo(transport, clock, stop.signal);
  const printed = line.exec(put);
  await clock.advance(0);
  stop.abort(new VolumeError("cancelled", "Stopped by SIGINT"));
  await clock.advance(5000);
  answer.resolve(ended("x\r\n"));
  assert.equal((await printed).stdout, "x\r\n");
  await assert.rejects(line.exec(put), (error) => VolumeError.is(error, "cancelled"));
  assert.equal(transport.commands.length, 1);
});

Deno.test("a line that is stopped waits ten seconds for its command, and no longer", async () => {
  const stop = new AbortController();
  const transport = new FakeSshTransport(() => new Promise(() => {}));
  const clock = new FakeClock();
  const lost = assert.rejects(lineTo(transport, clock, stop.signal).exec(put), LostAnswer);
  await clock.advance(0);
  stop.abort(new VolumeError("cancelled", "Stopped by SIGINT"));
  await clock.advance(10_000);
  await lost;
});

Deno.test("run() reports what was done from what was refused, and from what came cut", async () => {
  const transport = new FakeSshTransport(answering(() => "[]"));
  const line = lineTo(transport);
  const statement = ros`/disk set ${"a"} comment=${"b"}`;
  assert.deepEqual(await line.run([statement], [ros`/disk find`]), { done: true, frames: ["[]"], texts: "" });
  transport.router = () => ended("failure: no\r\n");
  assert.deepEqual(await line.run([statement], [ros`/disk find`]), {
    done: false,
    frames: [],
    texts: '"failure: no"',
  });
  transport.router = (command) => ended(printFrames(command, () => "[1,2,3]").slice(0, 16));
  await assert.rejects(
    line.run([statement], [ros`/disk find`]),
    (error) =>
      VolumeError.is(error, "unavailable") && !(error instanceof LostAnswer) && /cut/.test(error.message),
  );
});
