import { duringCall } from "../async/waiting.ts";
import { VolumeError } from "../volume/errors.ts";
import { messageOf } from "../volume/error_messages.ts";
import type { CallContext } from "../volume/ports/system.ts";
import type { Command } from "./commands.ts";
import { encodeCommand, encodeInitRequest, parseTargetPdu, PduSplitter, type TargetPdu } from "./pdu.ts";
import { StatusError } from "./command_status.ts";
import type { ByteStream } from "./stream.ts";
import { viewOf, wireError } from "./wire.ts";

/** The result of a command. */
export interface Answer {
  /** The first eight bytes of the completion. */
  readonly result: bigint;
  /** The bytes read: exactly as many as the command requested. */
  readonly bytes: Uint8Array;
}

interface Waiting {
  readonly command: Command;
  readonly bytes: Uint8Array;
  received: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: VolumeError) => void;
}

/** The number of commands under way in a queue; the queue has as many entries. */
export const queueDepth = 32;

const readChunkBytes = 64 * 1024;

/**
 * One TCP connection to a target, which is one queue: it sends commands, each with its own id, and receives their
 * answers.
 */
export class Queue implements AsyncDisposable {
  /** Resolves with the reason when the queue has ended. */
  readonly ended: Promise<string>;
  readonly #stream: ByteStream;
  readonly #subject: string;
  readonly #waiting = new Map<number, Waiting>();
  readonly #initialised = Promise.withResolvers<void>();
  readonly #resolveEnded: (reason: string) => void;
  readonly #listening: Promise<void>;
  #written: Promise<void> = Promise.resolve();
  #alignmentBytes = 0;
  #endReason: string | undefined;
  #nextId = 0;

  private constructor(stream: ByteStream, subject: string) {
    const { promise, resolve } = Promise.withResolvers<string>();
    this.ended = promise;
    this.#resolveEnded = resolve;
    this.#stream = stream;
    this.#subject = subject;
    // Its waiters get the error. Without a waiter it must not count as an unhandled rejection.
    this.#initialised.promise.catch(() => {});
    this.#listening = this.#listen();
  }

  /**
   * Starts the protocol on a new connection, which it closes when it ends.
   *
   * @param subject the other side, as `key=value`
   * @throws {VolumeError} unavailable when the other side is no NVMe/TCP target
   */
  static async open(
    stream: ByteStream,
    subject: string,
    context: CallContext,
  ): Promise<Queue> {
    const queue = new Queue(stream, subject);
    try {
      queue.#send(encodeInitRequest());
      await duringCall(queue.#initialised.promise, context.signal);
      return queue;
    } catch (error) {
      await queue[Symbol.asyncDispose]();
      throw error;
    }
  }

  /**
   * Sends a command and waits for its end.
   *
   * @throws {VolumeError} unavailable when the target refuses, with a {@linkcode StatusError} as its cause, or when the
   *   queue has ended
   * @throws {VolumeError} deadline or cancelled when the call ends first
   */
  run(command: Command, context: CallContext): Promise<Answer> {
    if (this.#endReason !== undefined) return Promise.reject(this.#gone(command, this.#endReason));
    if (this.#waiting.size >= queueDepth - 1) {
      return Promise.reject(this.#gone(command, "too many commands were not answered yet"));
    }
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const id = this.#freeId();
    const bytes = new Uint8Array(command.readBytes);
    this.#waiting.set(id, { command, bytes, received: 0, resolve, reject });
    const entry = command.entry.slice();
    viewOf(entry).setUint16(2, id, true);
    this.#send(encodeCommand(entry, command.data, this.#alignmentBytes));
    return duringCall(promise, context.signal);
  }

  /** Ends the queue; all waiting commands fail with the reason. */
  end(reason: string): void {
    if (this.#endReason !== undefined) return;
    this.#endReason = reason;
    this.#stream.close();
    this.#initialised.reject(
      new VolumeError("unavailable", `Cannot speak NVMe/TCP because ${reason}: ${this.#subject}`),
    );
    for (const { command, reject } of this.#waiting.values()) reject(this.#gone(command, reason));
    this.#waiting.clear();
    this.#resolveEnded(reason);
  }

  /** Ends the queue and waits until it is closed. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.end("it was closed here");
    await Promise.all([this.#listening, this.#written]);
  }

  async #listen(): Promise<void> {
    const splitter = new PduSplitter();
    const chunk = new Uint8Array(readChunkBytes);
    try {
      for (;;) {
        const count = await this.#stream.read(chunk);
        if (count === null) return this.end("the target closed the connection");
        for (const pdu of splitter.push(chunk.subarray(0, count))) this.#take(parseTargetPdu(pdu));
      }
    } catch (error) {
      const what = VolumeError.is(error) ? "what it sends makes no sense" : "the connection broke";
      this.end(`${what} (${messageOf(error)})`);
    }
  }

  #take(pdu: TargetPdu): void {
    if (this.#endReason !== undefined) return;
    if (pdu.kind === "terminated") {
      return this.end(`the target ended the connection because of what it was sent (${pdu.reason})`);
    }
    if ((pdu.kind === "initialised") !== (this.#alignmentBytes === 0)) {
      throw wireError("its PDUs come in the wrong order", `pdu=${pdu.kind}`);
    }
    if (pdu.kind === "initialised") {
      if (pdu.version !== 0) throw wireError("it speaks another version", `pfv=${pdu.version}`);
      if (pdu.digests) throw wireError("it wants digests that were not offered", "dgst");
      this.#alignmentBytes = pdu.alignmentBytes;
      return this.#initialised.resolve();
    }
    const waiting = this.#waiting.get(pdu.commandId);
    if (waiting === undefined) {
      throw wireError("it answers what was not asked", `pdu=${pdu.kind} cid=${pdu.commandId}`);
    }
    if (pdu.kind === "data") this.#receive(pdu, waiting);
    else this.#finish(pdu, waiting);
  }

  #receive(pdu: TargetPdu & { kind: "data" }, waiting: Waiting): void {
    const end = pdu.offset + pdu.bytes.length;
    if (pdu.offset !== waiting.received || end > waiting.bytes.length) {
      throw wireError("data comes that was not asked for", `offset=${pdu.offset} bytes=${pdu.bytes.length}`);
    }
    waiting.bytes.set(pdu.bytes, pdu.offset);
    waiting.received = end;
    if (pdu.success) this.#succeed(pdu.commandId, waiting, 0n);
  }

  #finish({ commandId, status, result }: TargetPdu & { kind: "response" }, waiting: Waiting): void {
    if (status.type === 0 && status.code === 0) return this.#succeed(commandId, waiting, result);
    const cause = new StatusError(status, result);
    const { purpose } = waiting.command;
    this.#waiting.delete(commandId);
    waiting.reject(
      new VolumeError(
        "unavailable",
        `Cannot ${purpose} because the target refused: status="${cause.message}" ${this.#subject}`,
        { cause },
      ),
    );
  }

  #succeed(commandId: number, { bytes, received, resolve }: Waiting, result: bigint): void {
    if (received !== bytes.length) {
      throw wireError("a command ended without its data", `bytes=${received} wanted=${bytes.length}`);
    }
    this.#waiting.delete(commandId);
    resolve({ result, bytes });
  }

  #send(pdu: Uint8Array): void {
    this.#written = this.#written.then(() => this.#write(pdu));
  }

  async #write(pdu: Uint8Array): Promise<void> {
    try {
      for (let at = 0; at < pdu.length && this.#endReason === undefined;) {
        at += await this.#stream.write(pdu.subarray(at));
      }
    } catch (error) {
      this.end(`the connection broke (${messageOf(error)})`);
    }
  }

  /** The id of an abandoned command stays taken until the target has answered it. */
  #freeId(): number {
    while (this.#waiting.has(this.#nextId)) this.#nextId = (this.#nextId + 1) & 0xffff;
    const id = this.#nextId;
    this.#nextId = (id + 1) & 0xffff;
    return id;
  }

  #gone(command: Command, reason: string): VolumeError {
    return new VolumeError("unavailable", `Cannot ${command.purpose} because ${reason}: ${this.#subject}`);
  }
}
