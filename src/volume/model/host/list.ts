import { formatEpoch } from "../epoch.ts";
import { hostIdentityOf } from "./identity.ts";
import type { StoredVolume } from "../inventory.ts";
import type { Holder, OwnedVolume } from "../record.ts";

/** Stands in a list for a node that was only struck off it, and may still be connected. The UUID is that of no host. */
const nobody = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-000000000000";

/** The hosts that the router admits while only these nodes hold a volume. */
export function hostsOf(holders: readonly Pick<Holder, "nodeId">[]): readonly string[] {
  return holders.map(({ nodeId }) => hostIdentityOf(nodeId).hostNqn);
}

/** Whether two lists admit the same hosts; an empty or absent list admits all. */
export function sameHosts(one: readonly string[] | undefined, other: readonly string[] | undefined): boolean {
  return (one ?? []).toSorted().join() === (other ?? []).toSorted().join();
}

/**
 * Whether this driver wrote the router's list of a volume: then it contains only holders, and `nobody`. Any other list is a
 * person's, and stays unchanged.
 */
export function hasOwnList({ stored, record }: OwnedVolume): boolean {
  const own = [...hostsOf(record.holders), nobody];
  const listed = stored.allowedHosts ?? [];
  return listed.length > 0 && listed.every((host) => own.includes(host));
}

/**
 * The list that admits the node as well; undefined when it is admitted already. `volume` is the volume before the node
 * became its holder.
 */
export function widenedList(volume: OwnedVolume, nodeId: string): readonly string[] | undefined {
  const listed = volume.stored.allowedHosts ?? [];
  const own = hostsOf([{ nodeId }]);
  const isMissing = hasOwnList(volume) && !listed.includes(own[0]!);
  return isMissing ? [...listed.filter((host) => host !== nobody), ...own] : undefined;
}

/**
 * The list without a node that leaves and may stay connected, so that it is not yet what `isNarrowed()` looks for. Undefined
 * unless the list contains all holders and nobody else. `volume` is the volume while the node is still its holder.
 */
export function shortenedList(
  { stored, record }: OwnedVolume,
  nodeId: string,
): readonly string[] | undefined {
  const listed = (stored.allowedHosts ?? []).filter((host) => host !== nobody);
  if (!sameHosts(listed, hostsOf(record.holders))) return undefined;
  return [...hostsOf(record.holders.filter((holder) => holder.nodeId !== nodeId)), nobody];
}

/** What is known of a router; undefined fields are unknown. */
export interface KnownRouter {
  /** How the router treats its list of hosts. */
  readonly allowHost: "list" | "single" | "ignored" | undefined;
  /** Whether hosts find the same namespace after a toggle of its export. */
  readonly identity: "kept" | "new-per-export" | undefined;
  /** Whether a withdrawal is known to end the sessions of its hosts, and at once. */
  readonly endsSessionsAtOnce: boolean;
}

/**
 * Whether the router has shut out everybody but the holders of a volume. It has to be known to enforce its list, and to have
 * ended the sessions of whoever was taken off: those that linger go on, whatever the list says.
 */
export function isNarrowed(
  { stored, record }: OwnedVolume,
  { allowHost, endsSessionsAtOnce }: Pick<KnownRouter, "allowHost" | "endsSessionsAtOnce">,
): boolean {
  return allowHost === "list" && endsSessionsAtOnce && record.holders.length > 0 &&
    sameHosts(stored.allowedHosts, hostsOf(record.holders));
}

/**
 * Whether the router can shut out a node that leaves while others go on writing. The router has to be known to enforce
 * its list, and to end sessions at once by a toggle of the export: one that lingers goes on through it, and a refused
 * command would fail the other nodes' writes. It also has to show the same namespace afterwards; otherwise they would
 * lose their device. The other nodes have to use the host NQNs that this driver gives them, which is certain only if
 * this driver began the epoch.
 */
export function canShutOut(
  volume: OwnedVolume,
  { allowHost, identity, endsSessionsAtOnce }: KnownRouter,
  remaining: readonly Holder[],
): boolean {
  const { stored, record } = volume;
  const isAble = allowHost === "list" && identity === "kept" && endsSessionsAtOnce;
  if (!isAble || record.epoch === undefined) return false;
  if (!remaining.every(({ mode }) => mode === "multi-node-multi-writer")) return false;
  return stored.exportNqn.endsWith(`:${stored.id}:${formatEpoch(record.epoch)}`) && isOwnOrNone(volume);
}

function isOwnOrNone(volume: OwnedVolume): boolean {
  return (volume.stored.allowedHosts ?? []).length === 0 || hasOwnList(volume);
}

/** Whether the volume that was read back has the wanted export: under that name, to these hosts. */
export function isExportedTo(stored: StoredVolume, nqn: string, hosts: readonly string[]): boolean {
  return stored.exported && stored.exportNqn === nqn && sameHosts(stored.allowedHosts, hosts);
}
