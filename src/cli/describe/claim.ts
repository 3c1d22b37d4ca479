import { ApiError, type KubernetesApi } from "../../kubernetes/api.ts";
import {
  attachmentsPath,
  csiNodesPath,
  findNode,
  listKept,
  type RawAttachment,
  type RawCsiNode,
  type RawPersistentVolume,
  volumesPath,
} from "../../kubernetes/objects.ts";
import { parseDirectoryHandle } from "../../volume/model/directory/handle.ts";
import { advice, type Finding, fine, problem, warning } from "../../volume/model/finding.ts";

/** A claim to follow. */
export interface FollowedClaim {
  readonly namespace: string;
  readonly name: string;
  /** Name of the expected driver of its volume. */
  readonly driverName: string;
}

/** How far a claim was followed: the last finding is the problem at which it hangs. */
export interface ClaimTrace {
  readonly findings: readonly Finding[];
  /** Handle of its volume; undefined while it has none of this driver. */
  readonly handle?: string;
  /** Nodes that the volume is attached to. */
  readonly nodes: readonly string[];
}

/**
 * The pods that use a claim; undefined where this process may not list pods, as the controller's service account.
 *
 * @throws {ApiError} when the API server does not answer
 */
export async function podsOf(
  api: KubernetesApi,
  { namespace, name }: Pick<FollowedClaim, "namespace" | "name">,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  // The claim of an ephemeral volume has the names of its pod and of the volume.
  const uses = ({ metadata, spec }: Pod) =>
    spec?.volumes?.some((one) =>
      one.persistentVolumeClaim?.claimName === name ||
      one.ephemeral !== undefined && name === `${metadata?.name}-${one.name}`
    );
  try {
    const path = `/api/v1/namespaces/${namespace}/pods`;
    const kept = await listKept<Pod, string>(
      api,
      { path, signal },
      (pod) => uses(pod) ? pod.metadata?.name : undefined,
    );
    return kept.toSorted();
  } catch (error) {
    if (ApiError.is(error, 403)) return undefined;
    throw error;
  }
}

/** Older events may be about something that is over, in milliseconds. */
const recentMs = 10 * 60_000;

interface Claim {
  readonly spec?: { readonly volumeName?: string; readonly storageClassName?: string };
}

type Attachment = RawAttachment & {
  readonly status?: { readonly attachError?: { readonly message?: string } };
};

interface Pod {
  readonly metadata?: { readonly name?: string };
  readonly spec?: {
    readonly volumes?: readonly {
      readonly name?: string;
      readonly persistentVolumeClaim?: { readonly claimName?: string };
      readonly ephemeral?: unknown;
    }[];
  };
}

interface ClusterEvent {
  readonly type?: string;
  readonly message?: string;
  readonly lastTimestamp?: string | null;
  readonly eventTime?: string | null;
  readonly involvedObject?: { readonly kind?: string; readonly name?: string };
}

/**
 * Follows a claim through the cluster: claim, PersistentVolume, attachments, its nodes' reports. Ends where it hangs.
 *
 * @throws {ApiError} when the API server does not answer, or does not let this process read
 */
export async function followClaim(
  api: KubernetesApi,
  followed: FollowedClaim,
  nowMs: number,
  signal: AbortSignal,
): Promise<ClaimTrace> {
  const get = <T>(path: string) => getIfThere<T>(api, path, signal);
  const { namespace, name, driverName } = followed;
  const claim = await get<Claim>(`/api/v1/namespaces/${namespace}/persistentvolumeclaims/${name}`);
  if (claim === undefined) return hangs([], problem("claim", `there is no claim ${name} in ${namespace}`));
  const events = await recentWarnings(api, namespace, nowMs, signal);
  const volumeName = claim.spec?.volumeName;
  if (!volumeName) {
    const about = events.filter(({ involvedObject }) =>
      involvedObject?.kind === "PersistentVolumeClaim" && involvedObject.name === name
    );
    return hangs([], await whyPending(claim, about, driverName, get));
  }
  const bound = fine("claim", `is bound to ${volumeName}`);
  const volume = await get<RawPersistentVolume>(`${volumesPath}/${volumeName}`);
  const { driver, volumeHandle: handle } = volume?.spec?.csi ?? {};
  if (volume === undefined || handle === undefined) {
    return hangs([bound], problem("volume", `${volumeName} is gone, or belongs to no CSI driver`));
  }
  const directory = parseDirectoryHandle(handle);
  if (directory !== undefined) {
    const found = fine("volume", `${volumeName} is the shared directory ${directory.path}`);
    return followPods([bound, found], volumeName, events);
  }
  if (driver !== driverName) {
    return hangs([bound], problem("volume", `${volumeName} belongs to the driver ${driver}`));
  }
  const findings = [bound, fine("volume", `${volumeName} is the volume ${handle}`)];
  const attached = await attachments(api, volumeName, driverName, signal);
  const isReady = async (node: string) => (await findNode(api, node, signal))?.isReady !== false;
  const before = { findings, driverName, volumeName, events };
  return { ...await followAttachments(attached, before, get, isReady), handle };
}

/**
 * The claim that a PersistentVolume is bound to; undefined when there is no such volume, or it has no claim.
 *
 * @throws {ApiError} when the API server does not answer, or does not let this process read
 */
export async function claimOfVolume(
  api: KubernetesApi,
  volumeName: string,
  signal: AbortSignal,
): Promise<Pick<FollowedClaim, "namespace" | "name"> | undefined> {
  const volume = await getIfThere<RawPersistentVolume>(api, `${volumesPath}/${volumeName}`, signal);
  const { namespace, name } = volume?.spec?.claimRef ?? {};
  return namespace && name ? { namespace, name } : undefined;
}

type Get = <T>(path: string) => Promise<T | undefined>;

function hangs(before: readonly Finding[], at: Finding, nodes: readonly string[] = []): ClaimTrace {
  return { findings: [...before, at], nodes };
}

async function whyPending(
  { spec }: Claim,
  about: readonly ClusterEvent[],
  driverName: string,
  get: Get,
): Promise<Finding> {
  const className = spec?.storageClassName;
  if (!className) {
    return problem("claim", "has no volume and no StorageClass", advice("name one in the claim"));
  }
  const path = `/apis/storage.k8s.io/v1/storageclasses/${className}`;
  const found = await get<{ readonly provisioner?: string; readonly volumeBindingMode?: string }>(path);
  if (found === undefined) return problem("claim", `its StorageClass ${className} does not exist`);
  if (found.provisioner !== driverName) {
    return problem(
      "claim",
      `its StorageClass ${className} belongs to ${found.provisioner}, which has to make the volume`,
    );
  }
  const last = about.at(-1);
  if (last !== undefined) return problem("claim", `has no volume: ${last.message}`);
  if (found.volumeBindingMode === "WaitForFirstConsumer") {
    return warning("claim", "has no volume yet: its StorageClass waits for a pod that uses it");
  }
  return problem(
    "claim",
    "has no volume, and no event gives a reason",
    advice("check that a controller leads: kubectl -n rds-csi get pods,leases"),
  );
}

async function followAttachments(
  attached: readonly Attachment[],
  { findings, driverName, volumeName, events }: {
    readonly findings: readonly Finding[];
    readonly driverName: string;
    readonly volumeName: string;
    readonly events: readonly ClusterEvent[];
  },
  get: Get,
  isReady: (node: string) => Promise<boolean>,
): Promise<ClaimTrace> {
  if (attached.length === 0) {
    return hangs(
      findings,
      warning("attachment", "no VolumeAttachment exists: no pod that uses the claim is scheduled to a node"),
    );
  }
  const seen = [...findings];
  const nodes: string[] = [];
  for (const { spec, status } of attached) {
    const node = spec?.nodeName ?? "";
    const registered = await get<RawCsiNode>(`${csiNodesPath}/${node}`);
    if (!registered?.spec?.drivers?.some((one) => one.name === driverName)) {
      const fix = advice(
        "read the log of the driver's pod on that node: often the host has not loaded nvme_tcp",
      );
      return hangs(seen, problem("attachment", `node ${node} has not registered the driver`, fix), nodes);
    }
    if (status?.attached !== true) {
      const why = status?.attachError?.message ?? "the attacher has not tried yet";
      return hangs(seen, problem("attachment", `is not attached to ${node}: ${why}`), nodes);
    }
    if (!await isReady(node)) {
      return hangs(
        seen,
        problem("attachment", `is attached to ${node}, which is not ready`, lostNode(node)),
        nodes,
      );
    }
    seen.push(fine("attachment", `is attached to ${node}`));
    nodes.push(node);
  }
  return followPods(seen, volumeName, events, nodes);
}

/** Kubernetes leaves the pods of a silent node where they are: deleted, they do not end, because it may be their writer. */
function lostNode(node: string) {
  return advice(
    `bring it back; or, once its machine is off for certain, declare it lost: kubectl taint node ${node} ` +
      "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
  );
}

/** The last step: what pods complain of. A shared directory has no attachments and no volume on the router. */
function followPods(
  seen: readonly Finding[],
  volumeName: string,
  events: readonly ClusterEvent[],
  nodes: readonly string[] = [],
): ClaimTrace {
  const mount = events.filter(({ message, involvedObject }) =>
    involvedObject?.kind === "Pod" && message?.includes(volumeName)
  ).at(-1);
  if (mount === undefined) {
    return { findings: [...seen, fine("node", "no recent warning of a pod")], nodes };
  }
  return hangs(seen, problem("node", `pod ${mount.involvedObject?.name}: ${mount.message}`), nodes);
}

async function attachments(
  api: KubernetesApi,
  volumeName: string,
  driverName: string,
  signal: AbortSignal,
): Promise<readonly Attachment[]> {
  const isIts = ({ spec }: Attachment) =>
    spec?.attacher === driverName && spec.source?.persistentVolumeName === volumeName;
  return await listKept<Attachment, Attachment>(
    api,
    { path: attachmentsPath, signal },
    (one) => isIts(one) ? one : undefined,
  );
}

/** Oldest first. */
async function recentWarnings(
  api: KubernetesApi,
  namespace: string,
  nowMs: number,
  signal: AbortSignal,
): Promise<readonly ClusterEvent[]> {
  const atMs = (event: ClusterEvent) => Date.parse(event.lastTimestamp ?? event.eventTime ?? "") || 0;
  const path = `/api/v1/namespaces/${namespace}/events`;
  const events = await listKept<ClusterEvent, ClusterEvent>(
    api,
    { path, signal },
    (event) => event.type === "Warning" && nowMs - atMs(event) < recentMs ? event : undefined,
  );
  return events.toSorted((a, b) => atMs(a) - atMs(b));
}

async function getIfThere<T>(api: KubernetesApi, path: string, signal: AbortSignal): Promise<T | undefined> {
  try {
    return await api.request<T>({ method: "GET", path, signal });
  } catch (error) {
    if (ApiError.is(error, 404)) return undefined;
    throw error;
  }
}
