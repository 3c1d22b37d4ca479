import { viewOf, wireError } from "./wire.ts";

/** What a controller says of itself. */
export interface ControllerIdentity {
  /** The most that one command may read or write, in bytes; Infinity when it has no limit. */
  readonly longestTransferBytes: number;
}

/** What is said of a namespace. */
export interface NamespaceIdentity {
  readonly sizeBytes: bigint;
  readonly blockBytes: number;
}

/** The smallest memory page that there is: MDTS counts in these, as no target over TCP asks for larger ones. */
const pageBytes = 4096;

/** Reads Identify Controller. */
export function parseController(bytes: Uint8Array): ControllerIdentity {
  const exponent = viewOf(bytes).getUint8(77);
  return { longestTransferBytes: exponent === 0 ? Infinity : pageBytes * 2 ** exponent };
}

/**
 * Reads Identify Namespace; undefined for a namespace that is not there, which is all zeros.
 *
 * @throws {VolumeError} unavailable when its blocks have an impossible size
 */
export function parseNamespace(bytes: Uint8Array): NamespaceIdentity | undefined {
  if (bytes.every((byte) => byte === 0)) return undefined;
  const view = viewOf(bytes);
  const flbas = view.getUint8(26);
  const format = flbas & 0x0f | (flbas & 0x60) >> 1;
  const exponent = view.getUint8(128 + 4 * format + 2);
  if (exponent < 9 || exponent > 16) {
    throw wireError("a namespace has blocks of an impossible size", `lbads=${exponent}`);
  }
  return {
    sizeBytes: view.getBigUint64(0, true) << BigInt(exponent),
    blockBytes: 2 ** exponent,
  };
}
