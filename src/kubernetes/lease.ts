import type { Clock } from "../volume/ports/system.ts";
import { ApiError, type KubernetesApi } from "./api.ts";
import type { Metadata } from "./objects.ts";

/** The lead, as the cluster stores it. */
export interface LeaseState {
  /** Empty when no controller holds it. */
  readonly holder: string;
  /** How long a candidate waits for a renewal by the holder, in seconds. */
  readonly durationSeconds: number;
  /** How often the holder has changed. */
  readonly transitions: number;
  /** Changes with every write. */
  readonly version: string;
}

/** Where the lead is stored. */
export interface LeaseStore {
  /** Undefined when there is none yet. @throws {ApiError} */
  read(signal: AbortSignal): Promise<LeaseState | undefined>;
  /**
   * Writes the state if it is still as in `before`, or still missing when that is undefined.
   *
   * @throws {ApiError} 409 when another controller was faster
   */
  write(
    state: Omit<LeaseState, "version">,
    before: LeaseState | undefined,
    signal: AbortSignal,
  ): Promise<LeaseState>;
}

interface RawLease {
  readonly metadata?: Metadata;
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly leaseDurationSeconds?: number;
    readonly leaseTransitions?: number;
    readonly acquireTime?: string;
    readonly renewTime?: string;
  };
}

/** How long a request for the lease may take, in milliseconds: several fit before a leader has to stop. */
const requestMs = 3_000;

/** A Lease of the cluster. */
export class ClusterLease implements LeaseStore {
  readonly #api: KubernetesApi;
  readonly #clock: Clock;
  readonly #collection: string;
  readonly #name: string;
  #acquireTime: string | undefined;

  constructor(
    options: {
      readonly api: KubernetesApi;
      readonly clock: Clock;
      readonly namespace: string;
      readonly name: string;
    },
  ) {
    this.#api = options.api;
    this.#clock = options.clock;
    this.#collection = `/apis/coordination.k8s.io/v1/namespaces/${options.namespace}/leases`;
    this.#name = options.name;
  }

  async read(signal: AbortSignal): Promise<LeaseState | undefined> {
    try {
      const path = `${this.#collection}/${this.#name}`;
      const lease = await this.#api.request<RawLease>({ method: "GET", path, signal, timeoutMs: requestMs });
      this.#acquireTime = lease.spec?.acquireTime;
      return stateOf(lease);
    } catch (error) {
      if (ApiError.is(error, 404)) return undefined;
      throw error;
    }
  }

  async write(
    state: Omit<LeaseState, "version">,
    before: LeaseState | undefined,
    signal: AbortSignal,
  ): Promise<LeaseState> {
    const now = new Date(this.#clock.now()).toISOString().replace("Z", "000Z");
    const isNew = before?.holder !== state.holder;
    const body = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: this.#name, ...(before === undefined ? {} : { resourceVersion: before.version }) },
      spec: {
        holderIdentity: state.holder,
        leaseDurationSeconds: state.durationSeconds,
        leaseTransitions: state.transitions,
        // For people only: no controller relies on another machine's clock.
        acquireTime: isNew ? now : this.#acquireTime ?? now,
        renewTime: now,
      },
    };
    const lease = await this.#api.request<RawLease>(
      before === undefined
        ? { method: "POST", path: this.#collection, body, signal, timeoutMs: requestMs }
        : { method: "PUT", path: `${this.#collection}/${this.#name}`, body, signal, timeoutMs: requestMs },
    );
    this.#acquireTime = lease.spec?.acquireTime;
    return stateOf(lease);
  }
}

function stateOf({ metadata, spec }: RawLease): LeaseState {
  return {
    holder: spec?.holderIdentity ?? "",
    durationSeconds: spec?.leaseDurationSeconds ?? 0,
    transitions: spec?.leaseTransitions ?? 0,
    version: metadata?.resourceVersion ?? "",
  };
}
