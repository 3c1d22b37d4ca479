const encoder = new TextEncoder();

/** A view of the same bytes that reads and writes numbers. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Writes text into a field of fixed length, padded with blanks or, without `pad`, with NULs. */
export function putText(bytes: Uint8Array, at: number, length: number, text: string, pad = "\0"): void {
  bytes.set(encoder.encode(text.padEnd(length, pad)).subarray(0, length), at);
}

/** The text of a field up to its first NUL; undefined when it has none, or is no UTF-8. */
export function getText(field: Uint8Array): string | undefined {
  const end = field.indexOf(0);
  if (end === -1) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(field.subarray(0, end));
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** A submission queue entry, taken apart. */
export interface Command {
  readonly opcode: number;
  readonly id: number;
  readonly namespaceId: number;
  /** What a fabrics command is. */
  readonly fabricsType: number;
  /** Which way its data goes. */
  readonly direction: "none" | "to-target" | "to-host";
  readonly data: {
    readonly length: number;
    /** Whether it lies in the command's own PDU, and where; undefined when it goes in further PDUs. */
    readonly offset: bigint | undefined;
    /** Neither of the two. */
    readonly unknown: boolean;
  };
  /** One of the command dwords 10 to 15. */
  word(number: number): number;
  /** Two of them, the lower one first. */
  long(number: number): bigint;
}

/** The opcode of every fabrics command. */
export const fabricsOpcode = 0x7f;

/** Status codes, with their type in bits 8 to 10. */
export const statuses = {
  success: 0x000,
  invalidOpcode: 0x001,
  invalidField: 0x002,
  sequence: 0x00c,
  dataLength: 0x00f,
  descriptorType: 0x011,
  invalidNamespace: 0x00b,
  writeProtected: 0x020,
  outOfRange: 0x080,
  eventLimit: 0x105,
  logPage: 0x109,
  connectFormat: 0x180,
  connectParameters: 0x182,
  connectHost: 0x184,
  writeFault: 0x280,
  readError: 0x281,
} as const;

/** What a command gives when it succeeds. */
export interface Outcome {
  /** The first eight bytes of the completion. @default {0n} */
  readonly result?: bigint;
  /** What it reads: exactly as much as the host has room for. */
  readonly data?: Uint8Array;
}

/** The target does not carry out a command. */
export class Refused extends Error {
  override readonly name = "Refused";
  /** One of {@linkcode statuses}. */
  readonly status: number;
  readonly result: bigint;

  constructor(status: number, message: string, result = 0n) {
    super(message);
    this.status = status;
    this.result = result;
  }
}

const directions = ["none", "to-target", "to-host", "none"] as const;

/** Takes an entry of 64 bytes apart. */
export function parseCommand(entry: Uint8Array): Command {
  const view = viewOf(entry);
  const opcode = view.getUint8(0);
  const descriptor = view.getUint8(39);
  return {
    opcode,
    id: view.getUint16(2, true),
    namespaceId: view.getUint32(4, true),
    fabricsType: view.getUint8(4),
    direction: directions[(opcode === fabricsOpcode ? view.getUint8(4) : opcode) & 3]!,
    data: {
      length: view.getUint32(32, true),
      offset: descriptor === 0x01 ? view.getBigUint64(24, true) : undefined,
      unknown: descriptor !== 0x01 && descriptor !== 0x5a,
    },
    word: (number) => view.getUint32(4 * number, true),
    long: (number) => view.getBigUint64(4 * number, true),
  };
}
