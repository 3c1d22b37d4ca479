import assert from "node:assert/strict";
import { join } from "node:path";
import type { Report } from "../../support/suite_report.ts";
import { Daemon } from "../kit/daemon.ts";
import { secondsSince } from "../kit/waiting.ts";
import type { Exclusion, Scope } from "./exclusions.ts";
import { describeOutcome, readReport, shortName } from "./report.ts";
import { suitePattern, titleOf, uncovered, type UpstreamSuite } from "./suites_wanted.ts";

/** Longest that one of upstream's suites may take. */
const suiteLimit = "60m";

/** The bench of the suite that runs upstream's. */
export interface UpstreamBench {
  readonly report: Report;
  readonly signal: AbortSignal;
  /** A folder for reports and definitions. */
  readonly folder: string;
  test(name: string, body: () => Promise<string>): Promise<boolean>;
}

/** What `e2e.test` runs against, and how it is judged. */
export interface UpstreamOptions {
  /** `e2e.test`, as a path. */
  readonly program: string;
  readonly kubectl: string;
  /** Of somebody who may do everything. */
  readonly kubeconfig: string;
  /** Where its logs are written. */
  readonly logFolder: string;
  /** All suites that there are for the driver. */
  readonly suites: readonly UpstreamSuite[];
  readonly exclusions: readonly Exclusion[];
  /** For what reasons specifications may skip themselves. @default {outOfScope} */
  readonly scopes?: readonly Scope[];
  /** What upstream is told of the driver. */
  readonly definition: (suite: UpstreamSuite) => object;
}

/** Those of the suites that `E2E="volumes subPath"` names; all when it is empty. @throws {Error} when one is not there */
export function wantedOf(
  suites: readonly UpstreamSuite[],
  named = Deno.env.get("E2E") ?? "",
): UpstreamSuite[] {
  const titles = named.split(" ").filter((word) => word !== "");
  const known = suites.map(titleOf);
  const unknown = titles.filter((title) => !known.includes(title));
  if (unknown.length > 0) {
    throw new Error(
      `E2E names no suite of upstream's here: ${unknown.join(" ")}; there are ${known.join(" ")}`,
    );
  }
  return suites.filter((suite) => titles.length === 0 || titles.includes(titleOf(suite)));
}

/** `e2e.test` against one cluster. */
export class Upstream {
  readonly #bench: UpstreamBench;
  readonly #options: UpstreamOptions;

  constructor(bench: UpstreamBench, options: UpstreamOptions) {
    this.#bench = bench;
    this.#options = options;
  }

  /** Runs suites, so many at the same time, each as one test. */
  async testAll(suites: readonly UpstreamSuite[], workers: number): Promise<void> {
    const waiting = [...suites];
    await Promise.all(Array.from({ length: workers }, async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await this.test(next);
    }));
  }

  /** Runs one suite as one test. @param more flags of `e2e.test` */
  async test(suite: UpstreamSuite, more: readonly string[] = []): Promise<void> {
    await this.#bench.test(`upstream's suite ${titleOf(suite)}`, async () => {
      const pattern = suitePattern(suite);
      const report = await this.#run(suite, pattern, more);
      const { exclusions, scopes } = this.#options;
      const outcome = readReport(report, (name) => pattern.test(name), exclusions, scopes);
      assert.deepEqual(
        uncovered(this.#options.suites, outcome.all),
        [],
        "specifications of no part of their suite",
      );
      const failures = outcome.failed.map((failure) => `\n  ${failure}`).join("");
      assert.equal(outcome.failed.length, 0, `${describeOutcome(outcome)}${failures}`);
      assert(
        outcome.passed.some((name) => suite.mustPass.test(name)),
        `${suite.mustPass} is not among ${outcome.passed.map(shortName)}`,
      );
      return describeOutcome(outcome);
    });
  }

  /** Answers Ginkgo's report, whether specifications have failed or not. */
  async #run(suite: UpstreamSuite, pattern: RegExp, more: readonly string[]): Promise<string> {
    const { program, kubectl, kubeconfig, logFolder, exclusions, definition } = this.#options;
    const title = `e2e-${titleOf(suite)}`;
    const folder = join(this.#bench.folder, title);
    await Deno.mkdir(folder);
    const definitionFile = join(folder, "driver.json");
    await Deno.writeTextFile(definitionFile, JSON.stringify(definition(suite)));
    const report = join(folder, "report.json");
    const started = performance.now();
    const daemon = Daemon.start(title, [
      program,
      ...[`--kubeconfig=${kubeconfig}`, "--provider=skeleton", `--kubectl-path=${kubectl}`],
      ...[`--storage.testdriver=${definitionFile}`, `--ginkgo.json-report=${report}`],
      ...[
        `--ginkgo.focus=${pattern.source}`,
        ...exclusions.map(({ specs }) => `--ginkgo.skip=${specs.source}`),
      ],
      ...[`--ginkgo.timeout=${suiteLimit}`, "--ginkgo.no-color", "--ginkgo.v", ...more],
    ], { folder: logFolder });
    const stop = () => void daemon.kill();
    this.#bench.signal.addEventListener("abort", stop);
    await daemon.ended;
    this.#bench.signal.removeEventListener("abort", stop);
    this.#bench.report.say(`${titleOf(suite)} ended after ${secondsSince(started)} s`);
    try {
      return await Deno.readTextFile(report);
    } catch (error) {
      throw new Error(`e2e.test wrote no report:\n${await daemon.tail()}`, { cause: error });
    }
  }
}
