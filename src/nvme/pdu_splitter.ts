import { concatenate } from "../host/bytes.ts";
import { headerBytes, pduLength } from "./pdu.ts";

/** Cuts a stream of bytes into PDUs. It never holds more than one PDU and a chunk. */
export class PduSplitter {
  #held: Uint8Array = new Uint8Array(0);

  /**
   * Takes the next bytes, which stay the caller's, and gives every PDU that is whole now. A PDU whose first bytes are
   * impossible is refused before the rest has come.
   *
   * @throws {VolumeError} unavailable when the stream is no PDU from here on
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
