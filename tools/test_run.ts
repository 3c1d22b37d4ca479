// Runs tests and reports the result of each: `deno run -A tools/test_run.ts [--no-skips] [--ignore=PATH] NAME [PATH…]`;
// without a path, all tests. It exists because no reporter of `deno test` says why a test was skipped, can fail because
// of it, or ends a run that hangs. It prints only what is not "ok", then the skipped tests with their reasons, then "N
// passed, N failed, N skipped". SLOWEST=20 names the slowest tests. With COUNTS_FILE set the counts are also appended
// to that file, as "NAME PASSED FAILED SKIPPED".

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Counts, noteCounts, printCounts } from "./counts.ts";
import { parseJunit, type TestCase } from "./junit.ts";
import { lines } from "./lines.ts";
import { complain, print } from "./print.ts";

/** Test files at a time: a third of their time is waiting, for time limits and other programs. */
const JOBS = navigator.hardwareConcurrency * 2;

/** The longest time in which no test ends. Then the run is killed, and the hanging test shows as the last line. */
const SILENCE_MS = 5 * 60_000;

/** Installs the Debian packages that tests use. */
const GET_PACKAGES = fileURLToPath(new URL("get-packages.sh", import.meta.url));

/** A line that a test file prints when this machine lacks what its tests need. */
const REASON = /^(?:(?:ignored|skipped): |ignoring (?="))(.+)$/i;

/** Routine lines, which are not printed. */
const ROUTINE = new RegExp([
  String.raw`\.\.\. (?:ok|ignored) \(`,
  // A test of several steps. An unfinished line ends with a blank; it shows which test hangs.
  String.raw`\.\.\.$`,
  String.raw`^running \d+ tests? from `,
  String.raw`^(?:ok|FAILED) \| \d+ passed`,
  String.raw`^(?:Check|Download|Initialize) `,
  // From npm, about packages whose install scripts are not run.
  String.raw`^[╭│╰]`,
  String.raw`^-+ (?:pre|post)-test output(?: end)? -+$`,
  String.raw`^Stack backtrace|^\s+\d+: <unknown>$|^error: Test failed$`,
].join("|"));

/** Runs `deno test`, and prints what matters. */
async function runTests(args: readonly string[], junitPath: string) {
  const reasons = new Set<string>();
  let lastLineAt = performance.now();
  const pass = async (stream: ReadableStream<Uint8Array>) => {
    let wasBlank = true;
    for await (const line of lines(stream)) {
      lastLineAt = performance.now();
      const reason = REASON.exec(line)?.[1];
      if (reason !== undefined) reasons.add(reason);
      if (reason !== undefined || ROUTINE.test(line) || (line === "" && wasBlank)) continue;
      wasBlank = line === "";
      print(line);
    }
  };
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      // `make verify` checks the types: half a minute in which no test would run.
      ...["test", "--no-check", "--allow-all", "--no-prompt", "--parallel", "--permit-no-files"],
      ...["--sanitize-ops", "--sanitize-resources", `--junit-path=${junitPath}`, ...args],
    ],
    env: { NO_COLOR: "1", RUST_BACKTRACE: "0", DENO_JOBS: String(JOBS) },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const watch = setInterval(() => {
    if (performance.now() - lastLineAt > SILENCE_MS) child.kill("SIGKILL");
  }, 1_000);
  try {
    const [status] = await Promise.all([child.status, pass(child.stdout), pass(child.stderr)]);
    return { ok: status.success, reasons };
  } finally {
    clearInterval(watch);
  }
}

/** The counts of one run. A run that failed without a failing test (it did not compile, it was killed) counts as one. */
function countOutcomes(cases: readonly TestCase[], ok: boolean): Counts {
  const count = (outcome: TestCase["outcome"]) => cases.filter((one) => one.outcome === outcome).length;
  const failed = count("failed");
  return { passed: count("passed"), failed: ok || failed > 0 ? failed : 1, skipped: count("skipped") };
}

function printSkipped(cases: readonly TestCase[], reasons: ReadonlySet<string>): void {
  const skipped = Map.groupBy(cases.filter(({ outcome }) => outcome === "skipped"), ({ file }) => file);
  if (skipped.size === 0) return;
  print(`\nSKIPPED, so NOT shown to work here:`);
  for (const [file, { length }] of skipped) print(`  ${length} of ${file}`);
  print("because:");
  for (const reason of reasons) print(`  ${reason}`);
  if (reasons.size === 0) print("  (no test file gave a reason)");
  const packages = missingPackages();
  if (packages !== "") print(`what brings more of them: make test/packages (${packages})`);
}

/** The Debian packages without which tests are skipped here; "" when none is missing, or this is not Debian. */
function missingPackages(): string {
  const { stdout } = new Deno.Command(GET_PACKAGES, { args: ["test"], stderr: "null" }).outputSync();
  return new TextDecoder().decode(stdout).trim();
}

function printSlowest(cases: readonly TestCase[], wanted: number): void {
  const slowest = cases.toSorted((a, b) => b.seconds - a.seconds).slice(0, wanted);
  if (slowest.length > 0) print("\nslowest:");
  for (const { file, name, seconds } of slowest) {
    print(`  ${seconds.toFixed(1).padStart(6)} s  ${file}: ${name}`);
  }
}

async function readCases(junitPath: string): Promise<TestCase[]> {
  try {
    return parseJunit(await Deno.readTextFile(junitPath));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

async function main(args: readonly string[]): Promise<number> {
  const refuseSkips = args.includes("--no-skips");
  const [options, [suite, ...paths]] = [
    args.filter((arg) => arg.startsWith("--ignore=")),
    args.filter((arg) => !arg.startsWith("--")),
  ];
  if (suite === undefined) {
    complain("usage: test_run.ts [--no-skips] [--ignore=PATH] NAME [PATH…]");
    return 2;
  }
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  try {
    const junitPath = join(folder, "junit.xml");
    const { ok, reasons } = await runTests([...options, ...paths], junitPath);
    const cases = await readCases(junitPath);
    const counts = countOutcomes(cases, ok);
    printSlowest(cases, Number(Deno.env.get("SLOWEST")));
    printSkipped(cases, reasons);
    noteCounts(suite, counts);
    printCounts(counts);
    return counts.failed > 0 || (refuseSkips && counts.skipped > 0) ? 1 : 0;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

if (import.meta.main) Deno.exit(await main(Deno.args));
