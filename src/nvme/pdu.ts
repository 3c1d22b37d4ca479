import type { Status } from "./command_status.ts";
import { viewOf, wireError } from "./wire.ts";
import { concatenate } from "../host/bytes.ts";

// NVM Express TCP Transport Specification, "PDU definitions": the PDUs that a host sends and receives. Only the parts
// that a reading host needs: no digests, and no data to the target except what fits into a command's own PDU.

/** A PDU from a target. */
export type TargetPdu =
  /** The answer to the first PDU of a connection. */
  | {
    readonly kind: "initialised";
    readonly version: number;
    /** Data must begin at a multiple of this, from the start of the PDU. */
    readonly alignmentBytes: number;
    readonly digests: boolean;
  }
  /** How a command ended. */
  | {
    readonly kind: "response";
    readonly commandId: number;
    readonly status: Status;
    readonly result: bigint;
  }
  /** A part of the data that a command reads. */
  | {
    readonly kind: "data";
    readonly commandId: number;
    readonly offset: number;
    readonly bytes: Uint8Array;
    /** Whether this is the last part. */
    readonly last: boolean;
    /** Whether the command succeeded and no response follows. */
    readonly success: boolean;
  }
  /** The target ends the connection because of a PDU that it received. */
  | { readonly kind: "terminated"; readonly reason: string };

/** Length of every submission queue entry. */
export const entryBytes = 64;
/** Length of the common header of every PDU. */
const headerBytes = 8;
/** The longest PDU that a target may send to this host, which never requests as much at once. */
const longestPduBytes = 512 * 1024;

const initRequest = 0x00;
const capsuleCommand = 0x04;
const initBytes = 128;
const capsuleBytes = headerBytes + entryBytes;

/** PDUs of a target: the length of their header, and whether data may follow it. */
const targetPdus: Readonly<Record<number, { readonly header: number; readonly data: boolean }>> = {
  0x01: { header: initBytes, data: false },
  0x03: { header: 24, data: true },
  0x05: { header: 24, data: false },
  0x07: { header: 24, data: true },
};

const terminations: Readonly<Record<number, string>> = {
  1: "invalid header field",
  2: "PDU sequence error",
  3: "header digest error",
  4: "data transfer out of range",
  5: "data transfer limit exceeded",
  6: "unsupported parameter",
};

/** The first PDU of a connection: protocol version 0, data aligned to four bytes, no digests, one R2T at a time. */
export function encodeInitRequest(): Uint8Array {
  return header(initRequest, initBytes, 0, initBytes);
}

/**
 * A command, with its data in the same PDU if it has any.
 *
 * @param alignmentBytes the alignment that the target requires
 */
export function encodeCommand(entry: Uint8Array, data: Uint8Array, alignmentBytes: number): Uint8Array {
  if (data.length === 0) {
    const pdu = header(capsuleCommand, capsuleBytes, 0, capsuleBytes);
    pdu.set(entry, headerBytes);
    return pdu;
  }
  const dataOffset = Math.ceil(capsuleBytes / alignmentBytes) * alignmentBytes;
  const pdu = header(capsuleCommand, capsuleBytes, dataOffset, dataOffset + data.length);
  pdu.set(entry, headerBytes);
  pdu.set(data, dataOffset);
  return pdu;
}

/**
 * The length of the PDU that begins with these bytes, at least {@linkcode headerBytes} of them.
 *
 * @throws {VolumeError} unavailable when no target sends such a PDU
 */
function pduLength(start: Uint8Array): number {
  const view = viewOf(start);
  const [type, flags, headerLength] = [view.getUint8(0), view.getUint8(1), view.getUint8(2)];
  const length = view.getUint32(4, true);
  const known = targetPdus[type];
  if (known === undefined) throw wireError("it sends what no target sends", `pdu-type=${type}`);
  if (headerLength !== known.header) throw wireError("a header has the wrong length", `type=${type}`);
  if ((flags & 0x03) !== 0) throw wireError("it sends digests that were not agreed", `type=${type}`);
  const fits = known.data ? length >= known.header : length === known.header;
  if (!fits || length > longestPduBytes) {
    throw wireError("a PDU has an impossible length", `type=${type} bytes=${length}`);
  }
  return length;
}

/**
 * Parses one complete PDU of a target.
 *
 * @throws {VolumeError} unavailable when it is invalid
 */
export function parseTargetPdu(bytes: Uint8Array): TargetPdu {
  if (bytes.length < headerBytes || pduLength(bytes) !== bytes.length) {
    throw wireError("a PDU is not whole", `bytes=${bytes.length}`);
  }
  const view = viewOf(bytes);
  switch (bytes[0]) {
    case 0x01:
      return parseInitialised(view);
    case 0x03:
      return { kind: "terminated", reason: terminations[view.getUint16(8, true)] ?? "an unknown error" };
    case 0x05:
      return parseResponse(view);
    default:
      return parseData(bytes, view);
  }
}

function parseInitialised(view: DataView): TargetPdu {
  const alignment = view.getUint8(10);
  if (alignment > 31) throw wireError("it asks for an impossible alignment", `cpda=${alignment}`);
  return {
    kind: "initialised",
    version: view.getUint16(8, true),
    alignmentBytes: (alignment + 1) * 4,
    digests: view.getUint8(11) !== 0,
  };
}

/** The queue entry after the header: result, queue head and id, command, status. */
function parseResponse(view: DataView): TargetPdu {
  const field = view.getUint16(22, true);
  return {
    kind: "response",
    commandId: view.getUint16(20, true),
    status: { type: field >> 9 & 0x07, code: field >> 1 & 0xff, doNotRetry: (field & 0x8000) !== 0 },
    result: view.getBigUint64(8, true),
  };
}

function parseData(pdu: Uint8Array, view: DataView): TargetPdu {
  const [flags, dataOffset] = [view.getUint8(1), view.getUint8(3)];
  const length = view.getUint32(16, true);
  if (dataOffset < 24 || dataOffset + length !== pdu.length) {
    throw wireError("data does not lie where its header says", `pdo=${dataOffset} bytes=${length}`);
  }
  const [last, success] = [(flags & 0x04) !== 0, (flags & 0x08) !== 0];
  if (success && !last) throw wireError("a command succeeds before its last data", `flags=${flags}`);
  return {
    kind: "data",
    commandId: view.getUint16(8, true),
    offset: view.getUint32(12, true),
    bytes: pdu.subarray(dataOffset),
    last,
    success,
  };
}

function header(type: number, headerLength: number, dataOffset: number, length: number): Uint8Array {
  const pdu = new Uint8Array(length);
  const view = viewOf(pdu);
  view.setUint8(0, type);
  view.setUint8(2, headerLength);
  view.setUint8(3, dataOffset);
  view.setUint32(4, length, true);
  return pdu;
}

/** Splits a stream of bytes into PDUs. It never holds more than one PDU and a chunk. */
export class PduSplitter {
  #held: Uint8Array = new Uint8Array(0);

  /**
   * Takes the next bytes, which stay the caller's, and returns every PDU that is complete now. A PDU whose first bytes
   * are impossible is refused before the rest has arrived.
   *
   * @throws {VolumeError} unavailable when the stream contains no valid PDU from here on
   */
  *push(chunk: Uint8Array): Generator<Uint8Array> {
    this.#held = concatenate([this.#held, chunk], this.#held.length + chunk.length);
    while (this.#held.length >= headerBytes) {
      const length = pduLength(this.#held);
      if (this.#held.length < length) return;
      const pdu = this.#held.subarray(0, length);
      this.#held = this.#held.subarray(length);
      yield pdu;
    }
  }
}
