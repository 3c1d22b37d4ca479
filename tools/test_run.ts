// Runs tests and says what became of every one of them: `deno run -A tools/test_run.ts [--no-skips] NAME PATH…`.
// Only what is not "ok" is printed, then the skipped ones with their reasons, then "N passed, N failed, N skipped".
// With COUNTS_FILE set the counts are also appended to that file, as "NAME PASSED FAILED SKIPPED".

import { join } from "node:path";
import { type Counts, noteCounts, printCounts } from "./counts.ts";
import { parseJunit, type TestCase } from "./junit.ts";
import { lines } from "./lines.ts";
import { complain, print } from "./print.ts";

/** Longest run of all the tests of one call. */
const LIMIT_MS = 20 * 60_000;

/** Longest time in which no test ends. What hangs is then killed, and shows as the last line. */
const SILENCE_MS = 5 * 60_000;

/** Folders whose tests need more than the sources and are targets of their own. */
const ELSEWHERE = ["tests/build", "tests/cluster", "tests/nightly"];

/** A line that a test file prints when this machine lacks what its tests need. */
const REASON = /^(?:(?:ignored|skipped): |ignoring (?="))(.+)$/i;

/** What everything but the ends of tests would drown in. */
const ROUTINE = new RegExp([
  String.raw`\.\.\. (?:ok|ignored) \(`,
  // A test of several steps; an unfinished line, by which a test that hangs is known, ends with a blank.
  String.raw`\.\.\.$`,
  String.raw`^running \d+ tests? from `,
  String.raw`^(?:ok|FAILED) \| \d+ passed`,
  String.raw`^(?:Check|Download|Initialize) `,
  String.raw`^-+ (?:pre|post)-test output(?: end)? -+$`,
  String.raw`^Stack backtrace|^\s+\d+: <unknown>$|^error: Test failed$`,
].join("|"));

/** Runs `deno test`, passing on what is worth reading. */
async function runTests(paths: readonly string[], junitPath: string) {
  const reasons = new Set<string>();
  const started = performance.now();
  let lastLineAt = started;
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
      ...[
        "test",
        "--allow-all",
        "--no-prompt",
        "--permit-no-files",
        "--sanitize-ops",
        "--sanitize-resources",
      ],
      ...[`--junit-path=${junitPath}`, ...paths],
    ],
    env: { NO_COLOR: "1", RUST_BACKTRACE: "0" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const watch = setInterval(() => {
    const now = performance.now();
    if (now - started > LIMIT_MS || now - lastLineAt > SILENCE_MS) child.kill("SIGKILL");
  }, 1_000);
  try {
    const [status] = await Promise.all([child.status, pass(child.stdout), pass(child.stderr)]);
    return { ok: status.success, reasons };
  } finally {
    clearInterval(watch);
  }
}

/** `tests` stands for its folders but those of {@linkcode ELSEWHERE}: `--ignore` misses them when there are several paths. */
function expand(path: string): string[] {
  if (path !== "tests") return [path];
  const folders = [...Deno.readDirSync(path)].filter((entry) => entry.isDirectory).map(({ name }) =>
    join(path, name)
  );
  return folders.filter((folder) => !ELSEWHERE.includes(folder)).sort();
}

/** The counts of one run. A run that failed without a failing test (it did not compile, it was killed) counts as one. */
function countOutcomes(cases: readonly TestCase[], ok: boolean): Counts {
  const count = (outcome: TestCase["outcome"]) => cases.filter((one) => one.outcome === outcome).length;
  const failed = count("failed");
  return { passed: count("passed"), failed: ok || failed > 0 ? failed : 1, skipped: count("skipped") };
}

function printSkipped(cases: readonly TestCase[], reasons: ReadonlySet<string>): void {
  const skipped = cases.filter((one) => one.outcome === "skipped");
  if (skipped.length === 0) return;
  print(`\nSKIPPED, so NOT shown to work here:`);
  for (const { file, name } of skipped) print(`  ${file}: ${name}`);
  print("because:");
  for (const reason of reasons) print(`  ${reason}`);
  if (reasons.size === 0) print("  (no test file gave a reason)");
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
  const [suite, ...paths] = args.filter((arg) => arg !== "--no-skips");
  if (suite === undefined || paths.length === 0) {
    complain("usage: test_run.ts [--no-skips] NAME PATH…");
    return 2;
  }
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  try {
    const junitPath = join(folder, "junit.xml");
    const { ok, reasons } = await runTests(paths.flatMap(expand), junitPath);
    const cases = await readCases(junitPath);
    const counts = countOutcomes(cases, ok);
    printSkipped(cases, reasons);
    noteCounts(suite, counts);
    printCounts(counts);
    return counts.failed > 0 || (refuseSkips && counts.skipped > 0) ? 1 : 0;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

if (import.meta.main) Deno.exit(await main(Deno.args));
