// Runs csi-sanity against the driver on a simulated router: `deno run -A tests/sanity/run.ts binary|sources [--no-skips]`.
// Everything happens in a scratch folder below /tmp, which is where the executable's permissions reach.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { noteCounts, printCounts } from "../../tools/counts.ts";
import { complain, print } from "../../tools/print.ts";
import { binary, type Subject } from "../support/parts.ts";
import { DriverUnderTest } from "./driver.ts";
import { findLeftovers, removeLeftovers } from "./leftovers.ts";
import {
  type AccessType,
  buildSuite,
  NOT_ADVERTISED,
  runSuite,
  type SuiteResult,
  type SuiteTest,
} from "./suite.ts";
import { isFile } from "../../tools/host_command.ts";

const TOOLS = fileURLToPath(new URL("../../.tools", import.meta.url));

/**
 * The reason in the report for a test that did not run because the suite ended early; a test's own skip has its reason.
 */
const NEVER_REACHED = "skipped";

/** The results of a run so far. */
interface Tally {
  passed: number;
  readonly problems: string[];
  /** Names of the skipped tests, by reason. */
  readonly leftOut: Map<string, Set<string>>;
}

/** Returns why it cannot run here; undefined when it can. */
async function hindrance(subject: Subject): Promise<string | undefined> {
  if (Deno.uid() !== 0) return "mounting needs root";
  if (subject === "binary" && !isFile(binary)) return "dist/rds-csi is not built; make build";
  const { success } = await new Deno.Command("sh", { args: ["-c", "command -v go"], stdout: "null" })
    .output();
  return success ? undefined : "Go, which builds csi-sanity, is not here";
}

/** Runs the suite once with one kind of volume, on a driver of its own. */
async function runOnce(
  subject: Subject,
  access: AccessType,
  program: string,
  folder: string,
  tally: Tally,
  signal: AbortSignal,
) {
  await Deno.mkdir(folder);
  const driver = await DriverUnderTest.start(subject, folder, signal);
  try {
    const result = await runSuite(program, { endpoint: driver.endpoint, folder, access, signal });
    addResult(tally, result, access);
    for (const violation of await driver.violations()) {
      tally.problems.push(`the simulated router complains: ${JSON.stringify(violation)}`);
    }
    const { mounts, loops } = await findLeftovers(folder);
    if (result.ok) tally.problems.push(...[...mounts, ...loops].map((path) => `left behind: ${path}`));
  } finally {
    tally.problems.push(...await driver.stop());
  }
}

function addResult(tally: Tally, { ok, tests, output }: SuiteResult, access: AccessType): void {
  const failed = tests.filter(({ outcome }) => outcome === "failed");
  const skipped = tests.filter(({ outcome, reason }) => outcome === "skipped" && reason !== NEVER_REACHED);
  const unreached = tests.filter(({ reason }) => reason === NEVER_REACHED).length;
  const passed = tests.filter(({ outcome }) => outcome === "passed").length;
  print(`${access}: ${passed} passed, ${failed.length} failed, ${skipped.length} not advertised`);
  tally.passed += passed;
  tally.problems.push(...failed.map(({ name }) => `failed: ${name}`));
  for (const test of skipped) addLeftOut(tally, test);
  if (unreached > 0) tally.problems.push(`csi-sanity never reached ${unreached} tests`);
  if (passed === 0) tally.problems.push("csi-sanity passed nothing at all");
  if (!ok && failed.length === 0) tally.problems.push("csi-sanity ended badly");
  if (!ok) complain(output);
}

function addLeftOut({ leftOut, problems }: Tally, { name, reason }: SuiteTest): void {
  const known = NOT_ADVERTISED.includes(reason);
  if (!known) problems.push(`skipped, and not because it is not advertised: ${name}: ${reason}`);
  leftOut.set(reason, (leftOut.get(reason) ?? new Set()).add(name));
}

function printTally(subject: Subject, { passed, problems, leftOut }: Tally): void {
  print(`\nnot advertised, so not applicable:`);
  for (const [reason, names] of leftOut) {
    print(`  ${reason}`);
    for (const name of names) print(`    ${name}`);
  }
  for (const problem of problems) complain(problem);
  const counts = { passed, failed: problems.length, skipped: 0 };
  noteCounts(`sanity/${subject}`, counts);
  print(`csi-sanity against the ${subject}:`);
  printCounts(counts);
}

async function runAll(subject: Subject, signal: AbortSignal): Promise<boolean> {
  const tally: Tally = { passed: 0, problems: [], leftOut: new Map() };
  const program = await buildSuite(TOOLS);
  // Deno's default folder follows TMPDIR, but the executable may write only below /tmp.
  const scratch = await Deno.makeTempDir({ dir: "/tmp", prefix: "rds-csi-sanity-" });
  try {
    // Both run at once, because each has a driver and a core of its own.
    const runs = (["mount", "block"] as const).map((access) =>
      runOnce(subject, access, program, join(scratch, access), tally, signal)
    );
    for (const run of await Promise.allSettled(runs)) {
      if (run.status === "rejected") tally.problems.push(String(run.reason));
    }
  } finally {
    const { mounts, loops } = await removeLeftovers(scratch);
    const stuck = [...mounts, ...loops];
    tally.problems.push(...stuck.map((path) => `cannot be cleaned up: ${path}`));
    if (stuck.length === 0) await Deno.remove(scratch, { recursive: true });
  }
  printTally(subject, tally);
  return tally.problems.length === 0;
}

async function main(args: readonly string[]): Promise<number> {
  const subject = args[0];
  if (subject !== "binary" && subject !== "sources") {
    complain("usage: run.ts binary|sources [--no-skips]");
    return 2;
  }
  const reason = await hindrance(subject);
  if (reason !== undefined) {
    print(`SKIPPED: csi-sanity was NOT run against the ${subject}, because ${reason}`);
    const counts = { passed: 0, failed: 0, skipped: 1 };
    noteCounts(`sanity/${subject}`, counts);
    printCounts(counts);
    return args.includes("--no-skips") ? 1 : 0;
  }
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => stop.abort(new Error(`stopped by ${signal}`)));
  }
  return await runAll(subject, stop.signal) ? 0 : 1;
}

Deno.exit(await main(Deno.args));
