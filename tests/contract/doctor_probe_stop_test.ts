// A probe leaves nothing behind however it ends: stopped at a command, disconnected at one, or disconnected for good,
// after which the next probe cleans up. Each kind of command is tried, and so is every third command of all; with
// TEST_LONG=1 each command. Some are tried over real SSH too.
import assert from "node:assert/strict";
import { VolumeError } from "../../src/volume/errors.ts";
import { SeededRandom } from "../fakes/random.ts";
import { isLong } from "../support/long.ts";
import { type ProbeBench, withDirectBench, withProbeBench } from "./_probe_bench.ts";
import { WatchedTransport } from "./_watched_transport.ts";

/** Over real SSH the clock runs as fast as possible: these tests measure no time. */
const scale = 2000;
const parallel = 6;
const every = isLong ? 1 : 3;
/** Over real SSH one of every so many commands is tried, because opening a connection takes most of the time. */
const everyOverSsh = isLong ? 12 : 45;

/** Returns whether the run reached the situation that the test is about. */
type Test = (bench: ProbeBench, at: number) => Promise<boolean>;

type WithBench = (work: (bench: ProbeBench) => Promise<void>) => Promise<void>;

/** Tries a test at commands of a probe of every kind. */
async function atEachKind(test: Test): Promise<void> {
  const withBench: WithBench = (work) => withDirectBench({}, work);
  const commands = await commandsOf(withBench);
  const one = new Map(shuffled(commands.keys()).map((index) => [kindOf(commands[index]!), index + 1]));
  assert.ok(one.size > 25, `${one.size} kinds`);
  await atCommands([...new Set([...one.values(), ...everyNth(commands, every)])], withBench, test);
}

/** Tries a test at some commands of a probe, over real SSH. */
async function atSomeCommands(test: Test): Promise<void> {
  const withBench: WithBench = (work) => withProbeBench({}, work, scale);
  await atCommands(everyNth(await commandsOf(withBench), everyOverSsh), withBench, test);
}

/** The commands of a probe. */
async function commandsOf(withBench: WithBench): Promise<readonly string[]> {
  let commands: readonly string[] = [];
  await withBench(async ({ probe, transport }) => {
    const watched = new WatchedTransport(transport);
    await probe({ transport: watched });
    commands = watched.commands;
  });
  assert.ok(commands.length > 120, `${commands.length} commands`);
  return commands;
}

/** What a command does, whatever it does it to. */
function kindOf(command: string): string {
  return command.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""').replaceAll(/\d+/g, "0");
}

/** By chance, but always the same. */
function shuffled(items: Iterable<number>): readonly number[] {
  const random = new SeededRandom(36);
  return [...items].map((item) => ({ item, place: random.fraction() }))
    .toSorted((a, b) => a.place - b.place).map(({ item }) => item);
}

/** The number of every so manieth command, from 1. */
function everyNth(commands: readonly string[], step: number): readonly number[] {
  return [...commands.keys()].filter((index) => index % step === 0).map((index) => index + 1);
}

async function atCommands(numbers: readonly number[], withBench: WithBench, test: Test): Promise<void> {
  const left = [...numbers];
  let counted = 0;
  const work = async () => {
    for (let at = left.shift(); at !== undefined; at = left.shift()) {
      const number = at;
      await withBench(async (bench) => {
        if (await test(bench, number)) counted++;
      });
    }
  };
  const results = await Promise.allSettled(Array.from({ length: parallel }, work));
  const failed = results.find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  assert.ok(counted > numbers.length / 5, `${counted} of ${numbers.length} came to it`);
}

/** The error of a probe; undefined when it succeeded. */
async function failureOf(probing: Promise<unknown>): Promise<VolumeError | undefined> {
  try {
    await probing;
    return undefined;
  } catch (error) {
    if (VolumeError.is(error)) return error;
    throw error;
  }
}

async function stopAt({ router, transport, probe, state }: ProbeBench, at: number): Promise<boolean> {
  const before = state();
  const stop = new AbortController();
  const onSent = () => stop.abort(new VolumeError("cancelled", "Stopped by SIGINT"));
  const watched = new WatchedTransport(transport, at, onSent);
  const failure = await failureOf(probe({ transport: watched, signal: stop.signal }));
  assert.deepEqual(state(), before, `stopped at command ${at}`);
  assert.deepEqual(router.violations.list(), []);
  // When the probe is already cleaning up, there is nothing left to stop.
  if (failure === undefined) return false;
  assert.equal(failure.kind, "cancelled", failure.message);
  assert.match(failure.message, /Stopped by SIGINT/);
  return true;
}

async function breakAt({ router, transport, probe, state }: ProbeBench, at: number): Promise<boolean> {
  const before = state();
  const watched = new WatchedTransport(transport, at, (watched) => watched.drop());
  const failure = await failureOf(probe({ transport: watched }));
  assert.deepEqual(state(), before, `cut at command ${at}: ${failure?.message}`);
  assert.deepEqual(router.violations.list(), []);
  return failure === undefined;
}

async function loseAt({ transport, probe, state }: ProbeBench, at: number): Promise<boolean> {
  const before = state();
  const watched = new WatchedTransport(transport, at, (watched) => {
    watched.gone = true;
    watched.drop();
  });
  const failure = await failureOf(probe({ transport: watched }));
  // Some runs have fewer commands: the number of polls differs.
  if (watched.sent < at) return false;
  assert.ok(failure !== undefined, `lost at command ${at}`);
  const dirty = JSON.stringify(state(), printable) !== JSON.stringify(before, printable);
  const stop = new AbortController();
  const shown: string[] = [];
  // The next probe may stop as soon as it has looked for leftovers.
  const onProgress = (line: string) => {
    if (line.includes("what an earlier probe left")) shown.push(line);
    if (line.includes("everything made is called")) stop.abort(new VolumeError("cancelled", "enough"));
  };
  await failureOf(probe({ signal: stop.signal, onProgress }));
  assert.deepEqual(state(), before, `lost at command ${at}`);
  assert.equal(shown.length > 0, dirty, `lost at command ${at}: what was left is shown`);
  return dirty;
}

function printable(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

const ends: readonly (readonly [name: string, test: Test])[] = [
  ["a probe that is stopped says so, and leaves nothing", stopAt],
  ["a probe whose connection breaks goes on, and leaves nothing", breakAt],
  ["a probe that loses the router for good says so, and the next one cleans up first", loseAt],
];

for (const [name, test] of ends) {
  Deno.test(`${name}, at any kind of its commands`, () => atEachKind(test));
  Deno.test(`${name}, over real SSH`, () => atSomeCommands(test));
}
