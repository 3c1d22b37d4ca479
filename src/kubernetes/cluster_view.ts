import { VolumeError } from "../volume/errors.ts";
import { messageOf } from "../volume/error_messages.ts";
import type { ObjectName } from "../volume/model/name_plates.ts";
import { publishedCounter } from "../volume/model/parse_context.ts";
import type {
  ClusterAttachment,
  ClusterView,
  ClusterVolume,
  NodeAttachment,
  UnknownVolumeAttachment,
} from "../volume/ports/cluster_view.ts";
import type { CallContext, Clock } from "../volume/ports/system.ts";
import { SingleFlight } from "../async/single_flight.ts";
import { ApiError, type KubernetesApi } from "./api.ts";
import {
  attachmentsPath,
  csiNodesPath,
  listKept,
  parseAttachment,
  parseCsiNode,
  type RawAttachment,
  type RawCsiNode,
  type RawPersistentVolume,
  type RawSnapshotContent,
  snapshotContentsPath,
  type VolumeAttachment,
  volumesPath,
} from "./objects.ts";
import type { PersistentVolumes } from "./persistent_volumes.ts";

/** The source of a {@linkcode KubernetesClusterView}. */
interface Source {
  readonly api: KubernetesApi;
  readonly driverName: string;
  readonly clock: Clock;
}

/** An attachment with its volume's handle; undefined when that is unknown. */
type ReadAttachment = VolumeAttachment & { readonly volumeId: string | undefined };

/** Returns the cluster's use of this driver's volumes; every call lists it again. */
export class KubernetesClusterView implements ClusterView {
  readonly #source: Source;
  readonly #lists: KubernetesApi;
  readonly #volumes: PersistentVolumes;
  readonly #shared = new SingleFlight<readonly VolumeAttachment[]>();
  /** The list that is read now; it never rejects. */
  #reading: Promise<unknown> = Promise.resolve();

  /**
   * @param options the volumes of the last list, which `allAttachments()` reads again; and `lists`, which serves the
   *   lists of the loops
   */
  constructor(
    { api, driverName, clock, lists, volumes }: Source & {
      readonly lists: KubernetesApi;
      readonly volumes: PersistentVolumes;
    },
  ) {
    this.#source = { api, driverName, clock };
    this.#lists = lists;
    this.#volumes = volumes;
  }

  async volumes(context: CallContext): Promise<readonly ClusterVolume[]> {
    return await this.#ask(context, (signal) => this.#volumes.readAll(signal, this.#lists));
  }

  async othersHandles(context: CallContext): Promise<ReadonlySet<string>> {
    const handleOf = ({ spec: { csi } = {} }: RawPersistentVolume) =>
      csi?.driver === this.#source.driverName ? undefined : csi?.volumeHandle;
    return new Set(await this.#list(volumesPath, context, handleOf));
  }

  async snapshotHandles(context: CallContext): Promise<ReadonlySet<string> | undefined> {
    const isOwn = ({ spec }: RawSnapshotContent) => spec?.driver === this.#source.driverName;
    const read = (raw: RawSnapshotContent) => {
      const given = [raw.spec?.source?.snapshotHandle, raw.status?.snapshotHandle];
      const handles = given.filter((handle) => handle !== undefined);
      return { handles, isPending: handles.length === 0 && isOwn(raw) };
    };
    try {
      const all = await this.#list(snapshotContentsPath, context, read);
      // The handle of a snapshot that is still being made is unknown.
      if (all.some(({ isPending }) => isPending)) return undefined;
      return new Set(all.flatMap(({ handles }) => handles));
    } catch (error) {
      if (hasNoSnapshots(error)) return undefined;
      throw error;
    }
  }

  async names(context: CallContext): Promise<readonly ObjectName[]> {
    const volumes = this.#volumes.all.flatMap(({ volumeId: id, claim, className }) =>
      claim?.namespace === undefined ? [] : [{ id, namespace: claim.namespace, name: claim.name, className }]
    );
    return [...volumes, ...await this.#snapshotNames(context)];
  }

  async #snapshotNames(context: CallContext): Promise<readonly ObjectName[]> {
    const keep = ({ spec = {}, status }: RawSnapshotContent): ObjectName | undefined => {
      const { driver, source, volumeSnapshotRef: of, volumeSnapshotClassName: className = "" } = spec;
      const id = status?.snapshotHandle ?? source?.snapshotHandle;
      if (driver !== this.#source.driverName || !id || !of?.namespace || !of.name) return undefined;
      return { id, namespace: of.namespace, name: of.name, className };
    };
    try {
      return await this.#list(snapshotContentsPath, context, keep);
    } catch (error) {
      if (hasNoSnapshots(error)) return [];
      throw error;
    }
  }

  async attachments(context: CallContext): Promise<readonly NodeAttachment[]> {
    const nodeIds = new Map<string, string | undefined>();
    const attachments = await this.#read(context, async () => {
      const keep = (raw: RawCsiNode) => parseCsiNode(raw, this.#source.driverName);
      for (const { name, nodeId } of await this.#list(csiNodesPath, context, keep)) nodeIds.set(name, nodeId);
      return await this.volumes(context);
    });
    return attachments.flatMap(
      ({ volumeName, volumeId, nodeId, nodeName, attached, sinceSeconds, published }) => {
        if (volumeName === undefined || volumeId === undefined) return [];
        return [{
          volumeId,
          nodeId: nodeId ?? nodeIds.get(nodeName) ?? "",
          attached,
          sinceSeconds,
          epochCounter: publishedCounter(published),
        }];
      },
    );
  }

  async allAttachments(context: CallContext): Promise<readonly ClusterAttachment[]> {
    await this.assertAttachmentsReadable(context);
    const attachments = await this.#read(context, async () => {
      await this.#ask(context, (signal) => this.#volumes.list(signal));
      return this.#volumes.all;
    });
    return attachments.map(({ volumeId, nodeName, nodeId, attached, deleting, published }) => ({
      volumeId,
      nodeName,
      nodeId,
      attached,
      deleting,
      published,
    }));
  }

  async latestEpoch(volumeId: string, context: CallContext): Promise<number> {
    const attachments = await this.#nextAttachments(context);
    if (this.#volumes.known(volumeId) === undefined) {
      await this.#ask(context, (signal) => this.#volumes.list(signal));
    }
    // Several objects may name one volume.
    const names = new Set(
      this.#volumes.all.filter((one) => one.volumeId === volumeId).map(({ name }) => name),
    );
    const counters = attachments.filter((one) =>
      one.inlineHandle === volumeId || names.has(one.volumeName ?? "")
    )
      .map(({ published }) => publishedCounter(published));
    return Math.max(0, ...counters);
  }

  async objectsOf(volumeId: string, context: CallContext): Promise<readonly string[]> {
    const objects = await this.#ask(context, (signal) => this.#volumes.namesakes(volumeId, signal));
    return objects.map(({ name }) => name).toSorted();
  }

  volumeContext(volumeId: string): Readonly<Record<string, string>> | undefined {
    return this.#volumes.known(volumeId)?.attributes;
  }

  async unknownVolumeAttachments(context: CallContext): Promise<readonly UnknownVolumeAttachment[]> {
    const all = await this.#read(context, () => this.volumes(context));
    // An attachment of a volume that never had an object is not an orphan.
    const orphans = all.flatMap(({ name, volumeName, volumeId, nodeName, sinceSeconds }) =>
      volumeName && volumeId === undefined ? [{ name, volumeName, nodeName, sinceSeconds }] : []
    );
    if (orphans.length === 0) return [];
    // A volume may be deleted as soon as it is detached, which may have happened between the two lists.
    const left = new Set((await this.#attachments(context)).map(({ name }) => name));
    return orphans.filter(({ name }) => left.has(name));
  }

  async assertAttachmentsReadable(context: CallContext): Promise<void> {
    await this.#ask(context, (signal) => assertAttachRequired(this.#source, signal));
  }

  /**
   * Every attachment with its volume; the caller decides what one of an unknown volume means.
   *
   * @param readVolumes is called afterwards: an attachment never exists before its volume, nor before its node
   */
  async #read(
    context: CallContext,
    readVolumes: () => Promise<readonly ClusterVolume[]>,
  ): Promise<readonly ReadAttachment[]> {
    const attachments = await this.#attachments(context);
    const handles = new Map((await readVolumes()).map(({ name, volumeId }) => [name, volumeId]));
    return attachments.map((one) => ({
      ...one,
      volumeId: one.volumeName === undefined ? one.inlineHandle : handles.get(one.volumeName),
    }));
  }

  /**
   * One list for all calls that come while the one before is read: a new leader meets every volume for the first time. Calls
   * do not wait for the loops.
   */
  async #nextAttachments(context: CallContext): Promise<readonly VolumeAttachment[]> {
    return await this.#shared.runDuringCall(context.signal, async (signal, depart) => {
      await this.#reading;
      depart();
      const list = this.#attachments({ requestId: context.requestId, signal }, this.#source.api);
      this.#reading = list.catch(() => {});
      return await list;
    });
  }

  async #attachments(context: CallContext, api = this.#lists): Promise<readonly VolumeAttachment[]> {
    const keep = (raw: RawAttachment) => parseAttachment(raw, this.#source.driverName);
    return await this.#list(attachmentsPath, context, keep, api);
  }

  async #list<T, K>(
    path: string,
    context: CallContext,
    keep: (raw: T) => K | undefined,
    api = this.#lists,
  ): Promise<K[]> {
    return await this.#ask(context, (signal) => listKept(api, { path, signal }, keep));
  }

  async #ask<T>({ signal }: CallContext, request: (signal: AbortSignal) => Promise<T>): Promise<T> {
    try {
      return await request(signal);
    } catch (cause) {
      signal.throwIfAborted();
      if (VolumeError.is(cause)) throw cause;
      const reason = messageOf(cause);
      throw new VolumeError("unavailable", `Cannot ask the cluster what it uses because ${reason}`, {
        cause,
      });
    }
  }
}

/** Whether a list failed because the cluster has no snapshots, or the role may not read them. */
function hasNoSnapshots(error: unknown): boolean {
  const { cause } = error as Error;
  return ApiError.is(cause, 404) || ApiError.is(cause, 403);
}

/**
 * Throws unless a missing VolumeAttachment proves that a volume is unused. The first versions of the legacy driver came
 * with a CSIDriver object that disables VolumeAttachments; without such an object they are made.
 *
 * @throws {VolumeError} precondition when this driver's CSIDriver object disables them
 * @throws {ApiError} when that cannot be read
 */
async function assertAttachRequired({ api, driverName }: Source, signal: AbortSignal): Promise<void> {
  let driver: { readonly spec?: { readonly attachRequired?: boolean } };
  try {
    driver = await api.request({
      method: "GET",
      path: `/apis/storage.k8s.io/v1/csidrivers/${driverName}`,
      signal,
    });
  } catch (error) {
    if (ApiError.is(error, 404)) return;
    throw error;
  }
  if (driver.spec?.attachRequired !== false) return;
  throw new VolumeError(
    "precondition",
    `Cannot determine who has a volume because the CSIDriver object says attachRequired: false: csidriver=${driverName}; no ` +
      "VolumeAttachment is made then: end the pods that use volumes, and put this driver's object in its place",
  );
}
