import type { MigrationPairs } from "../volume/ports/cluster_ports.ts";
import { VolumeError } from "../volume/errors.ts";
import { type ClaimUser, reasonAgainstPair } from "../volume/rules/migration_pairs.ts";
import type { KubernetesApi } from "./api.ts";
import { listKept, type Metadata } from "./objects.ts";
import type { PersistentVolumes } from "./persistent_volumes.ts";

interface RawPod {
  readonly metadata?: Metadata;
  readonly spec?: {
    readonly volumes?: readonly { readonly persistentVolumeClaim?: { readonly claimName?: string } }[];
  };
  readonly status?: { readonly phase?: string };
}

/** The label with the uid of the virtual machine instance on each of KubeVirt's pods for it: on both of a migration. */
const createdBy = "kubevirt.io/created-by";

/** Lets two nodes share a volume only for the two pods of one KubeVirt virtual machine. */
export function kubevirtPairs(api: KubernetesApi, volumes: PersistentVolumes): MigrationPairs {
  return {
    async reasonAgainst(volumeId, signal) {
      try {
        const claim = (await volumes.current(volumeId, signal))?.claim;
        if (claim?.namespace === undefined) return "no claim is bound to it";
        const path = `/api/v1/namespaces/${claim.namespace}/pods`;
        return reasonAgainstPair(
          await listKept(api, { path, signal }, (pod: RawPod) => parsePod(pod, claim.name)),
        );
      } catch (error) {
        signal.throwIfAborted();
        const reason = error instanceof Error ? error.message : String(error);
        throw new VolumeError(
          "unavailable",
          `Cannot tell whether two nodes may share the volume because the cluster does not say who uses it: ` +
            `volume=${volumeId}: ${reason} (--migration-pairs kubevirt)`,
          { cause: error },
        );
      }
    },
  };
}

/** Undefined for pods that do not matter. */
function parsePod({ metadata = {}, spec, status }: RawPod, claimName: string): ClaimUser | undefined {
  const hasEnded = status?.phase === "Succeeded" || status?.phase === "Failed";
  const usesClaim = !hasEnded &&
    spec?.volumes?.some((volume) => volume.persistentVolumeClaim?.claimName === claimName) === true;
  const { labels = {} } = metadata;
  const machine = labels["kubevirt.io"] === "virt-launcher" ? labels[createdBy] : undefined;
  if (!usesClaim && machine === undefined) return undefined;
  const owners = (metadata.ownerReferences ?? []).flatMap(({ kind, uid }) =>
    kind === "Pod" && uid !== undefined ? [uid] : []
  );
  return { name: metadata.name ?? "", uid: metadata.uid ?? "", usesClaim, hasEnded, machine, owners };
}
