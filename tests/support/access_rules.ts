/** The access of this driver's controller to a cluster, as rules of a ClusterRole or a Role. */
export interface AccessRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  /** The only objects of the rule; all of them when left out. */
  readonly resourceNames?: readonly string[];
}

/**
 * Exactly what the controller calls in the whole cluster, besides the sidecars' own needs. Tests run under these rules,
 * and the chart's are compared with them.
 */
export const clusterRules: readonly AccessRule[] = [
  // Its uid identifies the cluster when there is no --cluster-id.
  { apiGroups: [""], resources: ["namespaces"], verbs: ["get"], resourceNames: ["kube-system"] },
  // To show the holders of a volume to people.
  { apiGroups: [""], resources: ["persistentvolumes"], verbs: ["get", "list", "patch"] },
  // Whether the owner of a claim allows one more format.
  { apiGroups: [""], resources: ["persistentvolumeclaims"], verbs: ["get"] },
  // On claims of any namespace.
  { apiGroups: [""], resources: ["events"], verbs: ["get", "create", "patch"] },
  // Whether VolumeAttachments are made at all.
  { apiGroups: ["storage.k8s.io"], resources: ["csidrivers"], verbs: ["get"] },
  { apiGroups: ["storage.k8s.io"], resources: ["csinodes"], verbs: ["list"] },
  // A node's machine, and whether it has given up a volume.
  { apiGroups: [""], resources: ["nodes"], verbs: ["get"] },
  { apiGroups: ["storage.k8s.io"], resources: ["volumeattachments"], verbs: ["list"] },
  // Whether any object still names a snapshot.
  { apiGroups: ["snapshot.storage.k8s.io"], resources: ["volumesnapshotcontents"], verbs: ["list"] },
];

/** Additional rules for `--migration-pairs kubevirt`. */
export const kubevirtRules: readonly AccessRule[] = [
  { apiGroups: [""], resources: ["pods"], verbs: ["list"] },
];

/** Additional rules for `--startup-taint`. */
export const startupTaintRules: readonly AccessRule[] = [
  { apiGroups: [""], resources: ["nodes"], verbs: ["get", "list", "patch"] },
];

/** Rules for its own namespace alone: the Lease of the controller that leads, under the driver's default name. */
export const namespaceRules: readonly AccessRule[] = [
  { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"] },
  {
    apiGroups: ["coordination.k8s.io"],
    resources: ["leases"],
    verbs: ["get", "update"],
    resourceNames: ["rds.csi.srvlab.io-controller"],
  },
];
