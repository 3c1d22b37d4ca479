import { systemClock } from "../host/clock.ts";
import { VolumeError } from "../volume/errors.ts";
import type { CallContext, Clock } from "../volume/ports/system.ts";
import { describeAddress, parseAddress, type SubsystemAddress, type WireAddress } from "./address.ts";
import {
  discardBlocks,
  flush,
  identify,
  keepAlive,
  readBlocks,
  requestQueues,
  writeBlocks,
} from "./commands.ts";
import {
  connectQueue,
  type Controller,
  type HostAdapters,
  openController,
  openQueue,
  withinLimit,
} from "./controller.ts";
import { parseActiveNamespaces, parseDescriptors, parseNamespace } from "./identity.ts";
import type { NamespaceIdentity } from "./identity.ts";
import type { Queue } from "./queue.ts";
import { type Status, StatusError } from "./command_status.ts";

/** A live connection of this process, as a host, to one subsystem. It writes only what its caller passes to it. */
export interface HostConnection extends AsyncDisposable {
  /** Resolves with the reason when the connection has ended, on either side. */
  readonly ended: Promise<string>;
  /** Serial number of the subsystem, read when the connection was made. */
  readonly serial: string;
  /** Whether the target said, when the connection was made, that it takes discards. */
  readonly takesDiscards: boolean;
  /**
   * Size of namespace 1 in bytes, read from the target now.
   *
   * @throws {VolumeError} unavailable when the connection has ended, or there is no namespace 1
   */
  namespaceBytes(context: CallContext): Promise<bigint>;
  /**
   * Size of a block of namespace 1 in bytes, read from the target now.
   *
   * @throws {VolumeError} unavailable when the connection has ended, or there is no namespace 1
   */
  blockBytes(context: CallContext): Promise<number>;
  /**
   * Identity of namespace 1, each in lower-case hex, "" where all zero.
   *
   * @throws {VolumeError} unavailable when the connection has ended, or there is no namespace 1
   */
  namespaceIdentity(
    context: CallContext,
  ): Promise<{ readonly nguid: string; readonly eui64: string; readonly uuid: string }>;
  /**
   * Ids of the active namespaces, ascending.
   *
   * @throws {VolumeError} unavailable when the connection has ended
   */
  namespaces(context: CallContext): Promise<readonly number[]>;
  /**
   * Sends a keep-alive and waits for the answer, to check that the target still serves this controller.
   *
   * @throws {VolumeError} unavailable when the connection has ended
   */
  keepAlive(context: CallContext): Promise<void>;
  /**
   * Reads blocks of namespace 1 through the I/O queue.
   *
   * @throws {VolumeError} unavailable when the connection has ended, or the target does not read them
   * @throws {VolumeError} invalid when no blocks are requested, more than 16 MiB, or blocks that no device has
   */
  read(lba: bigint, blocks: number, context: CallContext): Promise<Uint8Array>;
  /**
   * Writes whole blocks of namespace 1 through the I/O queue. They may be lost until {@linkcode HostConnection.flush}.
   *
   * @throws {VolumeError} unavailable when the connection has ended, or the target does not write them, or takes no data in
   * the PDU of a command
   * @throws {VolumeError} invalid when it is given no whole blocks, more than 16 MiB, or blocks that no device has
   */
  write(lba: bigint, data: Uint8Array, context: CallContext): Promise<void>;
  /**
   * Makes what was written outlast a loss of power.
   *
   * @throws {VolumeError} unavailable when the connection has ended, or the target refuses
   */
  flush(context: CallContext): Promise<void>;
  /**
   * Discards blocks of namespace 1: what they hold is lost.
   *
   * @throws {VolumeError} unavailable when the connection has ended, or the target refuses
   * @throws {VolumeError} invalid when there are no such blocks
   */
  discard(lba: bigint, blocks: number, context: CallContext): Promise<void>;
}

/** Blocks are read in commands of at most so many bytes. */
const transferBytes = 128 * 1024;
const maxCallBytes = 16 * 1024 * 1024;
/** Writes under way at the same time: few enough for any queue. */
const writesAtOnce = 16;
const namespaceId = 1;
const invalidNamespace: Status = { type: 0, code: 0x0b, doNotRetry: true };

/**
 * Connects to a subsystem in this process, with an admin queue and one I/O queue, and keeps the connection alive until
 * it is disposed of. It needs no kernel module and no privilege.
 *
 * @throws {VolumeError} invalid when the address is invalid
 * @throws {VolumeError} unavailable when the target cannot be reached, or refuses; `refusalOf` returns why
 * @throws {VolumeError} deadline or cancelled when the call ends first
 */
export async function connectSubsystem(
  address: SubsystemAddress,
  context: CallContext,
  adapters: HostAdapters = {},
): Promise<HostConnection> {
  const where = parseAddress(address);
  const parts = { clock: systemClock, keepAliveMs: 30_000, ...adapters };
  return await withinLimit(where, context, parts, async (limited) => {
    const controller = await openController(where, parts.keepAliveMs, limited, parts);
    try {
      return new TcpHostConnection(where, controller, await openIo(where, controller, limited, parts), parts);
    } catch (error) {
      await controller.admin[Symbol.asyncDispose]();
      throw error;
    }
  });
}

async function openIo(
  where: WireAddress,
  { admin, id }: Controller,
  context: CallContext,
  parts: HostAdapters & { readonly clock: Clock },
): Promise<Queue> {
  await admin.run(requestQueues(1), context);
  const io = await openQueue(where, context, parts);
  try {
    await connectQueue(io, where, { queueId: 1, controllerId: id, keepAliveMs: 0 }, context);
    return io;
  } catch (error) {
    await io[Symbol.asyncDispose]();
    throw error;
  }
}

function assertRange(lba: bigint, blocks: number, most: number): void {
  const countable = Number.isInteger(blocks) && blocks >= 1 && blocks <= most;
  // A number above 64 bits would silently become another block.
  if (countable && lba >= 0n && lba + BigInt(blocks) <= 1n << 64n) return;
  throw new VolumeError(
    "invalid",
    `Cannot use NVMe blocks because there are none like these: lba=${lba} blocks=${blocks} most=${most}`,
  );
}

class TcpHostConnection implements HostConnection {
  readonly ended: Promise<string>;
  readonly serial: string;
  readonly takesDiscards: boolean;
  readonly #where: WireAddress;
  readonly #admin: Queue;
  readonly #io: Queue;
  readonly #clock: Clock;
  readonly #keepAliveMs: number;
  readonly #longestTransferBytes: number;
  readonly #inCapsuleBytes: number;
  #stopTimer = () => {};
  #over = false;

  constructor(
    where: WireAddress,
    { admin, identity }: Controller,
    io: Queue,
    parts: { readonly clock: Clock; readonly keepAliveMs: number },
  ) {
    this.#where = where;
    this.#admin = admin;
    this.#io = io;
    this.#clock = parts.clock;
    this.#keepAliveMs = parts.keepAliveMs;
    this.serial = identity.serial;
    this.takesDiscards = identity.takesDiscards;
    this.#longestTransferBytes = Math.min(transferBytes, identity.longestTransferBytes);
    this.#inCapsuleBytes = Math.min(this.#longestTransferBytes, identity.inCapsuleBytes);
    this.ended = Promise.race([admin.ended, io.ended]).then((reason) => {
      this.#end(reason);
      return reason;
    });
    this.#stayAlive();
  }

  async namespaceBytes(context: CallContext): Promise<bigint> {
    return (await this.#namespace(context)).sizeBytes;
  }

  async blockBytes(context: CallContext): Promise<number> {
    return (await this.#namespace(context)).blockBytes;
  }

  async namespaceIdentity(context: CallContext) {
    const { nguid, eui64 } = await this.#namespace(context);
    const descriptors = await this.#descriptors(context);
    return {
      nguid: nguid || descriptors.nguid,
      eui64: eui64 || descriptors.eui64,
      uuid: descriptors.uuid,
    };
  }

  async namespaces(context: CallContext): Promise<readonly number[]> {
    return parseActiveNamespaces((await this.#admin.run(identify("activeNamespaces", 0), context)).bytes);
  }

  async keepAlive(context: CallContext): Promise<void> {
    await this.#admin.run(keepAlive(), context);
  }

  async read(lba: bigint, blocks: number, context: CallContext): Promise<Uint8Array> {
    const { blockBytes } = await this.#namespace(context);
    assertRange(lba, blocks, maxCallBytes / blockBytes);
    const whole = new Uint8Array(blocks * blockBytes);
    const step = Math.max(1, Math.floor(this.#longestTransferBytes / blockBytes));
    for (let at = 0; at < blocks; at += step) {
      const count = Math.min(step, blocks - at);
      const command = readBlocks(lba + BigInt(at), count, count * blockBytes);
      whole.set((await this.#io.run(command, context)).bytes, at * blockBytes);
    }
    return whole;
  }

  async write(lba: bigint, data: Uint8Array, context: CallContext): Promise<void> {
    const { blockBytes } = await this.#namespace(context);
    const blocks = data.length / blockBytes;
    assertRange(lba, blocks, maxCallBytes / blockBytes);
    const step = Math.floor(this.#inCapsuleBytes / blockBytes);
    if (step === 0) {
      throw new VolumeError(
        "unavailable",
        "Cannot write NVMe blocks because the target takes no data with a command: " +
          `${describeAddress(this.#where)}`,
      );
    }
    const writeFrom = async (at: number) => {
      if (at >= blocks) return;
      const count = Math.min(step, blocks - at);
      const part = data.subarray(at * blockBytes, (at + count) * blockBytes);
      await this.#io.run(writeBlocks(lba + BigInt(at), count, part), context);
    };
    for (let at = 0; at < blocks; at += writesAtOnce * step) {
      await Promise.all(Array.from({ length: writesAtOnce }, (_, index) => writeFrom(at + index * step)));
    }
  }

  async flush(context: CallContext): Promise<void> {
    await this.#io.run(flush(), context);
  }

  async discard(lba: bigint, blocks: number, context: CallContext): Promise<void> {
    assertRange(lba, blocks, 0xffff_ffff);
    await this.#io.run(discardBlocks(lba, blocks), context);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end("it was closed here");
    await Promise.all([this.#admin[Symbol.asyncDispose](), this.#io[Symbol.asyncDispose](), this.ended]);
  }

  async #namespace(context: CallContext): Promise<NamespaceIdentity> {
    const { bytes } = await this.#admin.run(identify("namespace", namespaceId), context);
    const namespace = parseNamespace(bytes);
    if (namespace !== undefined) return namespace;
    throw new VolumeError(
      "unavailable",
      `Cannot find namespace ${namespaceId} because the subsystem has none: ${describeAddress(this.#where)}`,
      // A target answers zeros for a missing namespace, without a status (NVM Express Base Specification, "Identify
      // Namespace").
      { cause: new StatusError(invalidNamespace, 0n) },
    );
  }

  /** Targets before NVMe 1.3 have no descriptors. */
  async #descriptors(context: CallContext) {
    try {
      return parseDescriptors((await this.#admin.run(identify("descriptors", namespaceId), context)).bytes);
    } catch (error) {
      if (VolumeError.is(error) && error.cause instanceof StatusError) {
        return { eui64: "", nguid: "", uuid: "" };
      }
      throw error;
    }
  }

  #end(reason: string): void {
    this.#over = true;
    this.#stopTimer();
    this.#admin.end(reason);
    this.#io.end(reason);
  }

  #stayAlive(): void {
    if (this.#over) return;
    this.#stopTimer = this.#clock.timer(this.#keepAliveMs / 2, () => void this.#reportAlive());
  }

  async #reportAlive(): Promise<void> {
    this.#stopTimer = this.#clock.timer(
      this.#keepAliveMs,
      () => this.#end("the target does not answer any more"),
    );
    const signal = new AbortController().signal;
    try {
      await this.keepAlive({ requestId: "keep-alive", signal });
    } catch (error) {
      // A refusal is an answer; any other error means that the queue has ended.
      if (!VolumeError.is(error) || !(error.cause instanceof StatusError)) return;
    }
    this.#stopTimer();
    this.#stayAlive();
  }
}
