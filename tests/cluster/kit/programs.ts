/** The programs of the cluster, and what Go calls each of them: the last part of its package's path. */
export const programs: Readonly<Record<string, string>> = {
  "etcd": "server",
  "kube-apiserver": "kube-apiserver",
  "kube-controller-manager": "kube-controller-manager",
  "kube-scheduler": "kube-scheduler",
  "kubectl": "kubectl",
  "kubelet": "kubelet",
  "csi-provisioner": "csi-provisioner",
  "csi-attacher": "csi-attacher",
  "csi-resizer": "csi-resizer",
  "csi-snapshotter": "csi-snapshotter",
  "snapshot-controller": "snapshot-controller",
};
