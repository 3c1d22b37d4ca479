/**
 * Measures this driver beside another one for the same routers, in one run, each on a simulated router of its own, and writes
 * dist/versus.json, dist/versus.md and dist/versus.svg.
 *
 * Usage: deno run -A tests/bench/versus.ts [--short] [--disks 100,1000,10000] [--param KEY=VALUE] [--other "COMMAND"]
 *
 * The other driver is not built here: COMMAND runs its controller. In it {address} stands for the CSI endpoint, {port} for the
 * router's SSH port on 127.0.0.1, {key} for the file of the private key with which the user csi logs in, {free} for a port
 * that is free. Without it only this driver is measured.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "../../src/host/clock.ts";
import { print } from "../../tools/print.ts";
import { binary, projectRoot } from "../support/parts.ts";
import { percentile, type RpcSamples } from "./rpc.ts";
import { chart, type Delays, table, type VersusRow } from "./versus_report.ts";
import { startVersus, type VersusStack } from "./versus_stack.ts";

const options = parseArgs({
  args: Deno.args.filter((arg) => arg !== ""),
  options: {
    short: { type: "boolean", default: false },
    other: { type: "string", default: "" },
    param: { type: "string", multiple: true, default: [] },
    disks: { type: "string", default: "" },
  },
}).values;
const { short } = options;
const other = options.other.split(" ").filter((word) => word !== "");
const parameters = Object.fromEntries(options.param.map((pair) => pair.split("=", 2)));
const sizes = (options.disks || (short ? "100,1000" : "100,1000,10000")).split(",").map(Number);
const inFlightCounts = [1, 16];
const rpcs = [
  "CreateVolume",
  "CreateVolume (repeated)",
  "GetCapacity",
  "ControllerPublishVolume",
  "ControllerExpandVolume",
  "ControllerUnpublishVolume",
  "CreateSnapshot",
  "CreateVolume (restored)",
  "DeleteVolume (restored)",
  "DeleteSnapshot",
  "DeleteVolume",
];

/** Milliseconds by which each exec is delayed where delays are per exec. */
const execDelayMs = 250;

const rows: VersusRow[] = [];
for (const disks of sizes) await withBoth(0, disks, (stacks) => measure(stacks, "none", disks));
await withBoth(1, sizes[0]!, (stacks) => measure(stacks, "statement", sizes[0]!));
// There a volume is a plain file, as the other driver's is everywhere.
await withBoth(1, sizes[0]!, (stacks) => measure(stacks, "statement, on XFS", sizes[0]!), "xfs");
await withBoth(0, sizes[0]!, async (stacks) => {
  for (const stack of stacks) await stack.delayExecs(execDelayMs);
  await measure(stacks, "exec", sizes[0]!);
});
const folder = join(projectRoot, "dist");
await Deno.mkdir(folder, { recursive: true });
const result = {
  measuredAt: new Date(systemClock.now()).toISOString(),
  cores: navigator.hardwareConcurrency,
  other: other[0] ?? null,
  execDelayMs,
  rows,
};
await Deno.writeTextFile(join(folder, "versus.json"), JSON.stringify(result, null, 2) + "\n");
await Deno.writeTextFile(join(folder, "versus.md"), table(rows));
await Deno.writeTextFile(join(folder, "versus.svg"), chart(rows));
print(table(rows));
print("written: dist/versus.json, dist/versus.md, dist/versus.svg");

/** Starts both drivers, each on a router with so many disks, and takes them away again. */
async function withBoth(
  timingScale: number,
  disks: number,
  work: (stacks: readonly VersusStack[]) => Promise<void>,
  filesystem?: "btrfs" | "xfs",
): Promise<void> {
  await using made = new AsyncDisposableStack();
  const stacks: VersusStack[] = [];
  const subject = await Deno.stat(binary).then(() => "binary" as const, () => "sources" as const);
  for (const command of other.length === 0 ? [subject] : [subject, other]) {
    stacks.push(made.use(await startVersus(command, timingScale, disks, filesystem)));
  }
  await work(stacks);
}

/** Lets the drivers take turns, so that what else runs on the machine slows both. */
async function measure(stacks: readonly VersusStack[], delays: Delays, disks: number): Promise<void> {
  for (const inFlight of inFlightCounts) {
    const volumes = delays === "none" ? (short ? 16 : 64) : inFlight === 1 ? (short ? 5 : 9) : 16;
    const repeats = delays === "none" ? (short ? 2 : 3) : 1;
    // What is measured is a controller that serves for months, not one that still compiles, or reads everything first.
    await Promise.all(
      stacks.map((stack) =>
        stack.sample({ rpcs, parameters, inFlight, volumes: delays === "none" ? volumes : inFlight })
      ),
    );
    const samples = stacks.map((): RpcSamples[] => []);
    const turn = async (stack: VersusStack, index: number) =>
      samples[index]!.push(...await stack.sample({ rpcs, parameters, inFlight, volumes }));
    for (let number = 0; number < repeats; number++) {
      // Where the time is the router's, both run at once.
      if (delays !== "none") await Promise.all(stacks.map(turn));
      else for (const [index, stack] of stacks.entries()) await turn(stack, index);
    }
    stacks.forEach((stack, index) => {
      for (const rpc of rpcs) rows.push(rowOf(stack.name, delays, disks, inFlight, rpc, samples[index]!));
    });
    print(`measured: ${disks} disks, delays: ${delays}, ${inFlight} in flight`);
  }
}

function rowOf(
  driver: VersusRow["driver"],
  delays: Delays,
  disks: number,
  inFlight: number,
  rpc: string,
  samples: readonly RpcSamples[],
): VersusRow {
  const own = samples.filter((one) => one.rpc === rpc);
  const sum = (valueOf: (one: RpcSamples) => number) => own.reduce((total, one) => total + valueOf(one), 0);
  const milliseconds = own.flatMap((one) => one.milliseconds);
  const calls = milliseconds.length;
  const error = own.find(({ firstError }) => firstError !== undefined)?.firstError;
  return {
    driver,
    delays,
    disks,
    inFlight,
    rpc,
    calls,
    failed: sum(({ failed }) => failed),
    ...(error === undefined ? {} : { firstError: error }),
    p50Ms: percentile(milliseconds, 0.5),
    perSecond: calls * 1000 / sum(({ wallMs }) => wallMs),
    commands: sum(({ used }) => used.commands) / calls,
    bytes: sum(({ used }) => used.bytes) / calls,
    processorMs: sum(({ used }) => used.processorMs) / calls,
  };
}
