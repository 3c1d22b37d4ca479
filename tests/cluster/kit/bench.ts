import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Report } from "../../support/suite_report.ts";
import type { AnySuite } from "../../support/suites.ts";
import type { Subject } from "../../support/parts.ts";
import { assertNothingRefused } from "./audit_log.ts";
import { Cluster, type ClusterOptions } from "./cluster.ts";
import { secondsSince } from "./waiting.ts";
import type { Tools } from "./tools.ts";
import { findTraces } from "./traces.ts";

/** The exports of a file of suites/. */
export type Suite = AnySuite<Bench>;

/** Where the logs of each suite's last cluster are kept. */
const keptFolder = fileURLToPath(new URL("../../../dist/cluster", import.meta.url));

/** Starts a suite's cluster and reports its tests; it ends everything that it started. */
export class Bench {
  readonly report: Report;
  readonly signal: AbortSignal;
  /** A folder for the suite's own files, and everything of its cluster. */
  readonly folder: string;
  readonly #name: string;
  readonly #means: { readonly tools: Tools; readonly subject: Subject };
  readonly #removeFolder: () => Promise<void>;
  #cluster: Cluster | undefined;
  readonly #undo: (() => Promise<readonly string[] | void>)[] = [];

  /** @param folder an empty one below /tmp, with a short path */
  constructor(
    name: string,
    folder: string,
    means: { readonly tools: Tools; readonly subject: Subject },
    signal: AbortSignal,
    removeFolder: () => Promise<void>,
  ) {
    this.#name = name;
    this.#removeFolder = removeFolder;
    this.report = new Report(name);
    this.signal = signal;
    this.folder = folder;
    this.#means = means;
  }

  /** Starts the suite's only cluster. */
  async cluster(options: ClusterOptions): Promise<Cluster> {
    const started = performance.now();
    const undo = (what: () => Promise<readonly string[] | void>) => this.#undo.unshift(what);
    const cluster = this.#cluster = await Cluster.start(
      this.folder,
      this.#means,
      options,
      undo,
      this.signal,
    );
    this.report.say(`the cluster serves after ${secondsSince(started)} s`);
    return cluster;
  }

  /** Runs one test and reports its result; a failure does not end the suite. */
  test(name: string, body: () => Promise<string>): Promise<boolean> {
    return this.report.test(name, this.signal, body);
  }

  /**
   * Runs tests that each continue where the one before has ended; a failure ends the sequence, because the rest could
   * only fail too.
   */
  async story(tests: readonly (readonly [name: string, body: () => Promise<string>])[]): Promise<void> {
    for (const [name, body] of tests) if (!await this.test(name, body)) return;
  }

  /** Ends everything, and tests that nothing is left; the logs are kept until the next run. */
  async close(): Promise<void> {
    const never = new AbortController().signal;
    await this.report.test("everything ends, and leaves nothing on this machine", never, async () => {
      const problems: string[] = [];
      for (const undo of this.#undo.splice(0)) {
        try {
          problems.push(...await undo() ?? []);
        } catch (error) {
          problems.push(error instanceof Error ? error.message : String(error));
        }
      }
      problems.push(...await findTraces(this.folder));
      assert.deepEqual(problems, []);
      return "no process, mount, loop device, control group";
    });
    const cluster = this.#cluster;
    if (cluster !== undefined) {
      await this.report.test(
        "under the rules of deploy/ the API server refused the driver and its sidecars nothing",
        never,
        () => assertNothingRefused(cluster.plane),
      );
    }
    await this.#keepLogs();
    await this.#removeFolder();
  }

  async #keepLogs(): Promise<void> {
    const from = join(this.folder, "log");
    const to = join(keptFolder, this.#name);
    await Deno.remove(to, { recursive: true }).catch(ignoreMissing);
    await Deno.mkdir(to, { recursive: true });
    try {
      for (const { name } of Deno.readDirSync(from)) await Deno.copyFile(join(from, name), join(to, name));
      if (this.report.counts.failed > 0) this.report.say(`the logs are in ${to}`);
    } catch (error) {
      ignoreMissing(error);
    }
  }
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}
