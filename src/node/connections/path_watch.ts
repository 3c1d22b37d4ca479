import { runLimited } from "../../async/deadline.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import type { MissingPath } from "../../volume/ports/node_ports.ts";
import type { NodeDeps, VolumeLock } from "../deps.ts";
import { DoubtfulConnections } from "./doubtful_connections.ts";
import { targetOf } from "./target.ts";

/** From the end of one round to the beginning of the next. */
const intervalMs = 30_000;
/** How long one volume may take: a connect in the kernel can take a minute. */
const volumeMs = 100_000;

/** Options of {@linkcode PathWatch}. */
export interface PathWatchOptions {
  readonly deps: NodeDeps;
  /** The locks of the calls that change volumes. */
  readonly lock: VolumeLock;
}

/**
 * Adds the paths that staged volumes lack. A volume is staged as soon as its first path is live: an address that is
 * silent must not hold it up, and must not stay without a path when it answers again.
 *
 * It does not wait for a volume's lock, because a connect can take a minute. So it looks before and after whether the
 * volume is staged under that NQN, and drops what belongs to none.
 */
export class PathWatch {
  readonly #options: PathWatchOptions;
  readonly #doubtful: DoubtfulConnections;
  readonly #stop = new AbortController();
  /** By NQN, what was logged about it last. */
  readonly #said = new Map<string, string>();
  #pause = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(options: PathWatchOptions) {
    this.#options = options;
    this.#doubtful = new DoubtfulConnections(options.deps, options.lock);
  }

  /** Starts the rounds, and returns at once. */
  start(): void {
    this.#running = this.#run();
  }

  /** Resolves when no round is running. */
  async stop(): Promise<void> {
    this.#stop.abort(new VolumeError("cancelled", "The driver stops"));
    this.#pause.abort();
    await this.#running;
  }

  /** Begins a round soon: a volume was just staged that lacks a path. */
  lacking(): void {
    this.#pause.abort();
  }

  /** Runs one round. It never fails: a failure is logged, and the next round tries again. */
  async check(): Promise<void> {
    const { deps } = this.#options;
    const context = { requestId: "paths", signal: this.#stop.signal };
    try {
      await this.#doubtful.check(this.#stop.signal);
      const connections = await deps.connector.allConnections(context);
      const lacking = (await deps.stagingStore.all()).filter(
        ({ intent: { nqn, addresses }, here: { staged } }) => {
          const paths = connections.get(nqn)?.length ?? 0;
          return staged && paths > 0 && paths < new Set(addresses).size;
        },
      );
      for (const nqn of this.#said.keys()) {
        if (!lacking.some((each) => each.intent.nqn === nqn)) this.#say(nqn, []);
      }
      for (const stagingState of lacking) {
        if (!this.#stop.signal.aborted) await this.#addTo(stagingState);
      }
    } catch (error) {
      if (!this.#stop.signal.aborted) {
        deps.notes?.warn("cannot look for missing paths", { reason: messageOf(error) });
      }
    }
  }

  async #run(): Promise<void> {
    const { clock } = this.#options.deps;
    while (!this.#stop.signal.aborted) {
      this.#pause = new AbortController();
      await this.check();
      await clock.sleep(intervalMs, this.#pause.signal).catch(() => {
        // A volume lacks a path, or `stop()` was called.
      });
    }
  }

  async #addTo(stagingState: StagingState): Promise<void> {
    const { connector, stagingStore, clock } = this.#options.deps;
    const { volumeId, intent: { nqn } } = stagingState;
    const limits = { name: `paths-${volumeId}`, timeoutMs: volumeMs, signal: this.#stop.signal };
    try {
      await runLimited(clock, limits, async (context) => {
        // The round may have begun long ago.
        const current = await stagingStore.findUndamaged(volumeId);
        if (current?.intent.nqn !== nqn || !current.here.staged) return;
        try {
          this.#say(nqn, await connector.addPaths(targetOf(current.intent), context));
        } finally {
          await this.#doubtful.dropIfUnstaged(current, context);
        }
      });
    } catch (error) {
      this.#doubtful.suspect(stagingState);
      if (!this.#stop.signal.aborted) this.#say(nqn, [{ address: "", reason: messageOf(error) }]);
    }
  }

  /** Logs one line for each change, not for each round. */
  #say(nqn: string, missing: readonly MissingPath[]): void {
    const { notes } = this.#options.deps;
    const text = missing.map(({ address, reason }) => `${address}: ${reason}`).join("; ");
    if (text === (this.#said.get(nqn) ?? "")) return;
    if (text === "") {
      this.#said.delete(nqn);
      notes?.info("every path of a volume is there, or the volume has gone", { nqn });
      return;
    }
    this.#said.set(nqn, text);
    notes?.warn("one path of several is missing", { nqn, reason: text });
  }
}
