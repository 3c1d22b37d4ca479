// NVM Express TCP Transport Specification, "PDU definitions": what a target is sent and what it sends. No digests.

import { viewOf } from "./command.ts";

/** What a host sends. */
export type HostPdu =
  | {
    readonly kind: "initialise";
    readonly version: number;
    /** Data that the target sends begins at a multiple of this, counted from the start of its PDU. */
    readonly alignmentBytes: number;
  }
  | { readonly kind: "command"; readonly entry: Uint8Array; readonly data: Uint8Array }
  | {
    readonly kind: "data";
    readonly commandId: number;
    readonly tag: number;
    readonly offset: number;
    readonly bytes: Uint8Array;
    readonly last: boolean;
  }
  /** The host ends the connection because of what it was sent. */
  | { readonly kind: "terminated" };

/** Why a target ends a connection: "fatal error status". */
export const fatal = { header: 1, sequence: 2, outOfRange: 4, parameter: 6 } as const;

/** A host that breaks the rules of the transport; nothing it sends counts any more. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
  /** One of {@linkcode fatal}. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The most data that a command brings in its own PDU. */
export const inCapsuleBytes = 8192;
/** The most data in one further PDU of a host, and in one command. */
export const transferBytes = 128 * 1024;

const commonBytes = 8;
const initBytes = 128;
const capsuleBytes = 72;
const plainBytes = 24;
/** Data may begin this much later than its header ends. */
const maxPadding = 128;

interface Form {
  readonly header: number;
  readonly maxBytes: number;
}

const forms: Readonly<Record<number, Form>> = {
  0x00: { header: initBytes, maxBytes: initBytes },
  0x02: { header: plainBytes, maxBytes: plainBytes + initBytes },
  0x04: { header: capsuleBytes, maxBytes: capsuleBytes + maxPadding + inCapsuleBytes },
  0x06: { header: plainBytes, maxBytes: plainBytes + maxPadding + transferBytes },
};

/** Cuts what a host sends into PDUs; it never holds more than one of them and what came last. */
export class HostStream {
  #held: Uint8Array = new Uint8Array(0);

  /**
   * Takes the next bytes and gives every PDU that is whole now.
   *
   * @throws {ProtocolError} when they are none
   */
  *push(chunk: Uint8Array): Generator<HostPdu> {
    const joined = new Uint8Array(this.#held.length + chunk.length);
    joined.set(this.#held);
    joined.set(chunk, this.#held.length);
    this.#held = joined;
    while (this.#held.length >= commonBytes) {
      const length = lengthOf(this.#held);
      if (this.#held.length < length) return;
      const pdu = this.#held.subarray(0, length);
      this.#held = this.#held.subarray(length);
      yield parse(pdu);
    }
  }
}

function lengthOf(start: Uint8Array): number {
  const [type = 0, flags = 0, header] = start;
  const form = forms[type];
  const length = viewOf(start).getUint32(4, true);
  if (form === undefined) throw new ProtocolError(fatal.header, `A host sends no PDU of type ${type}.`);
  const sound = header === form.header && length >= form.header && length <= form.maxBytes;
  if (!sound) throw new ProtocolError(fatal.header, `A PDU of type ${type} has not ${length} bytes.`);
  if ((flags & 3) !== 0) throw new ProtocolError(fatal.header, "Digests were not agreed.");
  return length;
}

function parse(pdu: Uint8Array): HostPdu {
  const view = viewOf(pdu);
  switch (pdu[0]) {
    case 0x00:
      return parseInitialise(view);
    case 0x02:
      return { kind: "terminated" };
    case 0x04:
      return { kind: "command", entry: pdu.subarray(8, capsuleBytes), data: dataOf(pdu, capsuleBytes) };
    default:
      return parseData(pdu, view);
  }
}

function parseInitialise(view: DataView): HostPdu {
  const alignment = view.getUint8(10);
  if (alignment > 31) throw new ProtocolError(fatal.parameter, `There is no alignment ${alignment}.`);
  return {
    kind: "initialise",
    version: view.getUint16(8, true),
    alignmentBytes: (alignment + 1) * 4,
  };
}

function parseData(pdu: Uint8Array, view: DataView): HostPdu {
  const bytes = dataOf(pdu, plainBytes);
  const length = view.getUint32(16, true);
  if (length !== bytes.length) {
    throw new ProtocolError(fatal.header, `There are ${bytes.length} bytes of data, not ${length}.`);
  }
  return {
    kind: "data",
    commandId: view.getUint16(8, true),
    tag: view.getUint16(10, true),
    offset: view.getUint32(12, true),
    bytes,
    last: (pdu[1]! & 0x04) !== 0,
  };
}

function dataOf(pdu: Uint8Array, header: number): Uint8Array {
  if (pdu.length === header) return pdu.subarray(header);
  const offset = pdu[3]!;
  if (offset >= header && offset <= pdu.length) return pdu.subarray(offset);
  throw new ProtocolError(fatal.header, `Data does not begin at byte ${offset}.`);
}

/** The answer to the first PDU of a connection. */
export function encodeInitialised(): Uint8Array {
  const pdu = makePdu(0x01, 0, initBytes, 0, initBytes);
  viewOf(pdu).setUint32(12, transferBytes, true);
  return pdu;
}

/** How a command ended. */
export interface Completion {
  readonly commandId: number;
  /** Status code, with its type in bits 8 to 10. */
  readonly status: number;
  /** The first eight bytes of the completion. */
  readonly result: bigint;
  readonly queueId: number;
  /** How far the queue has been read. */
  readonly queueHead: number;
}

/** Tells how a command ended; what failed would fail again. */
export function encodeCompletion(completion: Completion): Uint8Array {
  const pdu = makePdu(0x05, 0, plainBytes, 0, plainBytes);
  const view = viewOf(pdu);
  const doNotRetry = completion.status === 0 ? 0 : 0x8000;
  view.setBigUint64(8, completion.result, true);
  view.setUint16(16, completion.queueHead, true);
  view.setUint16(18, completion.queueId, true);
  view.setUint16(20, completion.commandId, true);
  view.setUint16(22, completion.status << 1 | doNotRetry, true);
  return pdu;
}

/**
 * Gives what a command reads, whole.
 *
 * @param succeeds says that the command succeeded, too: then no completion follows
 */
export function encodeData(
  commandId: number,
  data: Uint8Array,
  alignmentBytes: number,
  succeeds: boolean,
): Uint8Array {
  const offset = Math.ceil(plainBytes / alignmentBytes) * alignmentBytes;
  const pdu = makePdu(0x07, succeeds ? 0x0c : 0x04, plainBytes, offset, offset + data.length);
  const view = viewOf(pdu);
  view.setUint16(8, commandId, true);
  view.setUint32(16, data.length, true);
  pdu.set(data, offset);
  return pdu;
}

/** Asks for all the data of a command, under a tag. */
export function encodeReadyToTransfer(commandId: number, tag: number, length: number): Uint8Array {
  const pdu = makePdu(0x09, 0, plainBytes, 0, plainBytes);
  const view = viewOf(pdu);
  view.setUint16(8, commandId, true);
  view.setUint16(10, tag, true);
  view.setUint32(16, length, true);
  return pdu;
}

/** Ends the connection because of what the host has sent. */
export function encodeTermination(status: number): Uint8Array {
  const pdu = makePdu(0x03, 0, plainBytes, 0, plainBytes);
  viewOf(pdu).setUint16(8, status, true);
  return pdu;
}

function makePdu(type: number, flags: number, header: number, offset: number, length: number): Uint8Array {
  const pdu = new Uint8Array(length);
  pdu.set([type, flags, header, offset]);
  viewOf(pdu).setUint32(4, length, true);
  return pdu;
}
