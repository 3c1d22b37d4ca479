import { type Command, getText, type Outcome, Refused, statuses, viewOf } from "./command.ts";
import { capabilities, type Controller, version } from "./controller.ts";

/** What a host says when it connects a queue. */
export interface ConnectRequest {
  readonly queueId: number;
  readonly entries: number;
  /** The host does not want to be told how far its queue has been read. */
  readonly withoutFlowControl: boolean;
  readonly keepAliveMs: number;
  /** 0xffff wants a new controller. */
  readonly controllerId: number;
  readonly nqn: string;
  readonly hostNqn: string;
}

/** Kinds of fabrics commands. */
export const fabricsTypes = { propertySet: 0x00, connect: 0x01, propertyGet: 0x04 } as const;

const connectBytes = 1024;

/**
 * Reads a Connect.
 *
 * @throws {Refused} when it makes no sense
 */
export function readConnect(command: Command, data: Uint8Array): ConnectRequest {
  if (data.length !== connectBytes) {
    throw new Refused(statuses.dataLength, `Connect comes with ${data.length} bytes of data.`);
  }
  if ((command.word(10) & 0xffff) !== 0) {
    throw new Refused(statuses.connectFormat, "There is no such format.");
  }
  const [nqn, hostNqn] = [getText(data.subarray(256, 512)), getText(data.subarray(512, 768))];
  if (nqn === undefined) throw wrongData("nqn");
  if (hostNqn === undefined || hostNqn === "") throw wrongData("hostNqn");
  return {
    queueId: command.word(10) >>> 16,
    entries: (command.word(11) & 0xffff) + 1,
    withoutFlowControl: (command.word(11) >>> 16 & 0x04) !== 0,
    keepAliveMs: command.word(12),
    controllerId: viewOf(data).getUint16(16, true),
    nqn,
    hostNqn,
  };
}

const dataOffsets = { controllerId: 16n, nqn: 256n, hostNqn: 512n } as const;
const entryOffsets = { queueId: 42n, entries: 44n } as const;

/** Something in the data of a Connect is wrong: its place is told. */
export function wrongData(field: keyof typeof dataOffsets): Refused {
  return new Refused(statuses.connectParameters, `The ${field} is wrong.`, 1n << 16n | dataOffsets[field]);
}

/** Something in a Connect itself is wrong: its place is told. */
export function wrongEntry(field: keyof typeof entryOffsets): Refused {
  return new Refused(statuses.connectParameters, `The ${field} is wrong.`, entryOffsets[field]);
}

/** The host may not connect. */
export function wrongHost(): Refused {
  return new Refused(statuses.connectHost, "This host may not connect.", 1n << 16n | dataOffsets.hostNqn);
}

/**
 * Reads or sets a property of a controller.
 *
 * @throws {Refused} when there is none like it
 */
export function runProperty(command: Command, controller: Controller): Outcome {
  const [offset, long] = [command.word(11), (command.word(10) & 0xff) === 1];
  if (command.fabricsType === fabricsTypes.propertySet) {
    if (offset !== 0x14 || long) throw new Refused(statuses.invalidField, "This property cannot be set.");
    controller.configuration = command.word(12);
    return {};
  }
  if (command.fabricsType !== fabricsTypes.propertyGet) {
    throw new Refused(statuses.invalidOpcode, `There is no fabrics command ${command.fabricsType}.`);
  }
  if (long && offset === 0x00) return { result: capabilities };
  const value = long ? undefined : shortProperty(offset, controller);
  if (value === undefined) throw new Refused(statuses.invalidField, `There is no property ${offset}.`);
  return { result: BigInt(value) };
}

function shortProperty(offset: number, controller: Controller): number | undefined {
  switch (offset) {
    case 0x08:
      return version;
    case 0x14:
      return controller.configuration >>> 0;
    case 0x1c:
      return controller.status;
    default:
      return undefined;
  }
}
