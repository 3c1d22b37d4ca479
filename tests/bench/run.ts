/**
 * Measures the driver and writes dist/bench.json.
 *
 * Usage: deno run -A tests/bench/run.ts [--short]
 *
 * The executable is measured where it is built, in the long form beside the sources; what cannot be measured here is said in
 * the result.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "../../src/host/clock.ts";
import { print } from "../../tools/print.ts";
import { binary, projectRoot, type Subject } from "../support/parts.ts";
import { type FlatnessByCall, losses, measureFlatness, minimumOf } from "./flatness.ts";
import committed from "./flatness.json" with { type: "json" };
import { type LargeClusterMeasurements, measureLargeCluster } from "./large_cluster.ts";
import { measureUntilWithin } from "./repeat.ts";
import { measureSeed, type SeedMeasurements } from "./seed.ts";
import { buildHello, measureStarts, type StartMeasurements } from "./start.ts";

const { short } =
  parseArgs({ args: Deno.args, options: { short: { type: "boolean", default: false } } }).values;
/** How many times what hello needs each role may: starts differ by a third on a machine that does something else. */
const maxTimesHello = {
  node: { start: 1.7, memory: 1.25 },
  controller: { start: 2.2, memory: 1.3 },
} as const;
/** How fast the last volumes of a seed are made beside the first ones, at least: a third below the aim of 0.8. */
const minSeedRatio = 0.53;
const committedFlatness: FlatnessByCall = committed;

// What people run; in the long form the sources too.
const subjects: Subject[] = await exists(binary) ? short ? ["binary"] : ["binary", "sources"] : ["sources"];
const result = {
  measuredAt: new Date(systemClock.now()).toISOString(),
  cores: navigator.hardwareConcurrency,
  binaryBytes: await exists(binary) ? (await Deno.stat(binary)).size : undefined,
  subjects: Object.fromEntries(
    await eachOf(subjects, async (subject) => [subject, await measureSubject(subject)]),
  ),
  largeCluster: subjects[0] === "binary" ? await measureLarge() : undefined,
  flatness: await measureUntilWithin(
    () => measureFlatness(subjects[0]!),
    (flatness) => losses(committedFlatness, flatness),
    print,
    minimumOf,
  ),
  seed: await measureUntilWithin(measureSeeding, seedLosses, print),
};
await Deno.mkdir(join(projectRoot, "dist"), { recursive: true });
await Deno.writeTextFile(join(projectRoot, "dist/bench.json"), JSON.stringify(result, null, 2) + "\n");
print("written: dist/bench.json");
Deno.exit(judge());

async function measureSubject(subject: Subject) {
  print(`\n== ${subject}`);
  // The baseline is compiled: beside sources it would be no measure.
  const hello = subject === "binary" ? await buildHello() : undefined;
  const amounts = short ? { starts: 5, idles: 3, idleMs: 2_000 } : { starts: 15, idles: 3, idleMs: 10_000 };
  const starts = await measureUntilWithin(
    () => measureStarts(subject, hello, amounts),
    (measured) => startLosses(subject, measured),
    print,
  );
  for (const [name, { startMs, startsMs, idleRssBytes }] of Object.entries(starts)) {
    const times = starts.hello === undefined
      ? ""
      : `, ${(startMs / starts.hello.startMs).toFixed(2)} and ${
        (idleRssBytes / starts.hello.idleRssBytes).toFixed(2)
      } times hello's`;
    print(
      `${name}: first ready Probe, median ${startMs.toFixed(0)} ms of ${startsMs.length}; ` +
        `idle RSS ${megabytes(idleRssBytes)}${times}`,
    );
  }
  return { starts };
}

/** Only of the executable: the sources bring every module's text along. */
async function measureLarge(): Promise<LargeClusterMeasurements> {
  const totals = await measureLargeCluster("binary", 10_000, short ? 20 : 100);
  const { volumes, lists, rounds, peakRssBytes } = totals;
  print(
    `controller of a cluster with ${volumes} attached volumes, ${lists} lists and ${rounds} rounds: at most ` +
      megabytes(peakRssBytes),
  );
  return totals;
}

async function measureSeeding(): Promise<SeedMeasurements> {
  const seed = await measureSeed(subjects[0]!, short ? 2_000 : 10_000);
  const [first, last] = [seed.first, seed.last].map((rate) => rate.toFixed(0));
  print(
    `seed of ${seed.volumes} volumes at 16 in flight: ${first} a second in the first thousand, ${last} in the last`,
  );
  return seed;
}

/** 1 when a figure is over its limit. */
function judge(): number {
  const over = [
    ...above("binary bytes", result.binaryBytes ?? 0, 110e6),
    ...Object.entries(result.subjects).flatMap(([subject, { starts }]) => startLosses(subject, starts)),
    ...above(
      "RSS of a controller with 10,000 volumes and a cluster",
      result.largeCluster?.peakRssBytes ?? 0,
      240e6,
    ),
    ...seedLosses(result.seed),
    ...losses(committedFlatness, result.flatness),
  ];
  for (const line of over) print(`over its limit: ${line}`);
  return over.length === 0 ? 0 : 1;
}

function startLosses(subject: string, { all, node, controller, hello }: StartMeasurements): string[] {
  const over = above(`${subject}: first ready Probe, ms`, all!.startMs, 800);
  // The sources bring the compiler and every module's text along: what people run is the executable.
  if (subject === "sources") return over;
  return over.concat(
    Object.entries({ node, controller }).flatMap(([name, cost]) => {
      const { start, memory } = maxTimesHello[name as "node" | "controller"];
      return [
        ...above(`${name}: first ready Probe, times hello's`, cost!.startMs / hello!.startMs, start),
        ...above(`${name}: idle RSS, times hello's`, cost!.idleRssBytes / hello!.idleRssBytes, memory),
      ];
    }),
  );
}

function seedLosses({ first, last }: SeedMeasurements): string[] {
  const ratio = last / first;
  if (ratio >= minSeedRatio) return [];
  return [`seed: the last thousand goes ${ratio.toFixed(2)} times as fast, at least ${minSeedRatio}`];
}

function above(what: string, value: number, limit: number): string[] {
  if (value <= limit) return [];
  const [shown, most] = [value, limit].map((number) => number < 100 ? number.toFixed(2) : number.toFixed(0));
  return [`${what}: ${shown}, at most ${most}`];
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
