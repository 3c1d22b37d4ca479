import { VolumeError } from "../volume/errors.ts";
import { messageOf } from "../volume/error_messages.ts";
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
import { Connections } from "./connections.ts";
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

/** How often the API server is asked before a controller gives up its start, and how long it waits in between. */
const attempts = 12;
const pauseMs = 5_000;

/** Options of {@linkcode Cluster}. */
export interface ClusterOptions {
  readonly address: ClusterAddress;
  readonly driverName: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Receives warnings for an operator. */
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Receives information about normal operation. */
  readonly report: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/**
 * A cluster, with everything in it that this driver reads and writes. It sends its first request when a caller needs
 * one.
 */
export class Cluster {
  readonly #options: ClusterOptions;
  /** The namespace of the cluster's configuration; "" when it has none. */
  readonly #namespace: string;
  readonly #connections: Connections;
  readonly volumes: PersistentVolumes;
  /** The cluster's use of this driver's volumes. */
  readonly use: KubernetesClusterView;

  private constructor(options: ClusterOptions, client: KubernetesClient) {
    this.#options = options;
    this.#namespace = client.namespace;
    this.#connections = new Connections(client);
    const { calls: api, lists } = this.#connections;
    this.volumes = new PersistentVolumes({ ...options, api });
    this.use = new KubernetesClusterView({ ...options, api, lists, volumes: this.volumes });
  }

  /** @throws {VolumeError} invalid when the cluster's address is unknown */
  static async open(options: ClusterOptions): Promise<Cluster> {
    return new Cluster(options, await KubernetesClient.open(options.address, options.clock));
  }

  /** See {@linkcode readClusterUid}. */
  uid(signal: AbortSignal): Promise<string> {
    return readClusterUid(this.#connections.calls, this.#options.clock, signal);
  }

  /** The cluster's nodes, and others besides. */
  nodes(others: NodeDirectory): NodeDirectory {
    return new CsiNodes({ ...this.#options, api: this.#connections.calls, others });
  }

  /** Shows which nodes hold which volume; it asks the router through `latest`. */
  projection(latest: ProjectionOptions["latest"]): AnnotationProjection {
    return new AnnotationProjection({
      ...this.#options,
      api: this.#connections.calls,
      volumes: this.volumes,
      latest,
    });
  }

  /** Records events on the volumes' objects and their claims. */
  events(): EventRecorder {
    return new EventRecorder({ ...this.#options, api: this.#connections.calls, volumes: this.volumes });
  }

  /** Lets only the pods of one KubeVirt virtual machine share a volume. */
  kubevirtPairs(): MigrationPairs {
    return kubevirtPairs({ ...this.#options, api: this.#connections.calls, volumes: this.volumes });
  }

  /** Finds out whether nodes have given up volumes. */
  detachedNodes(): DetachedNodes {
    return new KubernetesDetachedNodes({
      ...this.#options,
      api: this.#connections.calls,
      volumes: this.volumes,
    });
  }

  /** The consents of claims' owners. */
  consents(): FormatConsents {
    return new ClaimAnnotations(this.#connections.calls, this.volumes);
  }

  /** Removes the taint of that key from nodes on which this driver is registered. */
  startupTaint(key: string): StartupTaint {
    return new StartupTaint({ ...this.#options, api: this.#connections.lists, key });
  }

  /**
   * The election of the leader.
   *
   * @param namespace of the Lease; if it is empty, that of the configuration
   * @param name of this controller, which people see as the leader
   */
  election(
    namespace: string,
    name = "rds-csi",
    listeners: Pick<ElectionOptions, "leads" | "heldBy"> = {},
  ): Election {
    const { clock, random, driverName, report } = this.#options;
    const lease = {
      api: this.#connections.lease,
      clock,
      namespace: namespace || this.#namespace || "default",
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

  /** Closes the connections. */
  close(): void {
    this.#connections.close();
  }
}

/**
 * The cluster's id: the uid of its namespace `kube-system`, which is as old as the cluster.
 *
 * @throws {VolumeError} unavailable when the API server does not answer within a minute; whatever the signal's reason
 *   is
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
        const reason = messageOf(error);
        throw new VolumeError(
          "unavailable",
          `Cannot determine which cluster this is because its API server does not say: ${reason}; set --cluster-id, or let the ` +
            "service account get the namespace kube-system",
          { cause: error },
        );
      }
    }
  }
}
