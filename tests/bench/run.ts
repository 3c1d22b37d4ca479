/**
 * Measures the driver and writes dist/bench.json.
 *
 * Usage: deno run -A tests/bench/run.ts [--short]
 *
 * The executable is measured where it is built, beside the sources; what cannot be measured here is said in the result.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { dial } from "../../src/csi/server/client.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";
import { missingForNode } from "../../src/cli/demo/scratch.ts";
import { print } from "../../tools/print.ts";
import { binary, projectRoot, startPart, type Subject } from "../support/parts.ts";
import { type FlatnessByCall, losses, measureFlatness } from "./flatness.ts";
import committed from "./flatness.json" with { type: "json" };
import { type LargeClusterMeasurements, measureLargeCluster } from "./large_cluster.ts";
import { type ListMeasurements, measureList } from "./lists.ts";
import { measureRpcs, type RpcMeasurements } from "./rpc.ts";
import { isReady, withStack } from "./stack.ts";

const { short } =
  parseArgs({ args: Deno.args, options: { short: { type: "boolean", default: false } } }).values;
const inFlightCounts = [1, 10, 50];
const csi = loadCsi();
const committedFlatness: FlatnessByCall = committed;

const subjects: Subject[] = await exists(binary) ? ["binary", "sources"] : ["sources"];
const result = {
  measuredAt: new Date(systemClock.now()).toISOString(),
  cores: navigator.hardwareConcurrency,
  binaryBytes: await exists(binary) ? (await Deno.stat(binary)).size : undefined,
  subjects: Object.fromEntries(
    await eachOf(subjects, async (subject) => [subject, await measureSubject(subject)]),
  ),
  lists: await measureLists(),
  largeCluster: subjects[0] === "binary" ? await measureLarge() : undefined,
  flatness: await measureFlatness(subjects[0]!),
  connections: await measureConnections(),
};
await Deno.mkdir(join(projectRoot, "dist"), { recursive: true });
await Deno.writeTextFile(join(projectRoot, "dist/bench.json"), JSON.stringify(result, null, 2) + "\n");
print("written: dist/bench.json");
Deno.exit(judge());

async function measureSubject(subject: Subject) {
  print(`\n== ${subject}`);
  const startUpMs = await eachOf(
    Array.from({ length: short ? 3 : 10 }, (_, i) => i),
    () => measureStart(subject),
  );
  const median = startUpMs.toSorted((a, b) => a - b)[Math.floor(startUpMs.length / 2)]!;
  print(`first ready Probe: median ${median.toFixed(0)} ms of ${startUpMs.length}`);
  const idle = {
    controller: await measureIdle(subject, "controller"),
    node: await measureIdle(subject, "node"),
  };
  print(`idle RSS: controller ${megabytes(idle.controller)}, node ${megabytes(idle.node)}`);
  const rpc: Record<string, Record<string, RpcMeasurements[]>> = {};
  for (const scale of [0, 1]) rpc[`timingScale${scale}`] = await measureScale(subject, scale);
  return { startUpMs: { median, all: startUpMs }, idleRssBytes: idle, rpc };
}

async function measureScale(subject: Subject, scale: number): Promise<Record<string, RpcMeasurements[]>> {
  const byCount: Record<string, RpcMeasurements[]> = {};
  for (const inFlight of inFlightCounts) {
    byCount[inFlight] = await withStack(subject, "all", scale, async ({ address, folder, meters }) => {
      const clients = dial(csi, address, systemClock);
      try {
        const withNode = await missingForNode(folder, "loop") === undefined;
        return await measureRpcs({
          clients,
          nodeId: "bench-node",
          nodeFolder: withNode ? join(folder, "volumes") : undefined,
          inFlight,
          volumes: short ? Math.max(10, inFlight) : scale === 0 ? 100 : 50,
          meters,
        });
      } finally {
        clients.close();
      }
    });
    print(`\n${subject}, timing scale ${scale}, ${inFlight} in flight:`);
    for (const { rpc, calls, p50Ms, p99Ms, commandsPerCall } of byCount[inFlight]!) {
      const totals = `p50 ${p50Ms.toFixed(1).padStart(8)} ms  p99 ${p99Ms.toFixed(1).padStart(8)} ms`;
      print(
        `  ${rpc.padEnd(28)} ${String(calls).padStart(4)} calls  ${totals}  ${
          commandsPerCall.toFixed(2)
        } commands`,
      );
    }
  }
  return byCount;
}

/** Milliseconds from spawning the driver to its first Probe that says ready, the router's handshake included. */
async function measureStart(subject: Subject): Promise<number> {
  return await withStack(subject, "all", 0, async ({ folder, driver }) => {
    await driver.stop();
    const address = `unix://${folder}/again.sock`;
    const args = driver.args.map((arg) => arg.endsWith("/csi.sock") ? address : arg);
    const startedMs = performance.now();
    const again = startPart(subject, "serve", folder, args);
    try {
      await again.ready(() => isReady(address), 5);
      return performance.now() - startedMs;
    } finally {
      await again.stop();
    }
  });
}

/**
 * Resident bytes of a role that has answered one Probe and idled. The least of three processes: how much of the
 * executable's file the kernel maps beyond what is needed differs by 20 MB.
 */
async function measureIdle(subject: Subject, mode: "controller" | "node"): Promise<number> {
  const rss = await eachOf([1, 2, 3], () =>
    withStack(subject, mode, 0, async ({ driver }) => {
      await systemClock.sleep(short ? 2_000 : 10_000);
      return await driver.residentBytes();
    }));
  return Math.min(...rss);
}

/** ListVolumes without the time of SSH, with the sources. */
async function measureLists(): Promise<ListMeasurements[]> {
  const lists = await eachOf([1000, 5000], (disks) => measureList(disks, short ? 20 : 100));
  for (const { disks, medianMs, worstMs, responseBytes, parseMs } of lists) {
    print(
      `ListVolumes of ${disks} disks beside SSH: median ${medianMs.toFixed(1)} ms, ` +
        `${(medianMs / parseMs).toFixed(0)} times as long as parsing takes, ` +
        `worst ${worstMs.toFixed(1)} ms, ${responseBytes} bytes`,
    );
  }
  return lists;
}

/** Only of the executable: the sources bring every module's text along. */
async function measureLarge(): Promise<LargeClusterMeasurements> {
  const totals = await measureLargeCluster("binary", 5000, short ? 20 : 100);
  const { volumes, lists, rounds, peakRssBytes } = totals;
  print(
    `controller of a cluster with ${volumes} attached volumes, ${lists} lists and ${rounds} rounds: at most ` +
      megabytes(peakRssBytes),
  );
  return totals;
}

/** Memory under connections that live for one call, with the sources, as the requirement says. */
async function measureConnections(): Promise<unknown> {
  const file = await Deno.makeTempFile({ prefix: "rds-csi-bench-" });
  const count = short ? "2000" : "100000";
  try {
    const args = [
      "run",
      "-A",
      join(projectRoot, "tests/bench/connections.ts"),
      "--connections",
      count,
      "--json",
      file,
    ];
    const { code } = await new Deno.Command(Deno.execPath(), { args, stdin: "null" }).spawn().status;
    return { code, ...JSON.parse(await Deno.readTextFile(file)) };
  } finally {
    await Deno.remove(file);
  }
}

/** 1 when a figure is over its limit. Timings are judged only where they are not noise: by an order of magnitude. */
function judge(): number {
  const over: string[] = [];
  const check = (what: string, value: number | undefined, limit: number) => {
    if (value !== undefined && value > limit) over.push(`${what}: ${value.toFixed(0)}, at most ${limit}`);
  };
  check("binary bytes", result.binaryBytes, 110e6);
  for (const [subject, totals] of Object.entries(result.subjects)) {
    check(`${subject}: first ready Probe, ms`, totals.startUpMs.median, 800);
    // The sources bring the compiler and every module's text along: what people run is the executable.
    if (subject === "sources") continue;
    check("idle RSS of the controller", totals.idleRssBytes.controller, 120e6);
    check("idle RSS of the node", totals.idleRssBytes.node, 85e6);
  }
  check("RSS of a controller with 5,000 volumes and a cluster", result.largeCluster?.peakRssBytes, 180e6);
  for (const { disks, medianMs, parseMs } of result.lists) {
    // A machine that is slow for a moment parses slowly too: a list takes 22 to 24 times as long as that on a quiet one.
    const limit = Math.max(disks === 1000 ? 20 : 80, 35 * parseMs);
    check(`ListVolumes of ${disks} disks beside SSH, ms`, medianMs, limit);
  }
  over.push(...losses(committedFlatness, result.flatness));
  if ((result.connections as { code: number }).code !== 0) over.push("memory grows with connections");
  for (const line of over) print(`over its limit: ${line}`);
  return over.length === 0 ? 0 : 1;
}

async function eachOf<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const item of items) results.push(await work(item));
  return results;
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
