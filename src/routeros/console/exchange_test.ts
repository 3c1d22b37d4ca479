import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { fakeCall } from "../../../tests/fakes/contexts.ts";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import {
  answering,
  ended,
  type FakeRouter,
  FakeSshTransport,
  printFrames,
  torn,
} from "../../../tests/fakes/ssh_transport.ts";
import { rejectsWith } from "../../../tests/fakes/volume_errors.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { ros } from "./command.ts";
import { divideIntoExecs, Exchange, fitsOneExec, type Question } from "./exchange.ts";
import { Session } from "../ssh/session.ts";

function bench(...replies: FakeRouter[]) {
  const clock = new FakeClock();
  const random = new SeededRandom();
  let next = 0;
  const ssh = new FakeSshTransport((command, signal) =>
    replies[Math.min(next++, replies.length - 1)]!(command, signal)
  );
  const session = new Session({ transport: ssh, clock, random });
  const exchange = new Exchange({ session, clock, random });
  const question = (context: CallContext = fakeCall(clock)): Question => ({
    kind: "test",
    key: "k",
    queries: [ros`/disk print`, ros`/system resource print as-value`],
    context,
  });
  return { clock, ssh, session, exchange, question };
}

const good = answering((_query, index) => `[${index}]`);
const cut: FakeRouter = (command) => ended(printFrames(command, () => "[]").slice(0, 20));

Deno.test("Exchange.ask() returns every frame of one exec, and uses another nonce each time", async () => {
  const { exchange, question, ssh } = bench(good);
  assert.deepEqual((await exchange.ask(question())).frames, ["[0]", "[1]"]);
  assert.equal(ssh.commands.length, 1);
  await exchange.ask(question());
  assert.notEqual(ssh.commands[0], ssh.commands[1]);
});

Deno.test("Exchange.ask() accepts complete frames of a torn channel", async () => {
  const { exchange, question, ssh } = bench((command) => torn(printFrames(command, () => "[]")));
  assert.deepEqual((await exchange.ask(question())).frames, ["[]", "[]"]);
  assert.equal(ssh.commands.length, 1);
});

for (
  const [name, bad] of [["a torn channel", () => torn("")], ["silence", () => ended("")], [
    "a cut answer",
    cut,
  ]] as const
) {
  Deno.test(`Exchange.ask() asks again after ${name}, five times`, async () => {
    const short = bench(bad, bad, good);
    const answer = short.exchange.ask(short.question());
    await short.clock.advance(1000);
    assert.deepEqual((await answer).frames, ["[0]", "[1]"]);
    assert.equal(short.ssh.commands.length, 3);
    const { exchange, question, ssh, clock } = bench(bad);
    const failure = rejectsWith(exchange.ask(question()), "unavailable", /5 times/);
    await clock.advance(60_000);
    await failure;
    assert.equal(ssh.commands.length, 5);
  });
}

Deno.test("Exchange.ask() refuses an answer that is too long, or returns that it is cut, and does not ask again", async () => {
  const { exchange, question, ssh } = bench(() => ({ state: "torn", output: "", isOverlong: true }));
  await rejectsWith(exchange.ask(question()), "unavailable", /its answer is too long/);
  assert.equal(await exchange.ask(question(), "return"), "cut");
  assert.equal(ssh.commands.length, 2);
});

Deno.test("Exchange.ask() throws unavailable with the router's message when it refuses, and does not ask again", async () => {
  const { exchange, question, ssh } = bench(() => ended("purple elephants\r\n"));
  await rejectsWith(exchange.ask(question()), "unavailable", /purple elephants/);
  assert.equal(ssh.commands.length, 1);
});

Deno.test("Exchange.ask() stops when its call ends between two attempts", async () => {
  const { exchange, question, clock } = bench(() => ended(""));
  const call = fakeCall(clock, 70);
  const failure = rejectsWith(exchange.ask(question(call)), "deadline");
  await clock.advance(70);
  await failure;
  const other = fakeCall(clock);
  const cancelled = rejectsWith(exchange.ask(question(other)), "cancelled");
  await clock.advance(1);
  other.cancel();
  await cancelled;
});

Deno.test("Exchange.ask() distinguishes a router that cuts its answers from one that loses them", async () => {
  const first = bench(cut);
  assert.equal(await first.exchange.ask(first.question(), "return"), "cut");
  const second = bench((command) => torn(printFrames(command, () => "[]").slice(0, 20)), good);
  const answer = second.exchange.ask(second.question(), "return");
  await second.clock.advance(1000);
  assert.notEqual(await answer, "cut");
});

const change = [ros`/disk set x=${"y"}`];

Deno.test("Exchange.exec() returns the frames after the change", async () => {
  const { exchange, question, ssh } = bench(good);
  const reported = await exchange.exec(change, question());
  assert.deepEqual(reported.answer?.frames, ["[0]", "[1]"]);
  assert.equal(reported.refusal, undefined);
  assert.match(ssh.commands[0]!, /^\/disk set x="y"; :put \(/);
});

for (
  const [name, router, refusal, isCut = false] of [
    ["a torn channel", () => torn(""), undefined],
    ["a torn channel with half an error", () => torn("no such it"), undefined],
    ["silence", () => ended(""), undefined],
    ["a cut answer", cut, undefined, true],
    ["a refusal", () => ended("no such item (4)\r\n"), `"no such item (4)"`],
  ] as const
) {
  Deno.test(`Exchange.exec() never sends again after ${name}`, async () => {
    const { exchange, question, ssh, clock } = bench(router, good);
    const reported = await exchange.exec(change, question());
    await clock.advance(60_000);
    assert.deepEqual(reported, { answer: undefined, refusal, cut: isCut });
    assert.equal(ssh.commands.length, 1);
  });
}

Deno.test("Exchange.exec() returns text before complete frames as a refusal: a successful statement prints nothing", async () => {
  const { exchange, question } = bench((command) => ended(`oops\r\n${printFrames(command, () => "[]")}`));
  const reported = await exchange.exec(change, question());
  assert.equal(reported.refusal, `"oops"`);
  assert.equal(reported.answer?.frames.length, 2);
});

Deno.test("Exchange.settle() reads until it succeeds", async () => {
  const { exchange, clock } = bench(good);
  let failures = 9;
  const settled = exchange.settle(() => {
    if (failures-- > 0) return Promise.reject(new VolumeError("unavailable", "no"));
    return Promise.resolve("yes");
  }, fakeCall(clock));
  await clock.advance(30_000);
  assert.equal(await settled, "yes");
});

Deno.test("Exchange.settle() ends with its call, or after a minute without a deadline", async () => {
  const { exchange, clock } = bench(good);
  const never = () => Promise.reject(new VolumeError("unavailable", "no"));
  const bounded = rejectsWith(exchange.settle(never, fakeCall(clock, 5000)), "deadline");
  await clock.advance(5000);
  await bounded;
  const unbounded = rejectsWith(exchange.settle(never, fakeCall(clock)), "unavailable");
  await clock.advance(65_000);
  await unbounded;
});

Deno.test("Exchange.settle() throws at once any error other than a missing answer", async () => {
  const { exchange, clock } = bench(good);
  await rejectsWith(
    exchange.settle(() => Promise.reject(new VolumeError("invalid", "x")), fakeCall(clock)),
    "invalid",
  );
});

Deno.test("Exchange.exec() without queries accepts the mark of the end as the answer", async () => {
  const { exchange, question, ssh } = bench(good);
  const reported = await exchange.exec([ros`/disk set x=${"y"}`], { ...question(), queries: [] });
  assert.notEqual(reported.answer, undefined);
  assert.match(ssh.commands[0]!, /^\/disk set x="y"; :put "([0-9a-f]{12})0 - \1"$/);
});

Deno.test("Exchange.exec() has no answer where its conditions do not hold", async () => {
  const { exchange, question, ssh } = bench(() => ended(""));
  const conditions = [ros`[:len [/file find]] = ${0}`];
  const reported = await exchange.exec([ros`/file copy ${"a"}`], { ...question(), queries: [], conditions });
  assert.deepEqual(reported, { answer: undefined, refusal: undefined, cut: false });
  assert.match(
    ssh.commands[0]!,
    /^:if \(\[:len \[\/file find\]\] = "0"\) do=\{\/file copy "a"; :put "[^"]*"\}$/,
  );
});

Deno.test("divideIntoExecs() keeps the order, and combines what fits", () => {
  const statement = (size: number) => ros`/x ${"a".repeat(size)}`;
  const sizes = (...all: number[]) =>
    divideIntoExecs(all.map(statement)).map((exec) => exec.map(({ text }) => text.length - 5));
  assert.deepEqual(sizes(100, 200), [[100, 200]]);
  assert.deepEqual(sizes(600, 300, 200, 800), [[600, 300], [200], [800]]);
  assert.deepEqual(sizes(1, 1, 1, 1), [[1, 1, 1], [1]], "the sign of the end is a statement too");
  assert.deepEqual(sizes(10, 2000, 10), [[10], [2000], [10]]);
  assert.equal(fitsOneExec([statement(2000)], []), false);
});
