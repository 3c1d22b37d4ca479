import type { ControllerConfig } from "../config/router_settings.ts";
import type { ClusterConfig } from "../config/cluster.ts";
import type { PeriodicLoop } from "../../controller/periodic_loop.ts";
import type { Clock } from "../../volume/ports/system.ts";
import { fixedNodes, type NodeDirectory } from "../../volume/ports/cluster_ports.ts";
import { getVolume } from "../../controller/volumes/read.ts";
import { runLimited } from "../../async/deadline.ts";
import type { RouterBoots } from "../../controller/reconcile/boots.ts";
import { ReconcileLoop, showAtStart } from "../../controller/reconcile/loop.ts";
import type { ControllerDeps } from "../../controller/deps.ts";
import { distrust, forget } from "../../controller/records/memory.ts";
import type { EventRecorder } from "../../kubernetes/event_recorder.ts";
import type { AnnotationProjection } from "../../kubernetes/volume_projection.ts";
import type { Logger } from "../../telemetry/log.ts";
import { VolumeError } from "../../volume/errors.ts";
import { backendClusterHash } from "../../volume/model/ids/cluster_hash.ts";
import type { VolumeIdPrefix } from "../../volume/model/ids/handles.ts";
import type { DetachedNodes, FormatConsents, MigrationPairs } from "../../volume/ports/cluster_ports.ts";
import type { ClusterView } from "../../volume/ports/cluster_view.ts";
import type { VolumeStore } from "../../volume/ports/store.ts";
import { type Attachment, attachmentOf } from "../../volume/ports/projection.ts";
import type { ClaimLookup } from "../../telemetry/status/model.ts";
import { type LeaderAdapters, LeaderSide } from "./leader_side.ts";
import type { Lead } from "./leadership.ts";
import { reconciledOfRouter, type SharedDeps } from "./router_cluster.ts";

/** The adapters of {@linkcode ClusterSide}. */
export interface ClusterAdapters extends LeaderAdapters {
  /** Receives the lookup of volumes' claims. */
  readonly showClaims?: (claimOf: ClaimLookup) => void;
}

/** How long the router may take to answer who holds a volume, in milliseconds. */
const latestMs = 30_000;

/** A router's part in the background work. */
export interface ClusterPart {
  /** Its store waits for rounds after a boot, see `comparedStore()`. */
  readonly deps: ControllerDeps;
  /** The same router, asked without waiting: for the loop that is waited for. */
  readonly store: VolumeStore;
  readonly boots: RouterBoots;
  readonly audits: Pick<PeriodicLoop, "run">;
  readonly hardware: Pick<PeriodicLoop, "run">;
  readonly ids: VolumeIdPrefix;
}

/** What the cluster provides to a router's controller. */
export interface ClusterCollaborators extends Required<Pick<SharedDeps, "projection" | "events">> {
  readonly nodes: NodeDirectory;
  readonly clusterView: ClusterView;
  readonly consents: FormatConsents;
  readonly pairs?: MigrationPairs;
  readonly detachedNodes: DetachedNodes;
  /** Whether its audits report objects without a router: only one router's do, so that they are reported once. */
  readonly reportsUnknown: boolean;
}

/** What a cluster provides to the controllers of its routers, and the background work in it. */
export class ClusterSide {
  readonly #config: ClusterConfig;
  readonly #side: LeaderSide;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** One for each router, so that none waits for another router's answer. */
  readonly #projections: AnnotationProjection[] = [];
  readonly #events: EventRecorder;
  #hasLed = false;
  #parts: readonly ClusterPart[] = [];

  private constructor(config: ClusterConfig, side: LeaderSide, { clock, log, showClaims }: ClusterAdapters) {
    this.#config = config;
    this.#side = side;
    this.#clock = clock;
    this.#log = log;
    this.#events = side.cluster.events();
    showClaims?.((handle) => this.#claimOf(handle));
  }

  /** @throws {VolumeError} invalid when the cluster's address is unknown */
  static async open(
    config: ClusterConfig,
    driverName: string,
    adapters: ClusterAdapters,
  ): Promise<ClusterSide> {
    return new ClusterSide(config, await LeaderSide.open(config, driverName, adapters), adapters);
  }

  /** Undefined without an election: this controller serves whether it leads or not. */
  get lead(): Lead | undefined {
    return this.#side.lead;
  }

  /** From the last list of volumes. */
  #claimOf(handle: string): string | undefined {
    const claim = this.#cluster.volumes.known(handle)?.claim;
    return claim && `${claim.namespace}/${claim.name}`;
  }

  /** The configuration with the cluster's id. @throws {VolumeError} unavailable */
  async identified(config: ControllerConfig, stop?: AbortSignal): Promise<ControllerConfig> {
    if (config.settings.cluster !== "") return config;
    const uid = await this.#side.uid(stop);
    this.#log.info("the cluster id is the uid of the namespace kube-system", { uid });
    return { ...config, settings: { ...config.settings, cluster: backendClusterHash(uid, config.ids.text) } };
  }

  /** What the cluster provides to the controller of a router, by clients' ids. */
  collaborators({ knownNodes }: ControllerConfig, ids: VolumeIdPrefix): ClusterCollaborators {
    const projection = this.#cluster.projection((handle, signal) => this.#latest(ids, handle, signal));
    return {
      projection,
      nodes: this.#cluster.nodes(fixedNodes(knownNodes)),
      clusterView: this.#cluster.use,
      detachedNodes: this.#cluster.detachedNodes(),
      consents: this.#cluster.consents(),
      events: this.#events,
      ...(this.#config.migrationPairs === "any" ? {} : { pairs: this.#cluster.kubevirtPairs() }),
      reportsUnknown: this.#projections.push(projection) === 1,
    };
  }

  /**
   * Starts the background work, including these routers' audits. Only the leader runs the rounds and the audits. Without
   * an election, what a controller shows at its start is shown whether it leads or not.
   */
  start(parts: readonly ClusterPart[]): void {
    this.#parts = parts;
    this.#side.start((signal) => this.#lead(signal), this.lead === undefined ? this.#showAll : undefined);
  }

  /** Stops the background work, and closes the connections. */
  async close(): Promise<void> {
    const projections = () => this.#projections.map((projection) => projection.close());
    await this.#side.close(() => [...projections(), this.#events.close()]);
  }

  readonly #showAll = (signal: AbortSignal) => {
    const readObjects = (signal: AbortSignal) => this.#cluster.volumes.list(signal);
    return this.#parts.map(({ deps }) => showAtStart(deps, readObjects, signal));
  };

  async #lead(signal: AbortSignal): Promise<void> {
    // Before the first call: another controller may have led before. None has led since, or this process would end.
    const begin = this.#hasLed ? forget : distrust;
    if (this.lead !== undefined) { for (const { deps } of this.#parts) begin(deps); }
    this.#hasLed = true;
    const shown = this.lead === undefined ? [] : this.#showAll(signal);
    await Promise.all([...this.#parts.map((part) => this.#runLoops(part, signal)), ...shown]);
  }

  get #cluster() {
    return this.#side.cluster;
  }

  /** Runs the loops of one router, so that one that does not answer delays only its own. */
  async #runLoops(
    { deps, store, boots, audits, hardware, ids }: ClusterPart,
    signal: AbortSignal,
  ): Promise<void> {
    const own = reconciledOfRouter(ids, this.#cluster.use);
    const loop = new ReconcileLoop({ ...deps, store }, own, this.#config.rounds, boots);
    await Promise.all([loop.run(signal), audits.run(signal), hardware.run(signal)]);
  }

  async #latest(
    ids: VolumeIdPrefix,
    handle: string,
    signal: AbortSignal,
  ): Promise<Attachment | "unknown" | undefined> {
    const id = ids.strip(handle);
    const deps = this.#parts.find((part) => part.ids === ids)?.deps;
    if (deps === undefined || id === undefined) return "unknown";
    try {
      const about = { name: `show-${id}`, timeoutMs: latestMs, signal };
      return await runLimited(
        this.#clock,
        about,
        async (context) => attachmentOf((await getVolume(deps, id, context)).record),
      );
    } catch (error) {
      if (VolumeError.is(error, "not-found")) return undefined;
      // Waiting does not help: a person has to look at it first.
      if (VolumeError.is(error, "precondition")) return "unknown";
      throw error;
    }
  }
}
