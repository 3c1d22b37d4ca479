import type { ClaimName } from "../volume/model/publish_context.ts";
import type { FormatConsents } from "../volume/ports/cluster_ports.ts";
import { formatConsent, formatConsentAnnotation } from "../volume/rules/format_consent.ts";
import { ApiError, type KubernetesApi } from "./api.ts";
import type { Metadata, ObjectRef } from "./objects.ts";
import type { PersistentVolumes } from "./persistent_volumes.ts";

/** Reads the consents of claims' owners from the annotations of their claims. */
export class ClaimAnnotations implements FormatConsents {
  readonly #api: KubernetesApi;
  readonly #volumes: PersistentVolumes;

  constructor(api: KubernetesApi, volumes: PersistentVolumes) {
    this.#api = api;
    this.#volumes = volumes;
  }

  claimOf(volumeId: string): ClaimName | undefined {
    const { namespace, name } = this.#volumes.known(volumeId)?.claim ?? {};
    return namespace && name ? { namespace, name } : undefined;
  }

  async allowsFormat(volumeId: string, epochCounter: number, signal: AbortSignal): Promise<boolean> {
    const volume = await this.#volumes.find(volumeId, signal);
    if (volume?.claim === undefined) return false;
    const claim = await this.#read(volume.claim, signal);
    if (claim?.annotations?.[formatConsentAnnotation] !== formatConsent(volumeId, epochCounter)) return false;
    // The volume may belong to another claim now.
    const current = await this.#volumes.current(volumeId, signal);
    return current?.claim !== undefined && current.claim.uid === claim.uid;
  }

  async #read({ namespace, name }: ObjectRef, signal: AbortSignal): Promise<Metadata | undefined> {
    try {
      const path = `/api/v1/namespaces/${namespace}/persistentvolumeclaims/${name}`;
      return (await this.#api.request<{ metadata?: Metadata }>({ method: "GET", path, signal })).metadata;
    } catch (error) {
      if (ApiError.is(error, 404)) return undefined;
      throw error;
    }
  }
}
