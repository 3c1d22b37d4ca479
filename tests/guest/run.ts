// Runs the suites of tests/guest: `deno run -A tests/guest/run.ts [--no-skips] [--jobs N] [NAME…]`.
// Every test is one line with what it showed; the last line is "N passed, N failed, N skipped". With COUNTS_FILE set the
// counts of each suite are also appended to that file.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Counts, noteCounts, printCounts, sumOf } from "../../tools/counts.ts";
import { complain, print } from "../../tools/print.ts";
import { buildSuite } from "../sanity/suite.ts";
import { isFile } from "./kit/host_command.ts";
import { hindrance } from "./kit/host_needs.ts";
import { guestImage } from "./kit/image.ts";
import { Bench, type Suite } from "./kit/suite.ts";
import { makeToolsDisk } from "./kit/tools_disk.ts";
import { suites } from "./suites.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const binary = join(root, "dist", "rds-csi");

interface Named {
  readonly name: string;
  readonly suite: Suite;
}

function findSuites(wanted: readonly string[]): Named[] {
  const all = Object.entries(suites).map(([name, suite]) => ({ name, suite }));
  const unknown = wanted.filter((name) => suites[name] === undefined);
  if (unknown.length > 0) {
    throw new Error(`no such suite: ${unknown.join(", ")}; there are ${Object.keys(suites).join(", ")}`);
  }
  return wanted.length > 0 ? all.filter(({ name }) => wanted.includes(name)) : all;
}

/** What the guests run; what is not here is left out, and then the suites that need it are skipped. */
async function tools(folder: string): Promise<string> {
  const files: Record<string, string> = { deno: await denoFile() };
  if (isFile(binary)) files["rds-csi"] = binary;
  if (goIsHere()) files["csi-sanity"] = await buildSuite(join(root, ".tools"));
  return await makeToolsDisk(folder, files);
}

/** The running Deno itself; what npm puts in front of it may be a script. */
async function denoFile(): Promise<string> {
  return await Deno.realPath("/proc/self/exe");
}

/** Whether Go is where a program is looked for by name. */
function goIsHere(): boolean {
  return (Deno.env.get("PATH") ?? "").split(":").some((folder) =>
    folder !== "" && isFile(join(folder, "go"))
  );
}

function whySkipped({ suite }: Named): string | undefined {
  const lacking = hindrance();
  if (lacking !== undefined) return lacking;
  if (suite.needsGo && !goIsHere()) return "Go, which builds csi-sanity, is not here";
  return suite.needsBinary && !isFile(binary) ? "dist/rds-csi is not built; make build" : undefined;
}

async function runSuite(
  { name, suite }: Named,
  scratch: string,
  toolsPath: string,
  stop: AbortSignal,
): Promise<Counts> {
  const folder = join(scratch, name);
  await Deno.mkdir(folder);
  const limit = new AbortController();
  const problem = new Error(`the suite takes longer than ${suite.limitMinutes} minutes`);
  const timer = setTimeout(() => limit.abort(problem), suite.limitMinutes * 60_000);
  const bench = new Bench(name, folder, toolsPath, AbortSignal.any([stop, limit.signal]));
  const started = performance.now();
  print(`${name}: ${suite.what}`);
  try {
    await suite.run(bench);
  } catch (error) {
    bench.report.failed(`the suite ${name}`, performance.now() - started, stop.aborted ? stop.reason : error);
  } finally {
    clearTimeout(timer);
    await bench.close();
  }
  const { counts } = bench.report;
  const seconds = Math.round((performance.now() - started) / 1000);
  print(
    `${name}: ${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped in ${seconds} s`,
  );
  await Deno.remove(folder, { recursive: true });
  return counts;
}

/** Runs `jobs` suites at a time, and those that want to be alone after them. */
async function runAll(
  all: readonly Named[],
  jobs: number,
  run: (one: Named) => Promise<Counts>,
): Promise<Counts[]> {
  const queue = all.filter(({ suite }) => !suite.alone);
  const results: Counts[] = [];
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      results.push(await note(next, run));
    }
  };
  await Promise.all(Array.from({ length: jobs }, worker));
  for (const one of all.filter(({ suite }) => suite.alone)) results.push(await note(one, run));
  return results;
}

async function note(one: Named, run: (one: Named) => Promise<Counts>): Promise<Counts> {
  const counts = await run(one);
  noteCounts(`guest/${one.name}`, counts);
  return counts;
}

function skip({ name }: Named, reason: string): Counts {
  print(`SKIPPED, so NOT shown to work here: ${name}: ${reason}`);
  return { passed: 0, failed: 0, skipped: 1 };
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    args: Deno.args,
    allowPositionals: true,
    options: { "no-skips": { type: "boolean", default: false }, "jobs": { type: "string", default: "1" } },
  });
  const chosen = findSuites(positionals.filter((name) => name !== ""));
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => stop.abort(new Error(`stopped by ${signal}`)));
  }
  const scratch = await Deno.makeTempDir({ dir: "/tmp", prefix: "rds-csi-guest-" });
  try {
    const able = chosen.some((one) => whySkipped(one) === undefined);
    if (able) await guestImage("stable", print);
    const toolsPath = able ? await tools(scratch) : "";
    const results = await runAll(chosen, Number(values.jobs), async (one) => {
      const reason = stop.signal.aborted ? "stopped" : whySkipped(one);
      return reason === undefined ? await runSuite(one, scratch, toolsPath, stop.signal) : skip(one, reason);
    });
    const counts = sumOf(results);
    printCounts(counts);
    if (stop.signal.aborted) return 130;
    return counts.failed > 0 || (values["no-skips"] && counts.skipped > 0) ? 1 : 0;
  } finally {
    await Deno.remove(scratch, { recursive: true });
  }
}

if (import.meta.main) {
  Deno.exit(
    await main().catch((error) => {
      complain(error instanceof Error ? error.message : String(error));
      return 1;
    }),
  );
}
