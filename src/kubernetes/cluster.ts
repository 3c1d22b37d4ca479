import type { Clock, NodeDirectory, Random } from "../volume/ports/ports.ts";
import { type ClusterAddress, KubernetesClient } from "./client.ts";
import { ClusterUse } from "./cluster_use.ts";
import { readClusterUid } from "./cluster_uid.ts";
import { CsiNodes } from "./csi_nodes.ts";
import { Election, type ElectionOptions } from "./election.ts";
import { ClusterLease } from "./lease.ts";
import { VolumeAttachments } from "./volume_attachments.ts";
import { EventRecorder } from "./event_recorder.ts";
import { KubevirtPairs } from "./kubevirt_pairs.ts";
import { StartupTaint } from "./startup_taint.ts";
import { PersistentVolumes } from "./persistent_volumes.ts";
import { AnnotationProjection, type ProjectionOptions } from "./volume_projection.ts";

/** Options of {@linkcode Cluster}. */
export interface ClusterOptions {
  readonly address: ClusterAddress;
  readonly driverName: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Hears what an operator should know. */
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Hears what happens as it should. */
  readonly tell: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** A cluster, with everything in it that this driver reads and writes. Nothing is asked before somebody needs it. */
export class Cluster {
  readonly #options: ClusterOptions;
  readonly #client: KubernetesClient;
  readonly volumes: PersistentVolumes;
  /** What the cluster uses of this driver's volumes. */
  readonly use: ClusterUse;

  /** @throws {VolumeError} invalid when it cannot be told where the cluster is */
  constructor(options: ClusterOptions) {
    this.#options = options;
    this.#client = KubernetesClient.open(options.address, options.clock);
    this.volumes = new PersistentVolumes({ ...options, api: this.#client });
    this.use = new ClusterUse({ ...options, api: this.#client });
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
  kubevirtPairs(): KubevirtPairs {
    return new KubevirtPairs({ api: this.#client, volumes: this.volumes });
  }

  /** What takes the taint of that key off nodes on which this driver has registered itself. */
  startupTaint(key: string): StartupTaint {
    return new StartupTaint({ ...this.#options, api: this.#client, key });
  }

  /** The attachments. */
  objects(): VolumeAttachments {
    return new VolumeAttachments({ ...this.#options, api: this.#client, volumes: this.volumes });
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
    const { clock, random, driverName, tell } = this.#options;
    const lease = {
      api: this.#client,
      clock,
      namespace: namespace || this.#client.namespace || "default",
      name: `${driverName.toLowerCase()}-controller`,
    };
    const nonce = Array.from(random.bytes(8), (byte) => byte.toString(16).padStart(2, "0")).join("");
    return new Election({
      store: new ClusterLease(lease),
      identity: `${name}-${nonce}`,
      clock,
      random,
      tell,
      ...listeners,
    });
  }

  /** Ends the connections. */
  close(): void {
    this.#client.close();
  }
}
