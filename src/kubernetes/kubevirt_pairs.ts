import { VolumeError } from "../volume/errors.ts";
import { messageOf } from "../volume/error_messages.ts";
import type { MigrationPair, MigrationPairs } from "../volume/ports/cluster_ports.ts";
import type { Clock } from "../volume/ports/system.ts";
import { reasonKubeletIsSilent } from "../volume/rules/detached_nodes.ts";
import { type ClaimUser, type PairNode, reasonAgainstPair } from "../volume/rules/migration_pairs.ts";
import type { KubernetesApi } from "./api.ts";
import { csiNodesPath, findNode, listKept, type Metadata, parseCsiNode, type RawCsiNode } from "./objects.ts";
import type { PersistentVolumes } from "./persistent_volumes.ts";

interface RawPod {
  readonly metadata?: Metadata;
  readonly spec?: {
    readonly nodeName?: string;
    readonly volumes?: readonly { readonly persistentVolumeClaim?: { readonly claimName?: string } }[];
  };
  readonly status?: { readonly phase?: string };
}

/** Options of {@linkcode kubevirtPairs}. */
export interface KubevirtPairsOptions {
  readonly api: KubernetesApi;
  readonly clock: Clock;
  readonly driverName: string;
  readonly volumes: PersistentVolumes;
}

/** The label with the uid of the virtual machine instance on each of KubeVirt's pods for it: on both of a migration. */
const createdBy = "kubevirt.io/created-by";

/** Lets two nodes share a volume only for the two pods of one KubeVirt virtual machine, one on each of them. */
export function kubevirtPairs(options: KubevirtPairsOptions): MigrationPairs {
  return {
    async reasonAgainst(pair, signal) {
      try {
        return await reasonAgainst(options, pair, signal);
      } catch (error) {
        signal.throwIfAborted();
        const reason = messageOf(error);
        throw new VolumeError(
          "unavailable",
          `Cannot determine whether two nodes may share the volume because the cluster does not say who uses it: ` +
            `volume=${pair.volumeId}: ${reason} (--migration-pairs kubevirt)`,
          { cause: error },
        );
      }
    },
  };
}

async function reasonAgainst(
  { api, clock, driverName, volumes }: KubevirtPairsOptions,
  { volumeId, nodeId, holders }: MigrationPair,
  signal: AbortSignal,
): Promise<string | undefined> {
  const claim = (await volumes.current(volumeId, signal))?.claim;
  if (claim?.namespace === undefined) return "no claim is bound to it";
  const parse = (raw: RawCsiNode) => parseCsiNode(raw, driverName);
  const csiNodes = await listKept(api, { path: csiNodesPath, signal }, parse);
  const nodeOf = (id: string): PairNode => ({
    nodeId: id,
    nodeNames: csiNodes.filter((one) => one.nodeId === id).map(({ name }) => name),
  });
  const path = `/api/v1/namespaces/${claim.namespace}/pods`;
  const pods = await listKept(api, { path, signal }, (pod: RawPod) => parsePod(pod, claim.name));
  const nodes = [...holders.map((holder) => nodeOf(holder.nodeId)), nodeOf(nodeId)];
  const reason = reasonAgainstPair(pods, nodes);
  if (reason !== undefined) return reason;
  // A pod goes on to look as it did when its kubelet last reported. Read last, so that it is no older than the pods.
  for (const { nodeId, machine } of holders) {
    const name = nodeOf(nodeId).nodeNames[0]!;
    const node = await findNode(api, name, signal);
    if (node === undefined) return `there is no Node of its name: ${name}`;
    const nowSeconds = Math.floor(clock.now() / 1000);
    const silent = reasonKubeletIsSilent({ name, node, machine, nowSeconds });
    if (silent !== undefined) return silent;
  }
  return undefined;
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
  const { name = "", uid = "" } = metadata;
  return { name, uid, nodeName: spec?.nodeName ?? "", usesClaim, hasEnded, machine, owners };
}
