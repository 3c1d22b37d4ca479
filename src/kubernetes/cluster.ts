import { VolumeError } from "../volume/errors.ts";
import type { Clock, Random } from "../volume/ports/system.ts";
import type {
  DetachedNodes,
  FormatConsents,
  MigrationPairs,
  NodeDirectory,
} from "../volume/ports/cluster_ports.ts";
import type { KubernetesApi } from "./api.ts";
import { type ClusterAddress, KubernetesClient } from "./client.ts";
import { KubernetesClusterView } from "./cluster_view.ts";
import { CsiNodes } from "./csi_nodes.ts";
import { KubernetesDetachedNodes } from "./detached_nodes.ts";
import { Election, type ElectionOptions } from "./election.ts";
import { ClaimAnnotations } from "./format_consents.ts";
import { ClusterLease } from "./lease.ts";
import { EventRecorder } from "./event_recorder.ts";
import { kubevirtPairs } from "./kubevirt_pairs.ts";
import { StartupTaint } from "./startup_taint.ts";
import type { Metadata } from "./objects.ts";
import { PersistentVolumes } from "./persistent_volumes.ts";
import { AnnotationProjection, type ProjectionOptions } from "./volume_projection.ts";

/** How often the API server is asked before a controller gives its start up, and how long it waits in between. */
const attempts = 12;
const pauseMs = 5_000;

/** Options of {@linkcode Cluster}. */
export interface ClusterOptions {
  readonly address: ClusterAddress;
  readonly driverName: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Hears what an operator should know. */
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Hears what happens as it should. */
  readonly report: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** A cluster, with everything in it that this driver reads and writes. It sends no request before a caller needs one. */
export class Cluster {
  readonly #options: ClusterOptions;
  readonly #client: KubernetesClient;
  readonly volumes: PersistentVolumes;
  /** What the cluster uses of this driver's volumes. */
  readonly use: KubernetesClusterView;

  /** @throws {VolumeError} invalid when it cannot be told where the cluster is */
  constructor(options: ClusterOptions) {
    this.#options = options;
    this.#client = KubernetesClient.open(options.address, options.clock);
    this.volumes = new PersistentVolumes({ ...options, api: this.#client });
    this.use = new KubernetesClusterView({ ...options, api: this.#client, volumes: this.volumes });
  }

  /** See {@linkcode readClusterUid}. */
  uid(signal: AbortSignal): Promise<string> {
    return readClusterUid(this.#client, this.#options.clock, signal);
  }

  /** The cluster's nodes, and others beside them. */
  nodes(others: NodeDirectory): NodeDirectory {
    return new CsiNodes({ ...this.#options, api: this.#client, others });
  }

  /** What shows who holds which volume, which asks the router by `latest`. */
  projection(latest: ProjectionOptions["latest"]): AnnotationProjection {
    return new AnnotationProjection({ ...this.#options, api: this.#client, volumes: this.volumes, latest });
  }

  /** What tells people of events, on the volumes' objects and their claims. */
  events(): EventRecorder {
    return new EventRecorder({ ...this.#options, api: this.#client, volumes: this.volumes });
  }

  /** What lets only the pods of one KubeVirt virtual machine share a volume. */
  kubevirtPairs(): MigrationPairs {
    return kubevirtPairs(this.#client, this.volumes);
  }

  /** What tells whether nodes have given volumes up. */
  detachedNodes(): DetachedNodes {
    return new KubernetesDetachedNodes({ ...this.#options, api: this.#client, volumes: this.volumes });
  }

  /** What owners of claims allow. */
  consents(): FormatConsents {
    return new ClaimAnnotations(this.#client, this.volumes);
  }

  /** What takes the taint of that key off nodes on which this driver has registered itself. */
  startupTaint(key: string): StartupTaint {
    return new StartupTaint({ ...this.#options, api: this.#client, key });
  }

  /**
   * The election of who leads.
   *
   * @param namespace of the Lease; where it is empty, that of the configuration
   * @param name of this controller, for people who look who leads
   */
  election(
    namespace: string,
    name = "rds-csi",
    listeners: Pick<ElectionOptions, "leads" | "heldBy"> = {},
  ): Election {
    const { clock, random, driverName, report } = this.#options;
    const lease = {
      api: this.#client,
      clock,
      namespace: namespace || this.#client.namespace || "default",
      name: `${driverName.toLowerCase()}-controller`,
    };
    const nonce = random.bytes(8).toHex();
    return new Election({
      store: new ClusterLease(lease),
      identity: `${name}-${nonce}`,
      clock,
      random,
      report,
      ...listeners,
    });
  }

  /** Ends the connections. */
  close(): void {
    this.#client.close();
  }
}

/**
 * What tells this cluster from any other one: the uid of its namespace `kube-system`, which is as old as the cluster.
 *
 * @throws {VolumeError} unavailable when the API server does not tell within a minute; whatever the signal's reason is
 */
export async function readClusterUid(api: KubernetesApi, clock: Clock, signal: AbortSignal): Promise<string> {
  for (let attempt = 1;; attempt++) {
    try {
      const path = "/api/v1/namespaces/kube-system";
      const { metadata } = await api.request<{ metadata?: Metadata }>({ method: "GET", path, signal });
      if (metadata?.uid) return metadata.uid;
      throw new Error("the namespace kube-system has no uid");
    } catch (error) {
      signal.throwIfAborted();
      if (attempt < attempts) await clock.sleep(pauseMs, signal);
      else {
        const reason = error instanceof Error ? error.message : String(error);
        throw new VolumeError(
          "unavailable",
          `Cannot tell which cluster this is because its API server does not say: ${reason}; set --cluster-id, or let the ` +
            "service account get the namespace kube-system",
          { cause: error },
        );
      }
    }
  }
}
