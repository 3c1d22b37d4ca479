/** How much each kind of finding matters: with a problem a volume is at risk, a note is no more than a fact. */
export const auditKinds = {
  /** A disk of this cluster whose image is gone. */
  "disk-without-image": "problem",
  /** An image of this cluster that no disk uses. */
  "image-without-disk": "warning",
  /** A subvolume of this cluster in which no image is. */
  "leftover-subvolume": "warning",
  /** A copy that was never finished, or is still being made. */
  "unfinished-copy": "warning",
  "export-without-holder": "warning",
  /** Exported under another NQN than its nodes know. */
  "export-differs": "problem",
  /** The router mounts a disk of this cluster's: whatever it writes there, no node knows of. */
  "used-by-router": "problem",
  "record-damaged": "problem",
  /** No fault: a snapshot may outlive its volume. */
  "snapshot-without-source": "note",
  /** No VolumeSnapshotContent names it, as when the router has made it after it was deleted. */
  "snapshot-without-object": "warning",
  "pv-without-disk": "problem",
  "disk-without-pv": "warning",
  "holder-without-attachment": "warning",
  "attachment-without-holder": "warning",
  /** It names the PersistentVolume that is gone, as which volume that was cannot be told. */
  "attachment-without-pv": "warning",
  "no-record": "note",
  "other-cluster": "note",
  "earlier-driver": "note",
  /** A disk without any data of the volume that it is called a snapshot of. */
  "earlier-snapshot": "note",
  /** An image that the legacy driver, or this one after it, had a disk of: of whose cluster nothing tells. */
  "earlier-image": "note",
} as const;

/** A kind of finding. */
export type AuditKind = keyof typeof auditKinds;

/** Kinds that are somebody else's: they are counted, and named only when asked for. */
export const foreignKinds: ReadonlySet<AuditKind> = new Set([
  "no-record",
  "other-cluster",
  "earlier-driver",
  "earlier-snapshot",
  "earlier-image",
]);
