import { isIP } from "node:net";
import { duringCall } from "../../async/waiting.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import { canonicalAddress } from "../../volume/model/address.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { Target } from "../../volume/ports/node_ports.ts";
import type { PathAddress } from "./nvme_tool.ts";

/** Resolves a host name to its addresses, the best first. */
export type Resolve = (name: string) => Promise<readonly string[]>;

/** One configured address of a target, and the IP addresses it resolves to, of which one is enough. */
export interface TargetPath {
  readonly given: string;
  /** Never empty. */
  readonly addresses: readonly PathAddress[];
}

/**
 * The paths to a target. Names are resolved here, because the kernel does not; an address that cannot be resolved is
 * left out while another path is known.
 *
 * @throws {VolumeError} unavailable when none can be resolved; deadline or cancelled when the call ends first
 */
export async function targetPaths(
  target: Target,
  resolve: Resolve,
  context: CallContext,
): Promise<readonly TargetPath[]> {
  const unknown: string[] = [];
  const paths = await Promise.all([...new Set(target.addresses)].map(async (given) => {
    const addresses = isIP(given) > 0 ? [given] : await lookUp(given, resolve, context, unknown);
    return { given, addresses: addresses.map((address) => ({ address, port: target.port })) };
  }));
  const known = paths.filter(({ addresses }) => addresses.length > 0);
  if (known.length > 0) return known;
  throw new VolumeError(
    "unavailable",
    `Cannot connect because the target's name has no address: nqn=${target.nqn} ${unknown.join(" ")}; ` +
      "check this node's name service, or use an IP address",
  );
}

async function lookUp(
  name: string,
  resolve: Resolve,
  context: CallContext,
  unknown: string[],
): Promise<readonly string[]> {
  try {
    return (await duringCall(resolve(name), context.signal)).filter((address) => isIP(address) > 0);
  } catch (error) {
    if (VolumeError.is(error)) throw error;
    unknown.push(`name=${name}: ${messageOf(error)}`);
    return [];
  }
}

/** Whether the path has that address. */
export function leadsTo(path: TargetPath, there: PathAddress): boolean {
  return path.addresses.some(({ address, port }) =>
    port === there.port && canonicalAddress(address) === canonicalAddress(there.address)
  );
}
