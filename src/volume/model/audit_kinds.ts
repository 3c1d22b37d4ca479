/** How severe each kind of finding is: a problem puts a volume at risk, a note is only information. */
export const auditKinds = {
  /** A disk of this cluster whose image is gone. */
  "disk-without-image": "problem",
  /** An image of this cluster that no disk uses. */
  "image-without-disk": "warning",
  /** A subvolume of this cluster without an image. */
  "leftover-subvolume": "warning",
  /** A copy that was never finished, or is still being made. */
  "unfinished-copy": "warning",
  "export-without-holder": "warning",
  /** Exported under another NQN than its nodes know. */
  "export-differs": "problem",
  /** The router mounts a disk of this cluster: nodes do not know of anything the router writes there. */
  "used-by-router": "problem",
  "record-damaged": "problem",
  /** The router's row of a disk cannot be read, so that whose it is, and how large, is not known; or that of a pool. */
  "disk-unreadable": "problem",
  /** No fault: a snapshot may outlive its volume. */
  "snapshot-without-source": "note",
  /** No VolumeSnapshotContent names it, for example because the router made it after its object was deleted. */
  "snapshot-without-object": "warning",
  "pv-without-disk": "problem",
  "disk-without-pv": "warning",
  "holder-without-attachment": "warning",
  "attachment-without-holder": "warning",
  /** Its id is the name of the missing PersistentVolume, because the volume itself is unknown. */
  "attachment-without-pv": "warning",
  "no-record": "note",
  "other-cluster": "note",
  "earlier-driver": "note",
  /** A disk without any data of the volume whose snapshot it is called. */
  "earlier-snapshot": "note",
  /** An image that the legacy driver, or this one after it, had a disk of. Nothing shows which cluster owned it. */
  "earlier-image": "note",
} as const;

/** A kind of finding. */
export type AuditKind = keyof typeof auditKinds;

/** Kinds that belong to other users of the router: they are counted, and named only on request. */
export const foreignKinds: ReadonlySet<AuditKind> = new Set([
  "no-record",
  "other-cluster",
  "earlier-driver",
  "earlier-snapshot",
  "earlier-image",
]);
