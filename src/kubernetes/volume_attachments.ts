import type { ClusterAttachment, ClusterObjects } from "../volume/ports/cluster_ports.ts";
import { VolumeError } from "../volume/errors.ts";
import type { KubernetesApi } from "./api.ts";
import type { Metadata } from "./api.ts";
import { assertAttachRequired } from "./attach_required.ts";
import { listKept } from "./pages.ts";
import type { PersistentVolumes } from "./persistent_volumes.ts";

interface RawAttachment {
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

/** The VolumeAttachments of this driver, and the volumes that they are about. */
export class VolumeAttachments implements ClusterObjects {
  readonly #api: KubernetesApi;
  readonly #volumes: PersistentVolumes;
  readonly #driverName: string;

  constructor(
    options: {
      readonly api: KubernetesApi;
      readonly volumes: PersistentVolumes;
      readonly driverName: string;
    },
  ) {
    this.#api = options.api;
    this.#volumes = options.volumes;
    this.#driverName = options.driverName;
  }

  async attachments(signal: AbortSignal): Promise<readonly ClusterAttachment[]> {
    try {
      await assertAttachRequired(this.#api, this.#driverName, signal);
      const path = "/apis/storage.k8s.io/v1/volumeattachments";
      const raw = await listKept(
        this.#api,
        { path, signal },
        (one: RawAttachment) => one.spec?.attacher === this.#driverName ? one : undefined,
      );
      // Afterwards: an attachment never comes before its volume.
      await this.#volumes.list(signal);
      const ids = new Map(this.#volumes.all.map(({ name, volumeId }) => [name, volumeId]));
      return raw.map((one) => parseAttachment(one, ids));
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

function parseAttachment(
  { metadata, spec, status }: RawAttachment,
  ids: ReadonlyMap<string, string>,
): ClusterAttachment {
  const { persistentVolumeName, inlineVolumeSpec } = spec?.source ?? {};
  return {
    volumeId: persistentVolumeName === undefined
      ? inlineVolumeSpec?.csi?.volumeHandle
      : ids.get(persistentVolumeName),
    nodeName: spec?.nodeName ?? "",
    attached: status?.attached === true,
    deleting: metadata?.deletionTimestamp !== undefined,
    publishContext: status?.attachmentMetadata ?? {},
  };
}
