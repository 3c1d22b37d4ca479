import { VolumeError } from "../volume/errors.ts";
import { parseEpoch } from "../volume/model/epoch.ts";
import type { ClusterAttachment, ClusterObjects } from "../volume/ports/cluster_ports.ts";
import type {
  ClusterView,
  ClusterVolume,
  NodeAttachment,
  UnknownVolumeAttachment,
} from "../volume/ports/cluster_view.ts";
import type { CallContext } from "../volume/ports/system.ts";
import { ApiError, type KubernetesApi } from "./api.ts";
import {
  attachmentsPath,
  csiNodesPath,
  listKept,
  parseAttachment,
  parseCsiNode,
  parseVolume,
  type RawAttachment,
  type RawCsiNode,
  type RawPersistentVolume,
  type RawSnapshotContent,
  snapshotContentsPath,
  type VolumeAttachment,
  volumesPath,
} from "./objects.ts";
import type { PersistentVolumes } from "./persistent_volumes.ts";

/** What both views read. */
interface Source {
  readonly api: KubernetesApi;
  readonly driverName: string;
}

/** What a cluster uses of this driver's volumes, listed anew for whoever asks. */
export class KubernetesClusterView implements ClusterView {
  readonly #source: Source;

  constructor({ api, driverName }: Source) {
    this.#source = { api, driverName };
  }

  async volumes(context: CallContext): Promise<readonly ClusterVolume[]> {
    const { driverName } = this.#source;
    return await this.#list(volumesPath, context, (raw: RawPersistentVolume) => parseVolume(raw, driverName));
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
      // Which snapshot is being made for one that has no handle yet cannot be told.
      if (all.some(({ isPending }) => isPending)) return undefined;
      return new Set(all.flatMap(({ handles }) => handles));
    } catch (error) {
      const { cause } = error as Error;
      // A cluster without snapshots, or a role of an earlier version.
      if (ApiError.is(cause, 404) || ApiError.is(cause, 403)) return undefined;
      throw error;
    }
  }

  async attachments(context: CallContext): Promise<readonly NodeAttachment[]> {
    const attachments = await this.#attachments(context);
    // Afterwards: an attachment never comes before its volume, nor before its node.
    const nodes = await this.#list(
      csiNodesPath,
      context,
      (raw: RawCsiNode) => parseCsiNode(raw, this.#source.driverName),
    );
    const nodeIds = new Map(nodes.map(({ name, nodeId }) => [name, nodeId]));
    const handles = new Map((await this.volumes(context)).map(({ name, volumeId }) => [name, volumeId]));
    return attachments.flatMap(
      ({ volumeName = "", nodeId, nodeName, attached, sinceSeconds, publishContext }) => {
        const volumeId = handles.get(volumeName);
        if (volumeId === undefined) return [];
        const epochCounter = parseEpoch(publishContext["epoch"] ?? "")?.counter ?? 0;
        return [{
          volumeId,
          nodeId: nodeId ?? nodeIds.get(nodeName) ?? "",
          attached,
          sinceSeconds,
          epochCounter,
        }];
      },
    );
  }

  async unknownVolumeAttachments(context: CallContext): Promise<readonly UnknownVolumeAttachment[]> {
    const all = await this.#attachments(context);
    // Afterwards: an attachment never comes before its volume.
    const known = new Set((await this.volumes(context)).map(({ name }) => name));
    // One of a volume that has no object anyway is no stray.
    const orphans = all.flatMap(({ name, volumeName, nodeName, sinceSeconds }) =>
      volumeName && !known.has(volumeName) ? [{ name, volumeName, nodeName, sinceSeconds }] : []
    );
    if (orphans.length === 0) return [];
    // A volume may be deleted as soon as it is detached, which may have been between the two lists.
    const left = new Set((await this.#attachments(context)).map(({ name }) => name));
    return orphans.filter(({ name }) => left.has(name));
  }

  async assertAttachmentsReadable(context: CallContext): Promise<void> {
    await this.#ask(context, (signal) => assertAttachRequired(this.#source, signal));
  }

  async #attachments(context: CallContext): Promise<readonly VolumeAttachment[]> {
    return await this.#ask(context, (signal) => listAttachments(this.#source, signal));
  }

  async #list<T, K>(path: string, context: CallContext, keep: (raw: T) => K | undefined): Promise<K[]> {
    return await this.#ask(context, (signal) => listKept(this.#source.api, { path, signal }, keep));
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

/**
 * The same for the reconcile loop, which must not take an attachment for none: one whose PersistentVolume is gone stays in
 * the list, as an attachment of an unknown volume.
 */
export class KubernetesClusterObjects implements ClusterObjects {
  readonly #source: Source;
  readonly #volumes: PersistentVolumes;

  constructor({ api, driverName, volumes }: Source & { readonly volumes: PersistentVolumes }) {
    this.#source = { api, driverName };
    this.#volumes = volumes;
  }

  async attachments(signal: AbortSignal): Promise<readonly ClusterAttachment[]> {
    try {
      await assertAttachRequired(this.#source, signal);
      const attachments = await listAttachments(this.#source, signal);
      // Afterwards: an attachment never comes before its volume.
      await this.#volumes.list(signal);
      const handles = new Map(this.#volumes.all.map(({ name, volumeId }) => [name, volumeId]));
      return attachments.map(
        ({ volumeName, inlineHandle, nodeName, attached, deleting, publishContext }) => ({
          volumeId: volumeName === undefined ? inlineHandle : handles.get(volumeName),
          nodeName,
          attached,
          deleting,
          publishContext,
        }),
      );
    } catch (error) {
      if (VolumeError.is(error)) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      throw new VolumeError("unavailable", `Cannot read the cluster's attachments: ${reason}`, {
        cause: error,
      });
    }
  }

  volumeContext(volumeId: string): Readonly<Record<string, string>> | undefined {
    return this.#volumes.known(volumeId)?.attributes;
  }
}

async function listAttachments(
  { api, driverName }: Source,
  signal: AbortSignal,
): Promise<readonly VolumeAttachment[]> {
  const keep = (raw: RawAttachment) => parseAttachment(raw, driverName);
  return await listKept(api, { path: attachmentsPath, signal }, keep);
}

/**
 * Refuses to take the absence of a VolumeAttachment for the absence of a user. The first versions of the legacy driver came
 * with a CSIDriver object that has none made; without such an object they are made.
 *
 * @throws {VolumeError} precondition when there are none by this driver's CSIDriver object
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
    `Cannot tell who has a volume as the CSIDriver object says attachRequired: false: csidriver=${driverName}; no ` +
      "VolumeAttachment is made then: end the pods that use volumes, and put this driver's object in its place",
  );
}
