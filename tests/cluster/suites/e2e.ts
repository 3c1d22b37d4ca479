import assert from "node:assert/strict";
import { join } from "node:path";
import { canGrowExt4Online } from "../../../src/cli/demo/scratch.ts";
import { driverDefinition } from "../e2e/definition.ts";
import { exclusions } from "../e2e/exclusions.ts";
import { describeOutcome, readReport, shortName } from "../e2e/report.ts";
import {
  suitePattern,
  titleOf,
  uncovered,
  type UpstreamSuite,
  upstreamSuites,
} from "../e2e/suites_wanted.ts";
import type { Bench, Suite } from "../kit/bench.ts";
import type { Cluster } from "../kit/cluster.ts";
import { Daemon } from "../kit/daemon.ts";
import { ensureE2eTools, packE2eImages } from "../e2e/tools.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import { paths } from "../kit/objects.ts";
import { secondsSince } from "../kit/waiting.ts";
import { Workload } from "../kit/workload.ts";

/** Upstream's suites that run at the same time: they wait most of the time. */
const workers = 3;
/** Longest that one of them may take. */
const suiteLimit = "60m";
/** Where upstream's tests believe every kubelet to have its pods. */
const wellKnownPods = "/var/lib/kubelet/pods";

/** Kubernetes' own end-to-end tests of storage, with the driver as one that they do not know. */
export const suite: Suite = {
  what: "upstream's end-to-end tests of storage, as far as they run on this rig",
  limitMinutes: 150,
  run: async (bench) => {
    const tools = await ensureE2eTools((line) => bench.report.say(line), bench.signal);
    const cluster = await bench.cluster({ nodes: { n1: "kubelet", n2: "kubelet" } });
    for (const image of await packE2eImages(tools, bench.folder)) {
      for (const node of cluster.nodes.values()) await node.runtime.importImage(image);
    }
    const upstream = new Upstream(bench, cluster, tools.program);
    const wanted = upstreamSuites.filter((one) => isWanted(titleOf(one)));
    for (const one of wanted.filter(isAlone)) await upstream.alone(one);
    const waiting = wanted.filter((one) => !isAlone(one));
    await Promise.all(Array.from({ length: workers }, async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await upstream.test(next);
    }));
    await bench.test("with upstream's namespaces all volumes go, and leave nothing", async () => {
      const work = new Workload(cluster, bench.signal);
      for (const path of [paths.volumes, paths.attachments, paths.snapshotContents]) await work.gone(path);
      return await assertNothingLeft(cluster, bench.signal);
    });
  },
};

/** `E2E="volumes subPath"` runs these only. */
function isWanted(title: string): boolean {
  const wanted = (Deno.env.get("E2E") ?? "").split(" ").filter((word) => word !== "");
  return wanted.length === 0 || wanted.includes(title);
}

function isAlone({ isBelowKubelet }: UpstreamSuite): boolean {
  return isBelowKubelet === true;
}

/** A run that was killed may have left its link, which leads nowhere now; what else is there is not for this rig to touch. */
async function linkWellKnownPods(pods: string): Promise<void> {
  const found = await Deno.lstat(wellKnownPods).catch(ignoreMissing);
  if (found?.isSymlink && !await Deno.stat(wellKnownPods).then(() => true, ignoreMissing)) {
    await Deno.remove(wellKnownPods);
  }
  await Deno.symlink(pods, wellKnownPods);
}

function ignoreMissing(error: unknown): undefined {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}

/** `e2e.test` against one cluster. */
class Upstream {
  readonly #bench: Bench;
  readonly #cluster: Cluster;
  readonly #program: string;

  constructor(bench: Bench, cluster: Cluster, program: string) {
    this.#bench = bench;
    this.#cluster = cluster;
    this.#program = program;
  }

  /** Runs one suite as one test. */
  async test(suite: UpstreamSuite, more: readonly string[] = []): Promise<void> {
    await this.#bench.test(`upstream's suite ${titleOf(suite)}`, async () => {
      const pattern = suitePattern(suite);
      const report = await this.#run(suite, pattern, more);
      const outcome = readReport(report, (name) => pattern.test(name), exclusions);
      assert.deepEqual(uncovered(outcome.all), [], "specifications of no part of their suite");
      const failures = outcome.failed.map((failure) => `\n  ${failure}`).join("");
      assert.equal(outcome.failed.length, 0, `${describeOutcome(outcome)}${failures}`);
      assert(
        outcome.passed.some((name) => suite.mustPass.test(name)),
        `${suite.mustPass} is not among ${outcome.passed.map(shortName)}`,
      );
      return describeOutcome(outcome);
    });
  }

  /** The same, while only the first node takes pods and these are found where upstream looks for them. */
  async alone(suite: UpstreamSuite): Promise<void> {
    const second = `${paths.nodes}/n2`;
    await this.#cluster.api.patch(second, { spec: { unschedulable: true } });
    const pods = join(this.#cluster.node("n1").kubelet.location.folder, "pods");
    await linkWellKnownPods(pods);
    try {
      await this.test(suite, ["--allowed-not-ready-nodes=1"]);
    } finally {
      await Deno.remove(wellKnownPods);
      await this.#cluster.api.patch(second, { spec: { unschedulable: null } });
    }
  }

  /** Answers Ginkgo's report, whether specifications have failed or not. */
  async #run(suite: UpstreamSuite, pattern: RegExp, more: readonly string[]): Promise<string> {
    const { plane } = this.#cluster;
    const folder = join(this.#bench.folder, `e2e-${titleOf(suite)}`);
    await Deno.mkdir(folder);
    const definition = join(folder, "driver.json");
    const storageClass = suite.grows && !canGrowExt4Online() ? "rds-xfs" : "rds-ext4";
    await Deno.writeTextFile(definition, JSON.stringify(driverDefinition(storageClass)));
    const report = join(folder, "report.json");
    const started = performance.now();
    const daemon = Daemon.start(`e2e-${titleOf(suite)}`, [
      this.#program,
      ...[`--kubeconfig=${await plane.kubeconfig("admin")}`, "--provider=skeleton"],
      `--kubectl-path=${this.#cluster.node("n1").kubelet.location.tools.program("kubectl")}`,
      ...[`--storage.testdriver=${definition}`, `--ginkgo.json-report=${report}`],
      ...[
        `--ginkgo.focus=${pattern.source}`,
        ...exclusions.map(({ specs }) => `--ginkgo.skip=${specs.source}`),
      ],
      ...[`--ginkgo.timeout=${suiteLimit}`, "--ginkgo.no-color", "--ginkgo.v", ...more],
    ], { folder: join(plane.folder, "log") });
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
