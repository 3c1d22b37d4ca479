/**
 * Whether a driver stays as it was while everything goes wrong for long: volumes live their lives, with the node's half as
 * root, on a router that fails in twelve ways and reboots. Between the rounds, when no call is under way, nothing may
 * be left: no disk, no loop device, no command that waits; and open files, sessions, memory and the slowest calls stay flat.
 *
 * Usage: deno run -A tests/bench/endurance.ts [--minutes 30]
 *
 * Ends with 1 when something has grown or was left, the router complains, a call was answered with a code that nobody
 * repeats, or this machine cannot do the node's half.
 */
import { join } from "node:path";
import { control } from "../support/control_port.ts";
import { parseArgs } from "node:util";
import { missingForNode } from "../../src/cli/acceptance/scratch.ts";
import { dial } from "../../src/csi/server/client.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";
import { loopsUnder } from "../support/left_here.ts";
import { print } from "../../tools/print.ts";
import { judgeSeries } from "./growth.ts";
import { liveHeapBytes } from "./heap.ts";
import { RetryingClients } from "./retries.ts";
import { percentile } from "./rpc.ts";
import { Lives } from "./lives.ts";
import { type Running, withStack } from "./stack.ts";

/** Lives that go on at the same time. */
const parallel = 4;
/** The parts of a round: without faults, when the calls' times are taken, and with them. */
const healthyMs = 20_000;
const faultyMs = 25_000;
/** Between two faults. */
const faultEveryMs = 1_000;

/**
 * The most resident memory: the runtime, its allocator, and the 160 MB to which V8 lets garbage grow before it collects where
 * hundreds of calls a second leave it no rest. How much of that it does depends on the calls; whether anything stays shows
 * only in what a collection leaves.
 */
const limitMegabytes = 350;

/** What goes wrong, a kind a round; every few rounds the router reboots. */
const faults = [
  { action: "drop-before" },
  { action: "drop-after" },
  { action: "close-no-status" },
  { action: "truncate", value: 40 },
  { action: "truncate", value: "sentinel" },
  { action: "noise" },
  { action: "delay", value: 3_000 },
  { action: "drip", value: 2 },
  { action: "hang", value: "before" },
  { action: "hang", value: "after" },
  { action: "error", value: "action timed out" },
  { action: "refuse-channel" },
  { action: "refuse-login" },
  { action: "duplicate", value: "after" },
] as const;
const rebootEvery = 5;

/** The router settles soon after its reboots, or a round would be waiting only. */
const flags = ["--settle-time", "3s"];

/** What a round has shown, all of it once its last call was answered. */
interface Round {
  readonly rssBytes: number;
  /** What a collection of garbage left of the heap. */
  readonly heapBytes: number;
  readonly openFiles: number;
  readonly sessions: number;
  /** The slowest in a hundred of the calls before the faults, in milliseconds. */
  readonly p99Ms: number;
  /** What should not be there, in words. */
  readonly left: readonly string[];
}

const minutes = Number(
  parseArgs({ args: Deno.args, options: { minutes: { type: "string", default: "30" } } })
    .values.minutes,
);
Deno.exit(await withStack("inspected", { mode: "all", driver: flags }, endure) ? 0 : 1);

async function endure(running: Running): Promise<boolean> {
  const clients = dial(loadCsi(), running.address, systemClock);
  const missing = await missingForNode(running.folder, "loop");
  if (missing !== undefined) throw new Error(`The node's half cannot run here: ${missing}`);
  const retrying = new RetryingClients(clients);
  const nodeFolder = join(running.folder, "volumes");
  const lives = new Lives({ clients: retrying, nodeId: "bench-node", nodeFolder });
  const rounds: Round[] = [];
  try {
    for (const end = performance.now() + minutes * 60_000; performance.now() < end;) {
      rounds.push(await playRound(running, lives, retrying, rounds.length));
    }
    return await judgeAll(running, rounds);
  } finally {
    clients.close();
  }
}

async function playRound(
  running: Running,
  lives: Lives,
  retrying: RetryingClients,
  number: number,
): Promise<Round> {
  const began = performance.now();
  const runFor = (ms: number) => {
    const end = performance.now() + ms;
    return Promise.all(Array.from({ length: parallel }, () => lives.run(() => performance.now() > end)));
  };
  retrying.tookMs.length = 0;
  await runFor(healthyMs);
  const p99Ms = percentile(retrying.tookMs, 0.99);
  const disturbed = new AbortController();
  // Together, so that the first failure is the one that is told: the faults' own fails once the router has ended.
  const [what] = await Promise.all([
    disturb(running, number, disturbed.signal),
    runFor(faultyMs).finally(() => disturbed.abort()),
  ]);
  const round = {
    rssBytes: await running.driver.residentBytes(),
    heapBytes: await liveHeapBytes(running.inspectAddress),
    openFiles: running.driver.openFiles(),
    p99Ms,
    ...await look(running),
  };
  const seconds = Math.round((performance.now() - began) / 1000);
  print(
    `round ${number + 1}: ${what}; ${lives.calls} calls, ${retrying.repeats} repeated, ${seconds} s; ` +
      `${(round.rssBytes / 1e6).toFixed(1)} MB, ${
        (round.heapBytes / 1e6).toFixed(1)
      } MB live, ${round.openFiles} files, ${round.sessions} sessions, ` +
      `p99 ${p99Ms.toFixed(0)} ms${round.left.map((one) => `; LEFT: ${one}`).join("")}`,
  );
  return round;
}

/** Lets one kind of fault strike again and again, until the lives that met it have ended; says which. */
async function disturb(router: Running, number: number, signal: AbortSignal): Promise<string> {
  const fault = faults[number % faults.length]!;
  const isReboot = number % rebootEvery === rebootEvery - 1;
  const end = performance.now() + faultyMs;
  if (isReboot) await control(router, "POST /reboot", { downMs: 4_000, disksLateMs: 500 });
  while (performance.now() < end && !signal.aborted) {
    await control(router, "POST /faults", { match: ".", nth: 1, times: 2, ...fault });
    await new Promise((resolve) => setTimeout(resolve, faultEveryMs));
  }
  await control(router, "DELETE /faults");
  return `${fault.action} ${"value" in fault ? fault.value : ""}${isReboot ? " and a reboot" : ""}`;
}

interface RouterState {
  readonly disks: readonly { readonly slot: string; readonly type: string }[];
  readonly exports: readonly string[];
  readonly files: readonly { readonly name: string; readonly type: string }[];
  readonly subvolumes: readonly { readonly fullname: string }[];
  readonly sessions: readonly unknown[];
}

/** What is there while no call is under way. */
async function look(running: Running): Promise<Pick<Round, "sessions" | "left">> {
  const { metricsUrl, folder } = running;
  const state = await control<RouterState>(running, "GET /state");
  const metrics = await (await fetch(metricsUrl)).text();
  await control(running, "DELETE /log");
  const disks = state.disks.filter(({ type }) => type === "file");
  const waiting = /^rds_csi_router_commands_waiting(?:\{.*\})? (\d+)$/m.exec(metrics)?.[1];
  const staged = /^rds_csi_staged_volumes(?:\{.*\})? (\d+)$/m.exec(metrics)?.[1];
  const left = [
    ...disks.map(({ slot }) => `disk ${slot}`),
    ...state.exports.map((nqn) => `export ${nqn}`),
    // In the folder of the volumes, which stays.
    ...state.subvolumes.map(({ fullname }) => fullname).filter((path) => path.includes("/")),
    ...state.files.filter((file: { type: string }) => file.type.endsWith("file")).map((
      file: { name: string },
    ) => file.name),
    ...await loopsUnder(folder),
    ...(waiting === "0" ? [] : [`commands that wait: ${waiting}`]),
    ...(staged === "0" ? [] : [`staged volumes: ${staged}`]),
  ];
  return { sessions: state.sessions.length, left };
}

/**
 * Judges all rounds; the heap only after 40 % of them. For ten minutes a controller remembers what it wrote, because changes of
 * the controller before it may still come.
 */
async function judgeAll(router: Running, rounds: readonly Round[]): Promise<boolean> {
  const megabytes = rounds.map(({ rssBytes }) => rssBytes / 1e6);
  const heap = rounds.slice(Math.floor(rounds.length * 0.4)).map(({ heapBytes }) => heapBytes / 1e6);
  const highest = Math.max(...megabytes);
  const results = [
    judgeSeries({ of: "live heap, MB", values: heap, factor: 1.05 }),
    {
      flat: highest <= limitMegabytes,
      text: `resident memory: at most ${highest.toFixed(1)} MB of ${limitMegabytes}`,
    },
    judgeSeries({ of: "open files", values: rounds.map(({ openFiles }) => openFiles), more: 4 }),
    judgeSeries({ of: "sessions", values: rounds.map(({ sessions }) => sessions), more: 1 }),
    judgeSeries({
      of: "slowest call in a hundred, ms",
      values: rounds.map(({ p99Ms }) => p99Ms),
      factor: 1.5,
    }),
  ];
  const violations = await control<readonly unknown[]>(router, "GET /violations");
  const left = rounds.flatMap((round) => round.left);
  for (const { flat, text } of results) print(`${flat ? "flat" : "NOT FLAT"}: ${text}`);
  print(`left behind between rounds: ${left.length}; what the router complains of: ${violations.length}`);
  for (const violation of violations.slice(0, 5)) print(JSON.stringify(violation));
  return results.every(({ flat }) => flat) && left.length === 0 && violations.length === 0;
}
