import type { ClusterConfig } from "../config/cluster.ts";
import { Cluster } from "../../kubernetes/cluster.ts";
import { RanOut } from "../../kubernetes/election.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { ClusterView } from "../../volume/ports/cluster_view.ts";
import type { ClusterAdapters } from "./cluster.ts";
import { Lead } from "./leadership.ts";

/** What a cluster provides to a controller of directories: its id, its PersistentVolumes, and the election of the one that leads. */
export class DirectoryCluster {
  readonly #config: ClusterConfig;
  readonly #cluster: Cluster;
  readonly #leads: (isLeading: boolean) => void;
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  /** Undefined without an election: this controller serves whether it leads or not. */
  readonly lead: Lead | undefined;

  private constructor(config: ClusterConfig, cluster: Cluster, { clock, leads }: ClusterAdapters) {
    this.#config = config;
    this.#leads = leads ?? (() => {});
    this.#cluster = cluster;
    this.lead = config.leaderElection ? new Lead(clock) : undefined;
  }

  /** @throws {VolumeError} invalid when the cluster's address is unknown */
  static async open(
    config: ClusterConfig,
    driverName: string,
    adapters: ClusterAdapters,
  ): Promise<DirectoryCluster> {
    const { clock, random, log } = adapters;
    const cluster = await Cluster.open({
      ...{ address: config.address, driverName, clock, random },
      warn: (message, fields) => log.warn(message, fields),
      report: (message, fields) => log.info(message, fields),
    });
    return new DirectoryCluster(config, cluster, adapters);
  }

  /** Which PersistentVolumes name a directory. */
  get use(): Pick<ClusterView, "objectsOf"> {
    return this.#cluster.use;
  }

  /** The uid of the cluster's namespace kube-system. @throws {VolumeError} unavailable */
  uid(stop?: AbortSignal): Promise<string> {
    return this.#cluster.uid(stop ?? this.#stop.signal);
  }

  /** Runs `work` while this controller leads. */
  start(work: (signal: AbortSignal) => Promise<void>): void {
    const { leaseNamespace, leaseIdentity, startupTaint } = this.#config;
    const election = this.#cluster.election(leaseNamespace, leaseIdentity, {
      leads: (untilMs) => this.lead?.holdUntil(untilMs),
      heldBy: (holder) => this.lead?.heldBy(holder),
    });
    const lead = async (signal: AbortSignal) => {
      signal.addEventListener("abort", () => this.#ended(signal.reason), { once: true });
      this.#leads(true);
      const taint = startupTaint === "" ? undefined : this.#cluster.startupTaint(startupTaint);
      await Promise.all([work(signal), taint?.run(signal)]);
    };
    this.#running = election.run(lead, this.#stop.signal);
  }

  /** Stops the work, and closes the connections. */
  async close(): Promise<void> {
    this.#stop.abort(new VolumeError("cancelled", "The controller stops"));
    await this.#running;
    this.#cluster.close();
  }

  /** A lead that ran out may go on, if nobody else has had it when the API server answers again. */
  #ended(reason: unknown): void {
    this.#leads(false);
    if (this.#stop.signal.aborted) this.lead?.end("the driver is shutting down");
    else if (reason instanceof RanOut) this.lead?.interrupt();
    else this.lead?.lose(reason instanceof Error ? reason.message : String(reason));
  }
}
