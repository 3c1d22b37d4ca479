import { formatEpoch } from "./epoch.ts";
import { hostIdentityOf } from "./host_identity.ts";
import type { StoredVolume } from "./inventory.ts";
import type { Holder, OwnedVolume } from "./record.ts";

/** Whom the router lets in while only these nodes hold a volume. */
export function hostsOf(holders: readonly Pick<Holder, "nodeId">[]): readonly string[] {
  return holders.map(({ nodeId }) => hostIdentityOf(nodeId).hostNqn);
}

/** Whether two lists let the same hosts in; an empty or absent one lets everybody in. */
export function sameHosts(one: readonly string[] | undefined, other: readonly string[] | undefined): boolean {
  return (one ?? []).toSorted().join() === (other ?? []).toSorted().join();
}

/** Whether the router's list of a volume is this driver's: of holders alone. Any other is a person's, and is left alone. */
export function hasOwnList({ stored, record }: OwnedVolume): boolean {
  const own = hostsOf(record.holders);
  const listed = stored.allowedHosts ?? [];
  return listed.length > 0 && listed.every((host) => own.includes(host));
}

/**
 * The list with which a node gets in as well; undefined when it does already. `volume` is as it was before the node was
 * its holder.
 */
export function widenedList(volume: OwnedVolume, nodeId: string): readonly string[] | undefined {
  const listed = volume.stored.allowedHosts ?? [];
  const own = hostsOf([{ nodeId }]);
  return hasOwnList(volume) && !listed.includes(own[0]!) ? [...listed, ...own] : undefined;
}

/** Whether the router lets in nobody but the holders of a volume: it has to be known to go by its list. */
export function isNarrowed(
  { stored, record }: OwnedVolume,
  allowHost: "list" | "single" | "ignored" | undefined,
): boolean {
  return allowHost === "list" && record.holders.length > 0 &&
    sameHosts(stored.allowedHosts, hostsOf(record.holders));
}

/** What is known of a router; undefined where it was not asked. */
export interface KnownRouter {
  /** What its list of hosts is. */
  readonly allowHost: "list" | "single" | "ignored" | undefined;
  /** Whether hosts find the same namespace after a toggle of its export. */
  readonly identity: "kept" | "new-per-export" | undefined;
}

/**
 * Whether the router can be told to shut a node out that leaves while others go on writing. It has to be known to go by
 * such a list, and to show the same namespace after the toggle of the export that cuts the node off: elsewhere the others
 * would lose their device. And the others have to go by the names that this driver gives them, which an epoch that it
 * began itself shows.
 */
export function canShutOut(
  volume: OwnedVolume,
  { allowHost, identity }: KnownRouter,
  remaining: readonly Holder[],
): boolean {
  const { stored, record } = volume;
  if (allowHost !== "list" || identity !== "kept" || record.epoch === undefined) return false;
  if (!remaining.every(({ mode }) => mode === "multi-node-multi-writer")) return false;
  return stored.exportNqn.endsWith(`:${stored.id}:${formatEpoch(record.epoch)}`) && isOwnOrNone(volume);
}

function isOwnOrNone(volume: OwnedVolume): boolean {
  return (volume.stored.allowedHosts ?? []).length === 0 || hasOwnList(volume);
}

/** Whether a volume was read back as it was to be: exported to these hosts under that name. */
export function isExportedTo(stored: StoredVolume, nqn: string, hosts: readonly string[]): boolean {
  return stored.exported && stored.exportNqn === nqn && sameHosts(stored.allowedHosts, hosts);
}
