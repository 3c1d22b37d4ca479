// Runs the suites of tests/cluster: `deno run -A tests/cluster/run.ts [--no-skips] [NAME…]`. Every test is one line with
// what it showed; the last line is "N passed, N failed, N skipped". With COUNTS_FILE set the counts of each suite are
// also appended to that file.

import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Counts, noteCounts, printCounts, sumOf } from "../../tools/counts.ts";
import { complain, print } from "../../tools/print.ts";
import { isFile } from "../guest/kit/host_command.ts";
import { binary, type Subject } from "../support/parts.ts";
import { Bench, type Suite } from "./kit/bench.ts";
import { restoreSettings } from "./kit/kernel_settings.ts";
import { hindrance } from "./kit/needs.ts";
import { ensureTools, type Tools } from "./kit/tools.ts";
import { findTraces, removeTraces } from "./kit/traces.ts";
import { secondsSince } from "./kit/waiting.ts";
import { suites, usualSuites } from "./suites.ts";

/** Below it every suite has a folder of its own: short, as paths of sockets are. */
const scratch = "/tmp";
const prefix = "rds-csi-cluster-";

interface Means {
  readonly tools: Tools;
  readonly subject: Subject;
}

function findSuites(wanted: readonly string[]): readonly string[] {
  const unknown = wanted.filter((name) => suites[name] === undefined);
  if (unknown.length === 0) return wanted.length > 0 ? wanted : usualSuites;
  throw new Error(`no such suite: ${unknown.join(", ")}; there are ${Object.keys(suites).join(", ")}`);
}

async function runSuite(name: string, suite: Suite, means: Means, stop: AbortSignal): Promise<Counts> {
  const folder = await Deno.makeTempDir({ dir: scratch, prefix });
  await Deno.writeTextFile(join(folder, "owner"), `${Deno.pid}`);
  const limit = new AbortController();
  const problem = new Error(`the suite takes longer than ${suite.limitMinutes} minutes`);
  const timer = setTimeout(() => limit.abort(problem), suite.limitMinutes * 60_000);
  const bench = new Bench(name, folder, means, AbortSignal.any([stop, limit.signal]));
  const started = performance.now();
  print(`${name}: ${suite.what}`);
  try {
    await suite.run(bench);
  } catch (error) {
    bench.report.failed(`the suite ${name}`, performance.now() - started, stop.aborted ? stop.reason : error);
  } finally {
    clearTimeout(timer);
    await bench.close();
    await removeFolder(folder);
  }
  const { passed, failed, skipped } = bench.report.counts;
  print(`${name}: ${passed} passed, ${failed} failed, ${skipped} skipped in ${secondsSince(started)} s`);
  return { passed, failed, skipped };
}

/** Nothing is ever deleted through a mount: then the folder stays, for a person to look at. */
async function removeFolder(folder: string): Promise<void> {
  const traces = await findTraces(folder);
  if (traces.length === 0) return await Deno.remove(folder, { recursive: true });
  complain(`left for a person to look at: ${folder}: ${traces.join(", ")}`);
}

/** Takes away what a run has left that was killed: it could not do so itself. */
async function sweep(): Promise<void> {
  for (const { name } of [...Deno.readDirSync(scratch)].filter((entry) => entry.name.startsWith(prefix))) {
    const folder = join(scratch, name);
    if (isFile(join(folder, "owner")) && !isRunning(await Deno.readTextFile(join(folder, "owner")))) {
      print(`an earlier run has left ${folder}, which is taken away`);
      await removeTraces(folder);
      await restoreSettings(folder);
      await removeFolder(folder);
    }
  }
}

/** Whether the process that owns a folder is still there, and still runs this file. */
function isRunning(pid: string): boolean {
  try {
    return Deno.readTextFileSync(`/proc/${pid}/cmdline`).includes("tests/cluster/run.ts");
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

function skip(name: string, reason: string): Counts {
  print(`SKIPPED, so NOT shown to work here: ${name}: ${reason}`);
  return { passed: 0, failed: 0, skipped: 1 };
}

async function runAll(names: readonly string[], stop: AbortSignal): Promise<Counts> {
  const reason = hindrance();
  let means: Means | undefined;
  if (reason === undefined) {
    await sweep();
    const subject = isFile(binary) ? "binary" : "sources";
    print(`what runs is the driver's ${subject}`);
    means = { tools: await ensureTools(print, stop), subject };
  }
  const results: Counts[] = [];
  for (const name of names) {
    const why = stop.aborted ? "stopped" : reason;
    const counts = why !== undefined || means === undefined
      ? skip(name, why ?? "")
      : await runSuite(name, suites[name]!, means, stop);
    noteCounts(`cluster/${name}`, counts);
    results.push(counts);
  }
  return sumOf(results);
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    args: Deno.args,
    allowPositionals: true,
    options: { "no-skips": { type: "boolean", default: false } },
  });
  const names = findSuites(positionals.filter((name) => name !== ""));
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => stop.abort(new Error(`stopped by ${signal}`)));
  }
  const counts = await runAll(names, stop.signal);
  printCounts(counts);
  if (stop.signal.aborted) return 130;
  return counts.failed > 0 || (values["no-skips"] && counts.skipped > 0) ? 1 : 0;
}

if (import.meta.main) {
  Deno.exit(
    await main().catch((error) => {
      complain(error instanceof Error ? error.message : String(error));
      return 1;
    }),
  );
}
