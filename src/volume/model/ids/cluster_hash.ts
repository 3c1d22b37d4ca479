import { digest } from "../digest.ts";
import { VolumeError } from "../../errors.ts";

/**
 * Eight hex digits that represent a cluster in records and file names. An id `hash:…` contains those digits itself: for
 * a cluster that replaces one whose id is lost.
 *
 * @throws {VolumeError} invalid unless `hash:` is followed by exactly eight hex digits
 */
export function clusterHash(clusterId: string): string {
  if (!clusterId.startsWith("hash:")) return digest(clusterId, 8);
  const hash = clusterId.slice("hash:".length);
  if (/^[0-9a-f]{8}$/.test(hash)) return hash;
  throw new VolumeError(
    "invalid",
    `Cannot use the cluster id because eight hex digits have to follow "hash:", as in the names of files on the router: ` +
      `id=${clusterId}`,
  );
}

/**
 * Like {@linkcode clusterHash}, for the volumes of one of several routers. The hash of a router whose ids have a prefix
 * includes that prefix. A volume of one router's name then belongs to another cluster under every other name, so that
 * no router ever judges, disconnects or deletes another's volume, even when the names are swapped.
 *
 * @param prefix `<backend>/`, or "" for the router whose ids have none
 */
export function backendClusterHash(clusterId: string, prefix: string): string {
  const hash = clusterHash(clusterId);
  return prefix === "" ? hash : digest(`${hash} ${prefix}`, 8);
}
