import { digest } from "../digest.ts";
import { assertNodeId } from "../ids/ids.ts";

/** The NVMe identity under which a target sees a node. */
export interface HostIdentity {
  readonly hostNqn: string;
  /** A UUID in lower case. */
  readonly hostId: string;
}

/** Separates these UUIDs from other values derived from a node's name. */
const domain = "rds-csi host identity v1\n";

/**
 * The NVMe host identity of a node. It follows from the node's id alone: machines made from one image do not share it,
 * a reinstalled machine keeps it, and a controller can compute it.
 *
 * @throws {VolumeError} invalid when the node id has another form
 */
export function hostIdentityOf(nodeId: string): HostIdentity {
  assertNodeId(nodeId);
  const hostId = uuidFrom(digest(domain + nodeId, 32));
  return { hostNqn: `nqn.2014-08.org.nvmexpress:uuid:${hostId}`, hostId };
}

/** RFC 9562, version 8: a UUID whose bits are application-defined, except those of version and variant. */
function uuidFrom(hex: string): string {
  const variant = (Number.parseInt(hex[16]!, 16) & 0x3 | 0x8).toString(16);
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    variant + hex.slice(17, 20),
    hex.slice(20, 32),
  ];
  return parts.join("-");
}
