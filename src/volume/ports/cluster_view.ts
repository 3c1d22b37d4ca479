import type { ObjectName } from "../model/name_plates.ts";
import type { PublishedExport } from "../model/parse_context.ts";
import type { CallContext } from "./system.ts";

/** The fields of a PersistentVolume of this driver that rules about volumes need. */
export interface ClusterVolume {
  /** Name of the object, for people. */
  readonly name: string;
  /** The volume handle. */
  readonly volumeId: string;
  readonly access: "block" | "mount";
  /** From the object; "" leaves it to the driver. */
  readonly fsType: string;
  /** In Kubernetes' words, such as `ReadWriteOnce`. */
  readonly accessModes: readonly string[];
  readonly readOnly: boolean;
  /** The volume context. */
  readonly attributes: Readonly<Record<string, string>>;
  /** The claim that is bound to it. */
  readonly claim?: { readonly namespace?: string; readonly name: string } | undefined;
}

/** A VolumeAttachment of this driver, whether its volume is known or not. */
export interface ClusterAttachment {
  /** Undefined when its volume is unknown. */
  readonly volumeId: string | undefined;
  readonly nodeName: string;
  /** The CSI node id, if the attacher has recorded it. */
  readonly nodeId?: string | undefined;
  readonly attached: boolean;
  /** Whether it is being deleted. */
  readonly deleting: boolean;
  /** The export that the publish context of its attach names. */
  readonly published: PublishedExport;
}

/** A VolumeAttachment of this driver whose volume is known. */
export interface NodeAttachment {
  readonly volumeId: string;
  /** The CSI node id, not the object's node name; "" when it is unknown. */
  readonly nodeId: string;
  /** Whether the attachment is complete: only then may a node use the volume. */
  readonly attached: boolean;
  /** Seconds since the Unix epoch; undefined when it is not known. */
  readonly sinceSeconds: number | undefined;
  /** Counter of the epoch in the publish context of its attach; 0 for none, as with the legacy driver. */
  readonly epochCounter: number;
}

/** A VolumeAttachment of this driver whose PersistentVolume is gone, so that its volume is unknown. */
export interface UnknownVolumeAttachment {
  /** Name of the object. */
  readonly name: string;
  /** Name of the missing PersistentVolume. */
  readonly volumeName: string;
  /** Name of the cluster's node. */
  readonly nodeName: string;
  /** Seconds since the Unix epoch; undefined when it is not known. */
  readonly sinceSeconds: number | undefined;
}

/**
 * The cluster's own list of the volumes it uses. It says nothing about the router's state, only what may still be
 * needed.
 */
export interface ClusterView {
  /**
   * Every PersistentVolume of this driver.
   *
   * @throws {VolumeError} unavailable when the list cannot be read completely
   */
  volumes(context: CallContext): Promise<readonly ClusterVolume[]>;
  /**
   * The volume handles of every other CSI driver's PersistentVolumes: this driver may run under another name too, on
   * the same router and for the same cluster.
   *
   * @throws {VolumeError} unavailable when the list cannot be read completely
   */
  othersHandles(context: CallContext): Promise<ReadonlySet<string>>;
  /**
   * Every snapshot that a VolumeSnapshotContent names, of any driver: this one may run under another name too.
   * Undefined when that is unknown: while this driver makes a snapshot, and where the cluster has no such objects, or
   * does not show them.
   *
   * @throws {VolumeError} unavailable when the list cannot be read completely
   */
  snapshotHandles(context: CallContext): Promise<ReadonlySet<string> | undefined>;
  /**
   * Every VolumeAttachment of this driver whose PersistentVolume exists.
   *
   * @throws {VolumeError} unavailable when the list cannot be read completely
   */
  attachments(context: CallContext): Promise<readonly NodeAttachment[]>;
  /**
   * Every VolumeAttachment of this driver, after the volumes' objects were read again: a caller that withdraws an
   * export must know the volume of every attachment.
   *
   * @throws {VolumeError} unavailable when not all of them can be read; precondition when attachments do not show which
   *   nodes have a volume
   */
  allAttachments(context: CallContext): Promise<readonly ClusterAttachment[]>;
  /**
   * The counter of the latest epoch in which a VolumeAttachment of a volume was attached; 0 for none.
   *
   * @throws {VolumeError} unavailable when the list cannot be read completely
   */
  latestEpoch(volumeId: string, context: CallContext): Promise<number>;
  /**
   * Names of the PersistentVolumes of this driver that name a volume, as of some seconds ago. While the API server does not
   * answer, the last read counts.
   *
   * @throws {VolumeError} unavailable when they could never be read
   */
  objectsOf(volumeId: string, context: CallContext): Promise<readonly string[]>;
  /**
   * What people call the volumes and snapshots of this driver: the claims of the PersistentVolumes of the last read, and the
   * VolumeSnapshots, which are listed now. Hints for people.
   *
   * @throws {VolumeError} unavailable when the snapshots cannot be listed
   */
  names(context: CallContext): Promise<readonly ObjectName[]>;
  /** The volume context of a volume, as of the last read; undefined when it is not known. */
  volumeContext(volumeId: string): Readonly<Record<string, string>> | undefined;
  /**
   * Every VolumeAttachment of this driver whose PersistentVolume is gone.
   *
   * @throws {VolumeError} unavailable when the list cannot be read completely
   */
  unknownVolumeAttachments(context: CallContext): Promise<readonly UnknownVolumeAttachment[]>;
  /**
   * Checks that the cluster makes a VolumeAttachment for every use of a volume, so that a volume without one is unused.
   *
   * @throws {VolumeError} precondition when it makes none for this driver; unavailable when that is unknown
   */
  assertAttachmentsReadable(context: CallContext): Promise<void>;
}

/** The part of the cluster that the reconcile loops need. */
export type ReconciledCluster = Pick<
  ClusterView,
  "allAttachments" | "names" | "othersHandles" | "volumeContext"
>;
