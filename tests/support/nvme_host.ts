// PDUs of an NVMe/TCP target, built by hand, and a connection to nowhere.

import assert from "node:assert/strict";
import { VolumeError } from "../../src/volume/errors.ts";
import type { ByteStream } from "../../src/nvme/stream.ts";
import { viewOf } from "../../src/nvme/wire.ts";

function pdu(type: number, flags: number, headerLength: number, dataOffset: number, length: number) {
  const bytes = new Uint8Array(length);
  const view = viewOf(bytes);
  bytes.set([type, flags, headerLength, dataOffset]);
  view.setUint32(4, length, true);
  return { bytes, view };
}

/** The target's answer to the first PDU. */
export function initResponse({ version = 0, alignment = 0, digests = 0 } = {}): Uint8Array {
  const { bytes, view } = pdu(0x01, 0, 128, 0, 128);
  view.setUint16(8, version, true);
  bytes.set([alignment, digests], 10);
  view.setUint32(12, 131_072, true);
  return bytes;
}

/** A command's response; status 0 is success. */
export function response(commandId: number, { type = 0, code = 0, result = 0n } = {}): Uint8Array {
  const { bytes, view } = pdu(0x05, 0, 24, 0, 24);
  view.setBigUint64(8, result, true);
  view.setUint16(20, commandId, true);
  view.setUint16(22, type << 9 | code << 1, true);
  return bytes;
}

/** Flags of {@linkcode data}: no more data follows, and no response follows either. */
export const lastData = 0x04;
/** See {@linkcode lastData}. */
export const successData = 0x08;

/** A part of the data that a command reads. */
export function data(commandId: number, offset: number, content: Uint8Array, flags = 0): Uint8Array {
  const { bytes, view } = pdu(0x07, flags, 24, 24, 24 + content.length);
  view.setUint16(8, commandId, true);
  view.setUint32(12, offset, true);
  view.setUint32(16, content.length, true);
  bytes.set(content, 24);
  return bytes;
}

/** The PDU with which the target ends the connection. */
export function termination(status: number): Uint8Array {
  const { bytes, view } = pdu(0x03, 0, 24, 0, 24);
  view.setUint16(8, status, true);
  return bytes;
}

/** A copy with some bytes changed. */
export function changed(bytes: Uint8Array, at: number, ...values: readonly number[]): Uint8Array {
  const copy = bytes.slice();
  copy.set(values, at);
  return copy;
}

/** A connection whose other side is the test. */
export class TestStream implements ByteStream {
  readonly written: Uint8Array[] = [];
  closed = false;
  #incoming: (Uint8Array | null | Error)[] = [];
  #wake = () => {};

  /** Feeds what the other side sends: bytes, an end (null), or a broken connection. */
  feed(...items: readonly (Uint8Array | null | Error)[]): void {
    this.#incoming.push(...items);
    this.#wake();
  }

  async read(into: Uint8Array): Promise<number | null> {
    while (this.#incoming.length === 0) {
      if (this.closed) throw new Deno.errors.BadResource("closed");
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    const next = this.#incoming.shift()!;
    if (next === null) return null;
    if (next instanceof Error) throw next;
    const now = next.subarray(0, into.length);
    into.set(now);
    if (now.length < next.length) this.#incoming.unshift(next.subarray(now.length));
    return now.length;
  }

  write(bytes: Uint8Array): Promise<number> {
    this.written.push(bytes.slice());
    return Promise.resolve(bytes.length);
  }

  close(): void {
    this.closed = true;
    this.#wake();
  }
}

/** A connection whose other side answers each PDU at once. */
export class ScriptedStream extends TestStream {
  readonly #answer: (pdu: Uint8Array) => readonly Uint8Array[];
  /** Whether the other side has stopped answering. */
  isSilent: () => boolean = () => false;

  constructor(answer: (pdu: Uint8Array) => readonly Uint8Array[]) {
    super();
    this.#answer = answer;
  }

  override write(bytes: Uint8Array): Promise<number> {
    if (!this.isSilent()) this.feed(...this.#answer(bytes));
    return super.write(bytes);
  }
}

/** Lets all promises settle that do not wait for a clock. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve();
}

/** Asserts that reading `bytes` throws a VolumeError of kind unavailable, and nothing else. */
export function assertUnreadable(read: () => unknown, reason: RegExp): void {
  assert.throws(read, (error) => VolumeError.is(error, "unavailable") && reason.test(error.message));
}
