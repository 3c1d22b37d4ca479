import { type AdminServices, runAdmin } from "./admin_commands.ts";
import { type Command, fabricsOpcode, type Outcome, parseCommand, Refused, statuses } from "./command.ts";
import { type Controller, type ControllerQueue, maxEntries, subsystemOf } from "./controller.ts";
import {
  type ConnectRequest,
  fabricsTypes,
  readConnect,
  runProperty,
  wrongData,
  wrongEntry,
} from "./fabrics_commands.ts";
import { runIo } from "./io_commands.ts";
import {
  encodeCompletion,
  encodeData,
  encodeInitialised,
  encodeReadyToTransfer,
  encodeTermination,
  fatal,
  type HostPdu,
  HostStream,
  ProtocolError,
  transferBytes,
} from "./pdu.ts";

/** What a connection needs of its target. */
export interface ConnectionServices extends AdminServices {
  /**
   * Finds or makes the controller that a queue is to belong to.
   *
   * @throws {Refused} when the host may not have it
   */
  admit(request: ConnectRequest): Controller;
}

/** What is used of `Deno.TcpConn`. */
export interface Socket {
  read(into: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
  close(): void;
}

interface Transfer {
  readonly command: Command;
  readonly data: Uint8Array;
  received: number;
}

/** A connection that has become a queue. */
interface Membership {
  readonly controller: Controller;
  readonly queueId: number;
  readonly entries: number;
  readonly withoutFlowControl: boolean;
}

const readChunkBytes = 64 * 1024;
const eventRequest = 0x0c;

/** One connection of a host: first a stream of PDUs, then one queue of a controller. */
export class Connection implements ControllerQueue {
  /** Resolves when nothing of it is left. */
  readonly done: Promise<void>;
  readonly #socket: Socket;
  readonly #services: ConnectionServices;
  readonly #transfers = new Map<number, Transfer>();
  #alignmentBytes = 0;
  #membership: Membership | undefined;
  #queueHead = 0;
  #nextTag = 0;
  #closed = false;
  #written: Promise<void> = Promise.resolve();

  constructor(socket: Socket, services: ConnectionServices) {
    this.#socket = socket;
    this.#services = services;
    this.done = this.#serve();
  }

  /** Ends it at once: no command is carried out any more. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#socket.close();
    this.#membership?.controller.leave(this.#membership.queueId);
  }

  async #serve(): Promise<void> {
    const stream = new HostStream();
    const chunk = new Uint8Array(readChunkBytes);
    try {
      for (
        let count = await this.#socket.read(chunk);
        count !== null;
        count = await this.#socket.read(chunk)
      ) {
        for (const pdu of stream.push(chunk.subarray(0, count))) {
          if (this.#closed) return;
          await this.#take(pdu);
        }
      }
    } catch (error) {
      if (error instanceof ProtocolError) await this.#send(encodeTermination(error.status));
      else if (!isOfSocket(error)) throw error;
    } finally {
      this.close();
      await this.#written;
    }
  }

  async #take(pdu: HostPdu): Promise<void> {
    if ((pdu.kind === "initialise") !== (this.#alignmentBytes === 0)) {
      throw new ProtocolError(fatal.sequence, "PDUs come in the wrong order.");
    }
    switch (pdu.kind) {
      case "initialise":
        if (pdu.version !== 0) throw new ProtocolError(fatal.parameter, "There is only version 0.");
        this.#alignmentBytes = pdu.alignmentBytes;
        return await this.#send(encodeInitialised());
      case "command":
        return await this.#begin(parseCommand(pdu.entry), pdu.data);
      case "data":
        return await this.#receive(pdu);
      case "terminated":
        return this.close();
    }
  }

  /** Carries out a command, unless its data has to be asked for first. */
  async #begin(command: Command, capsule: Uint8Array): Promise<void> {
    const { length, offset, unknown } = command.data;
    if (unknown) return await this.#refuse(command, statuses.descriptorType);
    if (command.direction !== "to-target" || length === 0) {
      return await this.#run(command, new Uint8Array(0));
    }
    if (length > transferBytes) return await this.#refuse(command, statuses.dataLength);
    if (offset === undefined) return await this.#askForData(command, length);
    if (offset + BigInt(length) > BigInt(capsule.length)) {
      return await this.#refuse(command, statuses.dataLength);
    }
    await this.#run(command, capsule.subarray(Number(offset), Number(offset) + length));
  }

  async #askForData(command: Command, length: number): Promise<void> {
    if (this.#transfers.size >= maxEntries) {
      throw new ProtocolError(fatal.outOfRange, "The host has more commands than the queue has entries.");
    }
    while (this.#transfers.has(this.#nextTag)) this.#nextTag = (this.#nextTag + 1) & 0xffff;
    const tag = this.#nextTag;
    this.#nextTag = (tag + 1) & 0xffff;
    this.#transfers.set(tag, { command, data: new Uint8Array(length), received: 0 });
    await this.#send(encodeReadyToTransfer(command.id, tag, length));
  }

  async #receive(pdu: HostPdu & { kind: "data" }): Promise<void> {
    const transfer = this.#transfers.get(pdu.tag);
    if (transfer === undefined || transfer.command.id !== pdu.commandId) {
      throw new ProtocolError(fatal.header, `No data was asked for under ${pdu.tag}.`);
    }
    const end = pdu.offset + pdu.bytes.length;
    if (pdu.offset !== transfer.received || end > transfer.data.length) {
      throw new ProtocolError(fatal.outOfRange, `Data from ${pdu.offset} to ${end} was not asked for.`);
    }
    transfer.data.set(pdu.bytes, pdu.offset);
    transfer.received = end;
    if (pdu.last !== (end === transfer.data.length)) {
      throw new ProtocolError(fatal.header, "Data ends too early, or not where it says.");
    }
    if (!pdu.last) return;
    this.#transfers.delete(pdu.tag);
    await this.#run(transfer.command, transfer.data);
  }

  async #run(command: Command, data: Uint8Array): Promise<void> {
    try {
      const outcome = await this.#execute(command, data);
      if (outcome !== undefined) await this.#answer(command, outcome);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      await this.#refuse(command, error.status, error.result);
    }
  }

  /** Undefined when the answer comes later. */
  #execute(command: Command, data: Uint8Array): Outcome | undefined | Promise<Outcome> {
    const membership = this.#membership;
    if (command.opcode === fabricsOpcode && command.fabricsType === fabricsTypes.connect) {
      return this.#connect(readConnect(command, data));
    }
    if (membership === undefined) throw new Refused(statuses.sequence, "Connect comes first.");
    const { controller, queueId } = membership;
    if (queueId === 0) controller.heard();
    if (command.opcode === fabricsOpcode) return runProperty(command, controller);
    if (!controller.enabled) throw new Refused(statuses.sequence, "The controller is not enabled.");
    if (queueId !== 0) return runIo(command, data, subsystemOf(controller));
    if (command.opcode !== eventRequest) return runAdmin(command, controller, this.#services);
    controller.awaitEvent((result) => void this.#answer(command, { result }));
    return undefined;
  }

  #connect(request: ConnectRequest): Outcome {
    const { queueId, entries, withoutFlowControl } = request;
    if (this.#membership !== undefined) throw new Refused(statuses.sequence, "It is connected already.");
    if (entries < 2 || entries > maxEntries) throw wrongEntry("entries");
    const controller = this.#services.admit(request);
    if (controller.queues.has(queueId)) throw wrongEntry("queueId");
    if (queueId !== 0 && !controller.enabled) throw wrongData("controllerId");
    controller.queues.set(queueId, this);
    this.#membership = { controller, queueId, entries, withoutFlowControl };
    return { result: BigInt(controller.id) };
  }

  async #answer(command: Command, { result = 0n, data }: Outcome): Promise<void> {
    if (data === undefined) return await this.#complete(command, statuses.success, result);
    if (data.length !== command.data.length) return await this.#refuse(command, statuses.dataLength);
    const succeeds = this.#membership?.withoutFlowControl ?? false;
    const pdu = encodeData(command.id, data, this.#alignmentBytes, succeeds);
    if (succeeds) this.#advanceHead();
    await this.#send(pdu);
    if (!succeeds) await this.#complete(command, statuses.success, result);
  }

  #refuse(command: Command, status: number, result = 0n): Promise<void> {
    return this.#complete(command, status, result);
  }

  async #complete(command: Command, status: number, result: bigint): Promise<void> {
    const queueHead = this.#advanceHead();
    const queueId = this.#membership?.queueId ?? 0;
    await this.#send(encodeCompletion({ commandId: command.id, status, result, queueId, queueHead }));
  }

  #advanceHead(): number {
    const { entries, withoutFlowControl } = this.#membership ?? { entries: 2, withoutFlowControl: false };
    this.#queueHead = (this.#queueHead + 1) % entries;
    return withoutFlowControl ? 0xffff : this.#queueHead;
  }

  /** Answers go out one after the other, also those that nobody has just asked for. */
  #send(bytes: Uint8Array): Promise<void> {
    this.#written = this.#written.then(() => this.#write(bytes));
    return this.#written;
  }

  async #write(bytes: Uint8Array): Promise<void> {
    try {
      for (let at = 0; at < bytes.length && !this.#closed;) {
        at += await this.#socket.write(bytes.subarray(at));
      }
    } catch (error) {
      if (!isOfSocket(error)) throw error;
      this.close();
    }
  }
}

/** Whether an error only says that the host is gone, or that the connection was closed here. */
function isOfSocket(error: unknown): boolean {
  return Object.values(Deno.errors).some((kind) => error instanceof kind);
}
