import { VolumeError } from "../volume/errors.ts";
import { longestNqnBytes } from "./commands.ts";

/** Where a target is, and the host identity to connect with. */
export interface TargetAddress {
  readonly address: string;
  readonly port: number;
  readonly hostNqn: string;
  /** A UUID. */
  readonly hostId: string;
}

/** Where a subsystem is, and the host identity to connect with. */
export interface SubsystemAddress extends TargetAddress {
  readonly nqn: string;
}

/** A checked address with the encoded host id. */
export interface WireAddress extends SubsystemAddress {
  readonly hostIdBytes: Uint8Array;
}

/**
 * Checks an address before anything is sent to it.
 *
 * @throws {VolumeError} invalid when a name is empty or too long, the host id is no UUID, or the port is invalid
 */
export function parseAddress(where: SubsystemAddress): WireAddress {
  const { port, nqn, hostNqn, hostId } = where;
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw invalid("the port is none", `port=${port}`);
  for (const name of [nqn, hostNqn]) {
    const bytes = new TextEncoder().encode(name).length;
    if (bytes === 0 || bytes > longestNqnBytes || name.includes("\0")) {
      throw invalid("a name has the wrong length", `nqn=${JSON.stringify(name)} most=${longestNqnBytes}`);
    }
  }
  const digits = hostId.replaceAll("-", "");
  if (!/^[0-9a-fA-F]{32}$/.test(digits)) throw invalid("the host id is no UUID", `hostid=${hostId}`);
  const hostIdBytes = Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  return { ...where, hostIdBytes };
}

/** Describes an address for messages. */
export function describeAddress({ address, port, nqn }: SubsystemAddress): string {
  return `address=${address} port=${port} nqn=${nqn}`;
}

function invalid(reason: string, facts: string): VolumeError {
  return new VolumeError("invalid", `Cannot connect to the NVMe subsystem because ${reason}: ${facts}`);
}
