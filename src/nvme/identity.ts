import { entryBytes } from "./pdu.ts";
import { hexOf, viewOf, wireError } from "./wire.ts";

/** The identity of a controller. */
export interface ControllerIdentity {
  /** The most bytes that one command may read or write; Infinity when there is no limit. */
  readonly longestTransferBytes: number;
  /** Serial number of the subsystem, without trailing blanks. */
  readonly serial: string;
  /** The most data that an I/O command may bring in its own PDU, in bytes. */
  readonly inCapsuleBytes: number;
  /** Whether it takes Dataset Management, by which hosts discard blocks. */
  readonly takesDiscards: boolean;
}

/** The identity of a namespace. */
export interface NamespaceIdentity {
  readonly sizeBytes: bigint;
  readonly blockBytes: number;
  /** Lower-case hex; "" where all zero. */
  readonly nguid: string;
  /** Lower-case hex; "" where all zero. */
  readonly eui64: string;
}

/** The smallest possible memory page. MDTS counts in these, because no target over TCP requires larger ones. */
const pageBytes = 4096;

/** Parses Identify Controller. */
export function parseController(bytes: Uint8Array): ControllerIdentity {
  const view = viewOf(bytes);
  const exponent = view.getUint8(77);
  const capsuleBytes = view.getUint32(1792, true) * 16;
  // Where data begins behind the command; the TCP transport knows no other place than the next byte.
  const dataOffset = view.getUint16(1800, true);
  return {
    longestTransferBytes: exponent === 0 ? Infinity : pageBytes * 2 ** exponent,
    serial: String.fromCharCode(...bytes.subarray(4, 24)).trimEnd(),
    inCapsuleBytes: dataOffset === 0 ? Math.max(0, capsuleBytes - entryBytes) : 0,
    takesDiscards: (view.getUint16(520, true) & 0b100) !== 0,
  };
}

/**
 * Parses Identify Namespace; undefined for a missing namespace, which is all zeros.
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
    nguid: hexOf(bytes.subarray(104, 120)),
    eui64: hexOf(bytes.subarray(120, 128)),
  };
}

/** Ids of a namespace, each in lower-case hex; "" where there is none. */
export interface Descriptors {
  readonly eui64: string;
  readonly nguid: string;
  readonly uuid: string;
}

const kinds: Readonly<Record<number, { readonly name: keyof Descriptors; readonly bytes: number }>> = {
  1: { name: "eui64", bytes: 8 },
  2: { name: "nguid", bytes: 16 },
  3: { name: "uuid", bytes: 16 },
};

/**
 * Parses the list of namespace identification descriptors; unknown ones are left out.
 *
 * @throws {VolumeError} unavailable when one has the wrong length
 */
export function parseDescriptors(bytes: Uint8Array): Descriptors {
  const found = { eui64: "", nguid: "", uuid: "" };
  for (let at = 0; at + 4 <= bytes.length;) {
    const [type, length] = [bytes[at]!, bytes[at + 1]!];
    if (length === 0) break;
    const kind = kinds[type];
    const id = bytes.subarray(at + 4, at + 4 + length);
    if (id.length < length || kind !== undefined && kind.bytes !== length) {
      throw wireError("an id of a namespace has the wrong length", `type=${type} bytes=${length}`);
    }
    if (kind !== undefined) found[kind.name] = hexOf(id);
    at += 4 + length;
  }
  return found;
}

/** Parses the list of active namespaces: their ids, ascending. */
export function parseActiveNamespaces(bytes: Uint8Array): readonly number[] {
  const view = viewOf(bytes);
  const ids: number[] = [];
  for (let at = 0; at + 4 <= bytes.length; at += 4) {
    const id = view.getUint32(at, true);
    if (id === 0) break;
    ids.push(id);
  }
  return ids;
}
