import type { ClusterVolume } from "../volume/ports/cluster_view.ts";
import { machineHash } from "../volume/model/host/machine.ts";
import { parsePublishedExport, type PublishedExport } from "../volume/model/parse_context.ts";
import type { ClusterNode } from "../volume/rules/detached_nodes.ts";
import { ApiError, type KubernetesApi } from "./api.ts";

/** Path of the collection of persistent volumes. */
export const volumesPath = "/api/v1/persistentvolumes";
/** Path of the collection of VolumeAttachments. */
export const attachmentsPath = "/apis/storage.k8s.io/v1/volumeattachments";
/** Path of the collection of Nodes. */
export const nodesPath = "/api/v1/nodes";
/** Path of the collection of VolumeSnapshotContents. */
export const snapshotContentsPath = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents";
/** Path of the collection of CSINodes. */
export const csiNodesPath = "/apis/storage.k8s.io/v1/csinodes";

/** Objects in a page: the load of a list of thousands on the server and this process at once. */
export const pageSize = 250;

/** How often a list is started again whose pages went out of date. */
const maxListAttempts = 3;

/** The prefix of this driver's annotations. */
export const annotationPrefix = "csi.rds.srvlab.io/";

/** The attacher's annotation with the node id of an attachment, so that it can detach when the node is gone. */
const nodeIdAnnotation = "csi.alpha.kubernetes.io/node-id";

/** The taint that an administrator puts on a Node whose machine is certainly off. */
const outOfServiceTaint = "node.kubernetes.io/out-of-service";

/** The metadata of every object, as far as it is used here. */
export interface Metadata {
  readonly name?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly ownerReferences?: readonly { readonly kind?: string; readonly uid?: string }[];
}

/** A persistent volume in the API's form. */
export interface RawPersistentVolume {
  readonly metadata?: Metadata;
  readonly spec?: {
    readonly volumeMode?: string;
    readonly storageClassName?: string;
    readonly accessModes?: readonly string[];
    readonly csi?: {
      readonly driver?: string;
      readonly volumeHandle?: string;
      readonly fsType?: string;
      readonly readOnly?: boolean;
      readonly volumeAttributes?: Readonly<Record<string, string>>;
    };
    readonly claimRef?: { readonly namespace?: string; readonly name?: string; readonly uid?: string };
  };
}

/** A VolumeSnapshotContent in the API's form. */
export interface RawSnapshotContent {
  readonly spec?: {
    readonly driver?: string;
    readonly source?: { readonly snapshotHandle?: string };
    readonly volumeSnapshotClassName?: string;
    readonly volumeSnapshotRef?: { readonly namespace?: string; readonly name?: string };
  };
  readonly status?: { readonly snapshotHandle?: string };
}

/** A VolumeAttachment in the API's form. */
export interface RawAttachment {
  readonly metadata?: Metadata;
  readonly spec?: {
    readonly attacher?: string;
    readonly nodeName?: string;
    readonly source?: {
      readonly persistentVolumeName?: string;
      readonly inlineVolumeSpec?: { readonly csi?: { readonly volumeHandle?: string } };
    };
  };
  readonly status?: {
    readonly attached?: boolean;
    readonly attachmentMetadata?: Readonly<Record<string, string>>;
  };
}

/** A CSINode in the API's form. */
export interface RawCsiNode {
  readonly metadata?: Metadata;
  readonly spec?: { readonly drivers?: readonly { readonly name?: string; readonly nodeID?: string }[] };
}

/** A Node in the API's form. */
export interface RawNode {
  readonly metadata?: Metadata;
  readonly spec?: { readonly taints?: readonly { readonly key?: string }[] };
  readonly status?: {
    readonly nodeInfo?: { readonly machineID?: string; readonly systemUUID?: string };
    readonly conditions?: readonly {
      readonly type?: string;
      readonly status?: string;
      readonly lastHeartbeatTime?: string;
    }[];
    readonly volumesInUse?: readonly string[];
  };
}

/** An object of an event. */
export interface ObjectRef {
  readonly namespace?: string;
  readonly name: string;
  readonly uid: string;
}

/** A persistent volume of this driver. */
export interface PersistentVolume extends ClusterVolume, ObjectRef {
  /** The claim that is bound to it. */
  readonly claim: ObjectRef | undefined;
  /** "" for none. */
  readonly className: string;
  /** The annotations that this driver writes. */
  readonly annotations: Readonly<Record<string, string>>;
  readonly resourceVersion: string;
}

/** A VolumeAttachment of this driver. */
export interface VolumeAttachment {
  readonly name: string;
  /** Name of the PersistentVolume; undefined for a volume without one. */
  readonly volumeName: string | undefined;
  /** Volume handle of a volume without a PersistentVolume. */
  readonly inlineHandle: string | undefined;
  readonly nodeName: string;
  /** The CSI node id, if the attacher has recorded it. */
  readonly nodeId: string | undefined;
  readonly attached: boolean;
  readonly deleting: boolean;
  /** Seconds since the Unix epoch; undefined when it is not known. */
  readonly sinceSeconds: number | undefined;
  /** The export that its publish context names: the other keys would take most of the memory of a list of thousands. */
  readonly published: PublishedExport;
}

/** The registration of this driver on a node. */
export interface CsiNode {
  readonly name: string;
  readonly nodeId: string | undefined;
  /** Uid of the Node that the registration belongs to. */
  readonly nodeUid: string | undefined;
}

/** Parses a persistent volume; undefined when it is another driver's. */
export function parseVolume(raw: RawPersistentVolume, driverName: string): PersistentVolume | undefined {
  const { metadata = {}, spec = {} } = raw;
  const { csi, claimRef, volumeMode, accessModes = [] } = spec;
  if (csi?.driver !== driverName || !csi.volumeHandle) return undefined;
  const claim = claimRef?.namespace && claimRef.name && claimRef.uid
    ? { namespace: claimRef.namespace, name: claimRef.name, uid: claimRef.uid }
    : undefined;
  const own = Object.entries(metadata.annotations ?? {}).filter(([key]) => key.startsWith(annotationPrefix));
  return {
    name: metadata.name ?? "",
    uid: metadata.uid ?? "",
    volumeId: csi.volumeHandle,
    access: volumeMode === "Block" ? "block" : "mount",
    fsType: csi.fsType ?? "",
    accessModes,
    readOnly: csi.readOnly === true,
    claim,
    className: spec.storageClassName ?? "",
    annotations: Object.fromEntries(own),
    attributes: csi.volumeAttributes ?? {},
    resourceVersion: metadata.resourceVersion ?? "",
  };
}

/** Parses a VolumeAttachment; undefined when it is another driver's. */
export function parseAttachment(
  { metadata = {}, spec = {}, status = {} }: RawAttachment,
  driverName: string,
): VolumeAttachment | undefined {
  if (spec.attacher !== driverName) return undefined;
  return {
    name: metadata.name ?? "",
    volumeName: spec.source?.persistentVolumeName,
    inlineHandle: spec.source?.inlineVolumeSpec?.csi?.volumeHandle,
    nodeName: spec.nodeName ?? "",
    nodeId: metadata.annotations?.[nodeIdAnnotation],
    attached: status.attached === true,
    deleting: metadata.deletionTimestamp !== undefined,
    sinceSeconds: secondsOf(metadata.creationTimestamp),
    published: parsePublishedExport(status.attachmentMetadata ?? {}),
  };
}

/** A time of the API in seconds since the Unix epoch; undefined when it is invalid. */
function secondsOf(time: string | undefined): number | undefined {
  const ms = Date.parse(time ?? "");
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1000);
}

/** Parses a Node. */
export function parseNode({ metadata, spec, status }: RawNode): ClusterNode {
  const { nodeInfo, conditions = [], volumesInUse = [] } = status ?? {};
  const ready = conditions.find(({ type }) => type === "Ready");
  return {
    createdSeconds: secondsOf(metadata?.creationTimestamp),
    machine: machineHash(nodeInfo?.machineID ?? "", nodeInfo?.systemUUID ?? ""),
    isReady: ready?.status === "True",
    heartbeatSeconds: secondsOf(ready?.lastHeartbeatTime),
    isOutOfService: spec?.taints?.some(({ key }) => key === outOfServiceTaint) === true,
    volumesInUse,
  };
}

/** Reads a Node; undefined when there is none of that name. @throws {ApiError} */
export async function findNode(
  api: KubernetesApi,
  name: string,
  signal: AbortSignal,
): Promise<ClusterNode | undefined> {
  try {
    return parseNode(await api.request<RawNode>({ method: "GET", path: `${nodesPath}/${name}`, signal }));
  } catch (error) {
    if (ApiError.is(error, 404)) return undefined;
    throw error;
  }
}

/** Parses a CSINode; undefined when this driver is not registered there. */
export function parseCsiNode({ metadata = {}, spec }: RawCsiNode, driverName: string): CsiNode | undefined {
  const driver = spec?.drivers?.find(({ name }) => name === driverName);
  if (driver === undefined) return undefined;
  const owner = metadata.ownerReferences?.find(({ kind }) => kind === "Node");
  return { name: metadata.name ?? "", nodeId: driver.nodeID, nodeUid: owner?.uid };
}

interface Page<T> {
  readonly kind?: string;
  readonly metadata?: { readonly continue?: string };
  readonly items?: readonly T[];
}

/** The request for a list. */
interface ListRequest {
  readonly path: string;
  readonly signal?: AbortSignal;
}

/**
 * Lists a collection page by page and keeps what `keep` makes of each object, so that at most one page of complete
 * objects is in memory. A list whose pages went out of date (410) is started again.
 *
 * @throws {ApiError} when a page cannot be read
 */
export async function listKept<T, K>(
  api: KubernetesApi,
  request: ListRequest,
  keep: (item: T) => K | undefined,
): Promise<K[]> {
  for (let attempt = 1;; attempt++) {
    try {
      return await listOnce(api, request, keep);
    } catch (error) {
      if (!ApiError.is(error, 410) || attempt === maxListAttempts) throw error;
    }
  }
}

async function listOnce<T, K>(
  api: KubernetesApi,
  { path, signal }: ListRequest,
  keep: (item: T) => K | undefined,
): Promise<K[]> {
  const kept: K[] = [];
  let next = "";
  do {
    const page = await api.request<Page<T>>({
      method: "GET",
      path,
      query: { limit: String(pageSize), ...(next === "" ? {} : { continue: next }) },
      ...(signal === undefined ? {} : { signal }),
    });
    // Any other answer, such as a proxy's, is not an empty list: volumes would look unused.
    if (!page.kind?.endsWith("List")) {
      throw new ApiError(
        0,
        `Cannot read the API server's answer because it is no list: GET ${path} kind=${page.kind}`,
      );
    }
    for (const item of page.items ?? []) {
      const one = keep(item);
      if (one !== undefined) kept.push(one);
    }
    next = page.metadata?.continue ?? "";
  } while (next !== "");
  return kept;
}
