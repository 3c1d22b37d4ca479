/** What this driver's controller may do in a cluster, as the rules of a ClusterRole or a Role have it. */
export interface AccessRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  /** The only objects that it is about; all of them when left out. */
  readonly resourceNames?: readonly string[];
}

/**
 * Exactly what the controller calls in the whole cluster, beside what the sidecars need for themselves. Tests run under
 * these rules, and the chart's are compared with them.
 */
export const clusterRules: readonly AccessRule[] = [
  // Its uid tells this cluster's volumes from another's, where no --cluster-id does.
  { apiGroups: [""], resources: ["namespaces"], verbs: ["get"], resourceNames: ["kube-system"] },
  // Who holds a volume, for people to read.
  { apiGroups: [""], resources: ["persistentvolumes"], verbs: ["get", "list", "patch"] },
  // Whether the owner of a claim allows one more format.
  { apiGroups: [""], resources: ["persistentvolumeclaims"], verbs: ["get"] },
  // On claims of any namespace.
  { apiGroups: [""], resources: ["events"], verbs: ["get", "create", "patch"] },
  // Whether VolumeAttachments are made at all.
  { apiGroups: ["storage.k8s.io"], resources: ["csidrivers"], verbs: ["get"] },
  { apiGroups: ["storage.k8s.io"], resources: ["csinodes"], verbs: ["list"] },
  // Which machine a node is, and whether it has given a volume up.
  { apiGroups: [""], resources: ["nodes"], verbs: ["get"] },
  { apiGroups: ["storage.k8s.io"], resources: ["volumeattachments"], verbs: ["list"] },
  // Whether anything still names a snapshot.
  { apiGroups: ["snapshot.storage.k8s.io"], resources: ["volumesnapshotcontents"], verbs: ["list"] },
];

/** What is needed beside that for `--migration-pairs kubevirt`. */
export const kubevirtRules: readonly AccessRule[] = [
  { apiGroups: [""], resources: ["pods"], verbs: ["list"] },
];

/** What is needed beside that for `--startup-taint`. */
export const startupTaintRules: readonly AccessRule[] = [
  { apiGroups: [""], resources: ["nodes"], verbs: ["get", "list", "patch"] },
];

/** What it calls in its own namespace alone: the Lease of the loops. */
export const namespaceRules: readonly AccessRule[] = [
  { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get", "create", "update"] },
];
