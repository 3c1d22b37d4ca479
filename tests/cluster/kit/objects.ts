import type { KubeObject } from "./api.ts";
import { driverName } from "./driver.ts";
import { imageName } from "./image.ts";

/** Collections of the API, as paths; those with a namespace are in `default`. */
export const paths = {
  claims: "/api/v1/namespaces/default/persistentvolumeclaims",
  volumes: "/api/v1/persistentvolumes",
  pods: "/api/v1/namespaces/default/pods",
  nodes: "/api/v1/nodes",
  statefulSets: "/apis/apps/v1/namespaces/default/statefulsets",
  events: "/api/v1/events",
  attachments: "/apis/storage.k8s.io/v1/volumeattachments",
  drivers: "/apis/storage.k8s.io/v1/csidrivers",
  nodeDrivers: "/apis/storage.k8s.io/v1/csinodes",
  classes: "/apis/storage.k8s.io/v1/storageclasses",
  capacities: "/apis/storage.k8s.io/v1/csistoragecapacities",
  snapshots: "/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots",
  snapshotContents: "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents",
} as const;

/** A PersistentVolumeClaim. */
export interface Claim extends KubeObject {
  readonly spec: { readonly volumeName?: string };
  readonly status: {
    readonly phase?: string;
    readonly capacity?: { readonly storage: string };
    readonly conditions?: readonly unknown[];
  };
}

/** The CSI driver's part of a PersistentVolume. */
export interface CsiSource {
  readonly volumeHandle: string;
  readonly volumeAttributes?: Readonly<Record<string, string>>;
}

/** A PersistentVolume. */
export interface Volume extends KubeObject {
  readonly spec: {
    readonly capacity: { readonly storage: string };
    readonly csi?: CsiSource;
  };
}

/** A Pod. */
export interface Pod extends KubeObject {
  readonly spec: { readonly nodeName?: string };
  readonly status: {
    readonly phase?: string;
    readonly containerStatuses?: readonly {
      readonly containerID?: string;
      readonly ready: boolean;
      readonly restartCount: number;
    }[];
  };
}

/** A Node. */
export interface Node extends KubeObject {
  readonly spec: { readonly taints?: readonly { readonly key: string }[] };
  readonly status: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/** A VolumeAttachment. */
export interface Attachment extends KubeObject {
  readonly spec: { readonly nodeName: string; readonly source: { readonly persistentVolumeName?: string } };
  readonly status?: {
    readonly attached: boolean;
    readonly attachmentMetadata?: Readonly<Record<string, string>>;
    readonly attachError?: { readonly message: string };
  };
}

/** A VolumeSnapshot. */
export interface Snapshot extends KubeObject {
  readonly status?: { readonly readyToUse?: boolean; readonly error?: { readonly message?: string } };
}

/** An Event. */
export interface Event extends KubeObject {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly involvedObject: { readonly kind: string; readonly name: string; readonly uid?: string };
}

/** A CSIStorageCapacity. */
export interface StorageCapacity extends KubeObject {
  readonly storageClassName: string;
  readonly nodeTopology?: { readonly matchLabels?: Readonly<Record<string, string>> };
  readonly capacity?: string;
  readonly maximumVolumeSize?: string;
}

/** A Lease. */
export interface Lease extends KubeObject {
  readonly spec: {
    readonly holderIdentity?: string;
    /** RFC 3339. */
    readonly renewTime?: string;
    readonly leaseDurationSeconds?: number;
  };
}

/** How a claim's volume appears in a pod. */
export type VolumeMode = "Filesystem" | "Block";

/** The source of a volume's content. */
export interface Source {
  readonly kind: "VolumeSnapshot" | "PersistentVolumeClaim";
  readonly name: string;
}

/** What a claim asks for. */
export interface Wish {
  readonly mode: VolumeMode;
  readonly mebibytes: number;
  readonly storageClass: string;
  readonly source?: Source;
  readonly volumeName?: string;
  /** Whether pods of several nodes may have it at once. @default {false} */
  readonly shared?: boolean;
}

/** A claim of so many MiB. */
export function claimOf(name: string, wish: Wish): object {
  const { mode, mebibytes, storageClass, source, volumeName, shared = false } = wish;
  const apiGroup = source?.kind === "VolumeSnapshot" ? { apiGroup: "snapshot.storage.k8s.io" } : {};
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name },
    spec: {
      storageClassName: storageClass,
      accessModes: [shared ? "ReadWriteMany" : "ReadWriteOnce"],
      volumeMode: mode,
      resources: { requests: { storage: `${mebibytes}Mi` } },
      ...(volumeName === undefined ? {} : { volumeName }),
      ...(source === undefined ? {} : { dataSource: { ...source, ...apiGroup } }),
    },
  };
}

/** The claims of a pod: file systems as `/NAME`, devices as `/dev/NAME`. */
export interface Uses {
  readonly filesystems?: readonly string[];
  readonly devices?: readonly string[];
}

/** A script for a pod that does nothing. */
export const idle = "sleep 1000000 & wait";

/**
 * A pod that runs a shell script. SIGTERM asks it to end, which its shell handles when no other program runs in it.
 * Without any grace period the API would consider it gone while it still runs.
 */
export function podOf(name: string, script: string, uses: Uses): object {
  const volumes = [...uses.filesystems ?? [], ...uses.devices ?? []].map((claim) => ({
    name: claim,
    persistentVolumeClaim: { claimName: claim },
  }));
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: { ...podSpec(script, uses), volumes },
  };
}

function podSpec(script: string, { filesystems = [], devices = [] }: Uses) {
  return {
    terminationGracePeriodSeconds: 5,
    hostNetwork: true,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    containers: [{
      name: "main",
      image: imageName,
      imagePullPolicy: "Never",
      command: ["/bin/sh", "-c", `trap 'exit 0' TERM\n${script}`],
      env: [{ name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
      volumeMounts: filesystems.map((claim) => ({ name: claim, mountPath: `/${claim}` })),
      volumeDevices: devices.map((claim) => ({ name: claim, devicePath: `/dev/${claim}` })),
    }],
  };
}

/**
 * So many pods NAME-0, NAME-1, … that run a script, each with volumes of its own: file systems `/CLAIM` and devices
 * `/dev/CLAIM`, whose claims are called CLAIM-NAME-0, CLAIM-NAME-1, …
 */
export function statefulSetOf(
  name: string,
  replicas: number,
  script: string,
  claims: Readonly<Record<string, Wish>>,
): object {
  const of = (mode: VolumeMode) => Object.keys(claims).filter((claim) => claims[claim]?.mode === mode);
  const uses = { filesystems: of("Filesystem"), devices: of("Block") };
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name },
    spec: {
      replicas,
      podManagementPolicy: "Parallel",
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: podSpec(script, uses) },
      volumeClaimTemplates: Object.entries(claims).map(([claim, wish]) => claimOf(claim, wish)),
    },
  };
}

/** A VolumeSnapshot of a claim's volume. */
export function snapshotOf(name: string, claim: string): object {
  return {
    apiVersion: "snapshot.storage.k8s.io/v1",
    kind: "VolumeSnapshot",
    metadata: { name },
    spec: { volumeSnapshotClassName: "rds", source: { persistentVolumeClaimName: claim } },
  };
}

/** A VolumeAttachment of a PersistentVolume to a node. */
export function attachmentOf(name: string, volume: string, node: string): object {
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "VolumeAttachment",
    metadata: { name },
    spec: { attacher: driverName, nodeName: node, source: { persistentVolumeName: volume } },
  };
}

/** A StorageClass of ext4 whose volumes are made for the first pod that uses them. */
export function lateClassOf(name: string): object {
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name },
    provisioner: driverName,
    volumeBindingMode: "WaitForFirstConsumer",
    parameters: { "csi.storage.k8s.io/fstype": "ext4" },
  };
}

/** A node without a kubelet, with the objects that a kubelet would have made for its driver, by collection. */
export function fakeNode(name: string): readonly (readonly [path: string, object: object])[] {
  const spec = { drivers: [{ name: driverName, nodeID: name, topologyKeys: null }] };
  return [
    [paths.nodes, { apiVersion: "v1", kind: "Node", metadata: { name } }],
    [paths.nodeDrivers, { apiVersion: "storage.k8s.io/v1", kind: "CSINode", metadata: { name }, spec }],
  ];
}
