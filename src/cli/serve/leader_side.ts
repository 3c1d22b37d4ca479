import { Cluster } from "../../kubernetes/cluster.ts";
import { RanOut } from "../../kubernetes/election.ts";
import type { Logger } from "../../telemetry/log.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { Clock, Random } from "../../volume/ports/system.ts";
import type { ClusterConfig } from "../config/cluster.ts";
import { Lead } from "./leadership.ts";

/** The adapters of {@linkcode LeaderSide}. */
export interface LeaderAdapters {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Called when this controller begins and ends to lead. */
  readonly leads?: (isLeading: boolean) => void;
}

/** A controller's connection to its cluster, and the election of the controller that leads there. */
export class LeaderSide {
  readonly cluster: Cluster;
  /** Undefined without an election: this controller serves whether it leads or not. */
  readonly lead: Lead | undefined;
  readonly #config: ClusterConfig;
  readonly #leads: (isLeading: boolean) => void;
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();

  private constructor(config: ClusterConfig, cluster: Cluster, { clock, leads }: LeaderAdapters) {
    this.cluster = cluster;
    this.lead = config.leaderElection ? new Lead(clock) : undefined;
    this.#config = config;
    this.#leads = leads ?? (() => {});
  }

  /** @throws {VolumeError} invalid when the cluster's address is unknown */
  static async open(
    config: ClusterConfig,
    driverName: string,
    adapters: LeaderAdapters,
  ): Promise<LeaderSide> {
    const { clock, random, log } = adapters;
    const cluster = await Cluster.open({
      ...{ address: config.address, driverName, clock, random },
      warn: (message, fields) => log.warn(message, fields),
      report: (message, fields) => log.info(message, fields),
    });
    return new LeaderSide(config, cluster, adapters);
  }

  /** The uid of the cluster's namespace kube-system. @throws {VolumeError} unavailable */
  uid(stop?: AbortSignal): Promise<string> {
    return this.cluster.uid(stop ?? this.#stop.signal);
  }

  /**
   * Runs `work` while this controller leads. Without an election it always does, and so may other ones.
   *
   * @param beside runs until the controller stops, whether it leads or not
   */
  start(
    work: (signal: AbortSignal) => Promise<unknown>,
    beside: (signal: AbortSignal) => readonly Promise<unknown>[] = () => [],
  ): void {
    const { leaseNamespace, leaseIdentity, startupTaint } = this.#config;
    const { signal } = this.#stop;
    const election = this.cluster.election(leaseNamespace, leaseIdentity, {
      leads: (untilMs) => this.lead?.holdUntil(untilMs),
      heldBy: (holder) => this.lead?.heldBy(holder),
    });
    const lead = async (signal: AbortSignal) => {
      signal.addEventListener("abort", () => this.#ended(signal.reason), { once: true });
      this.#leads(true);
      const taint = startupTaint === "" ? undefined : this.cluster.startupTaint(startupTaint);
      await Promise.all([work(signal), taint?.run(signal)]);
    };
    this.#running = Promise.all([...beside(signal), election.run(lead, signal)]).then(() => {});
  }

  /** Stops the work, waits for `also`, which the stop ends as well, and closes the connections. */
  async close(also: () => readonly Promise<unknown>[] = () => []): Promise<void> {
    this.#stop.abort(new VolumeError("cancelled", "The controller stops"));
    await Promise.all([this.#running, ...also()]);
    this.cluster.close();
  }

  /** A lead that ran out may go on, if nobody else has had it when the API server answers again. */
  #ended(reason: unknown): void {
    this.#leads(false);
    if (this.#stop.signal.aborted) this.lead?.end("the driver is shutting down");
    else if (reason instanceof RanOut) this.lead?.interrupt();
    else this.lead?.lose(reason instanceof Error ? reason.message : String(reason));
  }
}
