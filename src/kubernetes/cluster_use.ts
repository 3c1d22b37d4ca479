import type {
  ClusterView,
  ClusterVolume,
  NodeAttachment,
  StrayAttachment,
} from "../volume/ports/cluster_view.ts";
import { parseEpoch } from "../volume/model/epoch.ts";
import { VolumeError } from "../volume/errors.ts";
import type { CallContext } from "../volume/ports/ports.ts";
import type { KubernetesApi, Metadata } from "./api.ts";
import { assertAttachRequired } from "./attach_required.ts";
import { listKept } from "./pages.ts";
import { type RawPersistentVolume, volumesPath } from "./persistent_volumes.ts";

/** A VolumeAttachment as the API has it. */
interface RawAttachment {
  readonly metadata?: Metadata;
  readonly spec?: {
    readonly attacher?: string;
    readonly nodeName?: string;
    readonly source?: { readonly persistentVolumeName?: string };
  };
  readonly status?: {
    readonly attached?: boolean;
    readonly attachmentMetadata?: Readonly<Record<string, string>>;
  };
}

/** A PersistentVolume with what only a takeover asks for. */
interface RawVolume extends RawPersistentVolume {
  readonly spec?: NonNullable<RawPersistentVolume["spec"]> & {
    readonly volumeMode?: string;
    readonly accessModes?: readonly string[];
    readonly csi?: NonNullable<RawPersistentVolume["spec"]>["csi"] & {
      readonly fsType?: string;
      readonly readOnly?: boolean;
    };
  };
}

interface RawCsiNode {
  readonly metadata?: Metadata;
  readonly spec?: { readonly drivers?: readonly { readonly name?: string; readonly nodeID?: string }[] };
}

/** Where the attacher notes the node id that it attaches by, so that it can detach when the node is gone. */
const nodeIdAnnotation = "csi.alpha.kubernetes.io/node-id";

/** What a cluster uses of this driver's volumes, listed anew for whoever asks. */
export class ClusterUse implements ClusterView {
  readonly #api: KubernetesApi;
  readonly #driverName: string;

  constructor({ api, driverName }: { readonly api: KubernetesApi; readonly driverName: string }) {
    this.#api = api;
    this.#driverName = driverName;
  }

  async volumes(context: CallContext): Promise<readonly ClusterVolume[]> {
    return await this.#list(volumesPath, context, (raw: RawVolume) => volumeOf(raw, this.#driverName));
  }

  async othersHandles(context: CallContext): Promise<ReadonlySet<string>> {
    const handleOf = ({ spec: { csi } = {} }: RawVolume) =>
      csi?.driver === this.#driverName ? undefined : csi?.volumeHandle;
    return new Set(await this.#list(volumesPath, context, handleOf));
  }

  async attachments(context: CallContext): Promise<readonly NodeAttachment[]> {
    const raw = await this.#ownAttachments(context, (one) => one);
    // Afterwards: an attachment never comes before its volume, nor before its node.
    const nodes = await this.#list("/apis/storage.k8s.io/v1/csinodes", context, (one: RawCsiNode) => {
      const id = one.spec?.drivers?.find(({ name }) => name === this.#driverName)?.nodeID;
      return id === undefined ? undefined : [one.metadata?.name ?? "", id] as const;
    });
    const nodeIds = new Map(nodes);
    const handles = new Map((await this.volumes(context)).map(({ name, volumeId }) => [name, volumeId]));
    return raw.flatMap((one) => attachmentOf(one, handles, nodeIds));
  }

  async strayAttachments(context: CallContext): Promise<readonly StrayAttachment[]> {
    const all = await this.#ownAttachments(context, strayOf);
    // Afterwards: an attachment never comes before its volume.
    const known = new Set((await this.volumes(context)).map(({ name }) => name));
    const strays = all.filter(({ volumeName }) => !known.has(volumeName));
    if (strays.length === 0) return [];
    // A volume may be deleted as soon as it is detached, which may have been between the two lists.
    const left = new Set(await this.#ownAttachments(context, ({ metadata }) => metadata?.name));
    return strays.filter(({ name }) => left.has(name));
  }

  async assertAttachmentsTell(context: CallContext): Promise<void> {
    await this.#ask(context, (signal) => assertAttachRequired(this.#api, this.#driverName, signal));
  }

  async #ownAttachments<K>(context: CallContext, keep: (raw: RawAttachment) => K | undefined): Promise<K[]> {
    const path = "/apis/storage.k8s.io/v1/volumeattachments";
    const isOwn = ({ spec }: RawAttachment) => spec?.attacher === this.#driverName;
    return await this.#list(path, context, (one: RawAttachment) => isOwn(one) ? keep(one) : undefined);
  }

  async #list<T, K>(path: string, context: CallContext, keep: (raw: T) => K | undefined): Promise<K[]> {
    return await this.#ask(context, (signal) => listKept(this.#api, { path, signal }, keep));
  }

  async #ask<T>({ signal }: CallContext, request: (signal: AbortSignal) => Promise<T>): Promise<T> {
    try {
      return await request(signal);
    } catch (cause) {
      signal.throwIfAborted();
      if (VolumeError.is(cause)) throw cause;
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new VolumeError("unavailable", `Cannot ask the cluster what it uses as ${reason}`, { cause });
    }
  }
}

function volumeOf({ metadata = {}, spec = {} }: RawVolume, driverName: string): ClusterVolume | undefined {
  const { csi } = spec;
  if (csi?.driver !== driverName || !csi.volumeHandle) return undefined;
  return {
    name: metadata.name ?? "",
    volumeId: csi.volumeHandle,
    access: spec.volumeMode === "Block" ? "block" : "mount",
    fsType: csi.fsType ?? "",
    accessModes: spec.accessModes ?? [],
    readOnly: csi.readOnly === true,
    attributes: csi.volumeAttributes ?? {},
  };
}

function attachmentOf(
  { metadata = {}, spec = {}, status = {} }: RawAttachment,
  handles: ReadonlyMap<string, string>,
  nodeIds: ReadonlyMap<string, string>,
): NodeAttachment[] {
  const volumeId = handles.get(spec.source?.persistentVolumeName ?? "");
  if (volumeId === undefined) return [];
  const nodeId = metadata.annotations?.[nodeIdAnnotation] ?? nodeIds.get(spec.nodeName ?? "") ?? "";
  const sinceSeconds = createdAt(metadata);
  const epochCounter = parseEpoch(status.attachmentMetadata?.["epoch"] ?? "")?.counter ?? 0;
  return [{ volumeId, nodeId, attached: status.attached === true, sinceSeconds, epochCounter }];
}

/** As a stray one, whether it is one or not; undefined for one of a volume that has no object anyway. */
function strayOf({ metadata = {}, spec = {} }: RawAttachment): StrayAttachment | undefined {
  const volumeName = spec.source?.persistentVolumeName;
  if (!volumeName) return undefined;
  const { name = "" } = metadata;
  return { name, volumeName, nodeName: spec.nodeName ?? "", sinceSeconds: createdAt(metadata) };
}

/** In seconds since the Unix epoch. */
function createdAt({ creationTimestamp = "" }: Metadata): number | undefined {
  const ms = Date.parse(creationTimestamp);
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1000);
}
