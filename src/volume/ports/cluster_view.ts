import type { CallContext } from "./system.ts";

/** A PersistentVolume of this driver, as far as rules about volumes need it. */
export interface ClusterVolume {
  /** Name of the object, for people. */
  readonly name: string;
  /** The volume handle. */
  readonly volumeId: string;
  readonly access: "block" | "mount";
  /** As the object says; "" leaves it to the driver. */
  readonly fsType: string;
  /** As Kubernetes words them, such as `ReadWriteOnce`. */
  readonly accessModes: readonly string[];
  readonly readOnly: boolean;
  /** The volume context. */
  readonly attributes: Readonly<Record<string, string>>;
}

/** A VolumeAttachment of this driver, whether its volume is known or not. */
export interface ClusterAttachment {
  /** Undefined when it cannot be told which volume it is about. */
  readonly volumeId: string | undefined;
  readonly nodeName: string;
  /** The CSI node id, where the attacher has noted it. */
  readonly nodeId?: string | undefined;
  readonly attached: boolean;
  /** Whether it is going away. */
  readonly deleting: boolean;
  /** Of what was answered when it was attached, the publish context: `epoch`, `nqn` and `nvmePort`. */
  readonly publishContext: Readonly<Record<string, string>>;
}

/** A VolumeAttachment of this driver whose volume is known. */
export interface NodeAttachment {
  readonly volumeId: string;
  /** The CSI node id, not the object's node name; "" when it cannot be told. */
  readonly nodeId: string;
  /** Whether the attachment is done: only then may a node have the volume. */
  readonly attached: boolean;
  /** Seconds since the Unix epoch; undefined when it is not known. */
  readonly sinceSeconds: number | undefined;
  /** Counter of the epoch that was answered when it was attached; 0 for none, as by the legacy driver. */
  readonly epochCounter: number;
}

/** A VolumeAttachment to this driver whose PersistentVolume is gone: which volume it was about cannot be told. */
export interface UnknownVolumeAttachment {
  /** Name of the object. */
  readonly name: string;
  /** Name of the PersistentVolume that is gone. */
  readonly volumeName: string;
  /** Name of the cluster's node. */
  readonly nodeName: string;
  /** Seconds since the Unix epoch; undefined when it is not known. */
  readonly sinceSeconds: number | undefined;
}

/** The cluster's own list of what it uses. It decides nothing about the router; it says what somebody may still need. */
export interface ClusterView {
  /**
   * Every PersistentVolume of this driver.
   *
   * @throws {VolumeError} unavailable when the list cannot be read whole
   */
  volumes(context: CallContext): Promise<readonly ClusterVolume[]>;
  /**
   * The volume handles of every other CSI driver's PersistentVolumes: this driver may run under another name too, on the same
   * router and for the same cluster.
   *
   * @throws {VolumeError} unavailable when the list cannot be read whole
   */
  othersHandles(context: CallContext): Promise<ReadonlySet<string>>;
  /**
   * Every snapshot that a VolumeSnapshotContent names, of any driver: this one may run under another name too. Undefined
   * when that cannot be told: while this driver makes one, and where the cluster knows no such objects, or does not show them.
   *
   * @throws {VolumeError} unavailable when the list cannot be read whole
   */
  snapshotHandles(context: CallContext): Promise<ReadonlySet<string> | undefined>;
  /**
   * Every VolumeAttachment of this driver whose PersistentVolume is there.
   *
   * @throws {VolumeError} unavailable when the list cannot be read whole
   */
  attachments(context: CallContext): Promise<readonly NodeAttachment[]>;
  /**
   * Every VolumeAttachment of this driver, with the volumes' objects read anew: who withdraws an export must not take one
   * whose volume is unknown for none.
   *
   * @throws {VolumeError} unavailable when not all of them can be read; precondition when they do not tell who has a volume
   */
  allAttachments(context: CallContext): Promise<readonly ClusterAttachment[]>;
  /** The volume context of a volume, as of the last reading; undefined when it is not known. */
  volumeContext(volumeId: string): Readonly<Record<string, string>> | undefined;
  /**
   * Every VolumeAttachment of this driver whose PersistentVolume is gone.
   *
   * @throws {VolumeError} unavailable when the list cannot be read whole
   */
  unknownVolumeAttachments(context: CallContext): Promise<readonly UnknownVolumeAttachment[]>;
  /**
   * Finds that whoever has a volume has a VolumeAttachment, so that without one nobody has it.
   *
   * @throws {VolumeError} precondition when this driver's are not made; unavailable when it cannot be told
   */
  assertAttachmentsReadable(context: CallContext): Promise<void>;
}

/** What the loops need to know of the cluster. */
export type ReconciledCluster = Pick<ClusterView, "allAttachments" | "volumeContext">;
