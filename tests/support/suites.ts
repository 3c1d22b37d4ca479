// Runs suites that are not tests of `deno test`: those of guests and clusters, which share what is slow to start, take
// minutes, and clean up when they are stopped. `run.ts [--no-skips] [--jobs=N] [NAME…]`: every test is one line with
// its result, and the last line is "N passed, N failed, N skipped".
import { parseArgs } from "node:util";
import { type Counts, noteCounts, printCounts, sumOf } from "../../tools/counts.ts";
import { complain, print } from "../../tools/print.ts";
import type { Report } from "./suite_report.ts";

/** The common fields of guest and cluster suites. */
export interface AnySuite<Bench> {
  /** One line: what the suite shows. */
  readonly what: string;
  /** How long it may take, in minutes. */
  readonly limitMinutes: number;
  /** Whether it measures time, or needs the whole machine: no other suite runs beside it. */
  readonly alone?: boolean;
  run(bench: Bench): Promise<void>;
}

/** What every bench of a suite has. */
export interface AnyBench {
  readonly report: Report;
  /** Ends everything that the suite has started. */
  close(): Promise<void>;
}

/** The suites of a folder, and how they are run. */
export interface Suites<Bench extends AnyBench, Suite extends AnySuite<Bench>> {
  /** Precedes a suite's name in the counts. */
  readonly kind: string;
  readonly all: Readonly<Record<string, Suite>>;
  /** The default selection; all without it. */
  readonly byDefault?: readonly string[];
  /** Why a suite cannot run here, for people; undefined when it can. */
  whySkipped(suite: Suite): string | undefined;
  /** Prepares what suites share, once, when at least one can run; returns a function that opens the bench of each. */
  prepare(stop: AbortSignal): Promise<(name: string, signal: AbortSignal) => Promise<Bench>>;
}

/** Runs the suites from the command line, and exits. */
export async function main<Bench extends AnyBench, Suite extends AnySuite<Bench>>(
  suites: Suites<Bench, Suite>,
): Promise<never> {
  try {
    Deno.exit(await runNamed(suites));
  } catch (error) {
    complain(error instanceof Error ? error.message : String(error));
    Deno.exit(1);
  }
}

async function runNamed<Bench extends AnyBench, Suite extends AnySuite<Bench>>(
  suites: Suites<Bench, Suite>,
): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { "no-skips": { type: "boolean", default: false }, "jobs": { type: "string", default: "1" } },
  });
  const names = namesOf(suites, positionals.filter((name) => name !== ""));
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => stop.abort(new Error(`stopped by ${signal}`)));
  }
  const reasons = new Map(names.map((name) => [name, suites.whySkipped(suites.all[name]!)]));
  const isAble = [...reasons.values()].includes(undefined);
  const open = isAble ? await suites.prepare(stop.signal) : undefined;
  const results: Counts[] = [];
  const run = async (name: string) => {
    const reason = stop.signal.aborted ? "stopped" : reasons.get(name);
    const counts = reason !== undefined || open === undefined
      ? skip(name, reason ?? "")
      : await runSuite(name, suites.all[name]!, open, stop.signal);
    noteCounts(`${suites.kind}/${name}`, counts);
    results.push(counts);
  };
  const isAlone = (name: string) => suites.all[name]!.alone === true;
  const queue = names.filter((name) => !isAlone(name));
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await run(next);
  };
  await Promise.all(Array.from({ length: Number(values.jobs) || 1 }, work));
  for (const name of names.filter(isAlone)) await run(name);
  const counts = sumOf(results);
  printCounts(counts);
  if (stop.signal.aborted) return 130;
  return counts.failed > 0 || (values["no-skips"] && counts.skipped > 0) ? 1 : 0;
}

function namesOf<Bench extends AnyBench, Suite extends AnySuite<Bench>>(
  { all, byDefault }: Suites<Bench, Suite>,
  wanted: readonly string[],
): readonly string[] {
  const known = Object.keys(all);
  const unknown = wanted.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    throw new Error(`no such suite: ${unknown.join(", ")}; there are ${known.join(", ")}`);
  }
  return wanted.length > 0 ? wanted : byDefault ?? known;
}

async function runSuite<Bench extends AnyBench>(
  name: string,
  suite: AnySuite<Bench>,
  open: (name: string, signal: AbortSignal) => Promise<Bench>,
  stop: AbortSignal,
): Promise<Counts> {
  const limit = new AbortController();
  const problem = new Error(`the suite takes longer than ${suite.limitMinutes} minutes`);
  const timer = setTimeout(() => limit.abort(problem), suite.limitMinutes * 60_000);
  const started = performance.now();
  print(`${name}: ${suite.what}`);
  const bench = await open(name, AbortSignal.any([stop, limit.signal]));
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
  return counts;
}

function skip(name: string, reason: string): Counts {
  print(`SKIPPED, so NOT shown to work here: ${name}: ${reason}`);
  return { passed: 0, failed: 0, skipped: 1 };
}
