// The commands that a host sends (NVM Express Base Specification, "Submission Queue Entry" and the chapters on each
// command).

import { entryBytes } from "./pdu.ts";
import { viewOf } from "./wire.ts";

/** A command without its id. */
export interface Command {
  /** Its purpose, as the words after "Cannot" in a message. */
  readonly purpose: string;
  /** The submission queue entry. */
  readonly entry: Uint8Array;
  /** Data to send with it; empty for most commands. */
  readonly data: Uint8Array;
  /** How many bytes it reads. */
  readonly readBytes: number;
}

/** The fields of a Connect. */
export interface ConnectCommand {
  readonly queueId: number;
  /** Entries in the queue. */
  readonly depth: number;
  /** 0xffff requests a new controller. */
  readonly controllerId: number;
  /** 0 for no keep-alive. */
  readonly keepAliveMs: number;
  readonly nqn: string;
  readonly hostNqn: string;
  /** 16 bytes. */
  readonly hostId: Uint8Array;
}

/** The controller id that requests a new controller in {@linkcode ConnectCommand}. */
export const anyController = 0xffff;
/** Longest NQN, in bytes. */
export const longestNqnBytes = 223;

/** The properties of a controller, by their offset. */
export const properties = { capabilities: 0x00, configuration: 0x14, status: 0x1c } as const;

const opcodes = {
  flush: 0x00,
  write: 0x01,
  read: 0x02,
  getLogPage: 0x02,
  identify: 0x06,
  datasetManagement: 0x09,
  setFeatures: 0x09,
  keepAlive: 0x18,
  fabrics: 0x7f,
} as const;
const fabrics = { propertySet: 0x00, connect: 0x01, propertyGet: 0x04 } as const;
const scatterGather = { inCapsule: 0x01, transport: 0x5a } as const;
const nothing = new Uint8Array(0);

/** Creates a queue, and with queue 0 a controller. */
export function connectCommand(connect: ConnectCommand): Command {
  const data = new Uint8Array(1024);
  data.set(connect.hostId, 0);
  viewOf(data).setUint16(16, connect.controllerId, true);
  data.set(new TextEncoder().encode(connect.nqn), 256);
  data.set(new TextEncoder().encode(connect.hostNqn), 512);
  const { entry, view } = makeEntry(opcodes.fabrics, data.length, scatterGather.inCapsule);
  view.setUint8(4, fabrics.connect);
  view.setUint16(42, connect.queueId, true);
  view.setUint16(44, connect.depth - 1, true);
  view.setUint32(48, connect.keepAliveMs, true);
  return { purpose: "connect to the NVMe subsystem", entry, data, readBytes: 0 };
}

/** Reads a property of four or eight bytes. */
export function getProperty(offset: number, bytes: 4 | 8): Command {
  const { entry, view } = makeEntry(opcodes.fabrics);
  view.setUint8(4, fabrics.propertyGet);
  view.setUint8(40, bytes === 8 ? 1 : 0);
  view.setUint32(44, offset, true);
  return { purpose: "read a property of the NVMe controller", entry, data: nothing, readBytes: 0 };
}

/** Writes a property of four bytes. */
export function setProperty(offset: number, value: number): Command {
  const { entry, view } = makeEntry(opcodes.fabrics);
  view.setUint8(4, fabrics.propertySet);
  view.setUint32(44, offset, true);
  view.setUint32(48, value, true);
  return { purpose: "set a property of the NVMe controller", entry, data: nothing, readBytes: 0 };
}

/** What Identify can return: the value of its CNS field. */
export const identifications = { namespace: 0, controller: 1, activeNamespaces: 2, descriptors: 3 } as const;

/** Makes an Identify command; every answer has 4096 bytes. */
export function identify(what: keyof typeof identifications, namespaceId: number): Command {
  const { entry, view } = makeEntry(opcodes.identify, 4096);
  view.setUint32(4, namespaceId, true);
  view.setUint8(40, identifications[what]);
  return { purpose: `identify the NVMe ${what}`, entry, data: nothing, readBytes: 4096 };
}

/** Requests so many pairs of I/O queues. */
export function requestQueues(count: number): Command {
  const { entry, view } = makeEntry(opcodes.setFeatures);
  view.setUint8(40, 0x07);
  view.setUint16(44, count - 1, true);
  view.setUint16(46, count - 1, true);
  return { purpose: "agree on NVMe queues", entry, data: nothing, readBytes: 0 };
}

/** Shows the target that the host is still there. */
export function keepAlive(): Command {
  return { purpose: "keep alive", entry: makeEntry(opcodes.keepAlive).entry, data: nothing, readBytes: 0 };
}

/** Reads a part of the discovery log; offset and length are multiples of four. */
export function readDiscoveryLog(offset: number, bytes: number): Command {
  const { entry, view } = makeEntry(opcodes.getLogPage, bytes);
  const text = bytes / 4 - 1;
  view.setUint8(40, 0x70);
  view.setUint16(42, text & 0xffff, true);
  view.setUint16(44, text >>> 16, true);
  view.setBigUint64(48, BigInt(offset), true);
  return { purpose: "read the NVMe discovery log", entry, data: nothing, readBytes: bytes };
}

/** Reads blocks of namespace 1. */
export function readBlocks(lba: bigint, blocks: number, bytes: number): Command {
  const { entry, view } = makeEntry(opcodes.read, bytes);
  view.setUint32(4, 1, true);
  view.setBigUint64(40, lba, true);
  view.setUint16(48, blocks - 1, true);
  return { purpose: `read ${blocks} blocks at ${lba}`, entry, data: nothing, readBytes: bytes };
}

/** Writes blocks of namespace 1; the data goes in the command's own PDU. */
export function writeBlocks(lba: bigint, blocks: number, data: Uint8Array): Command {
  const { entry, view } = makeEntry(opcodes.write, data.length, scatterGather.inCapsule);
  view.setUint32(4, 1, true);
  view.setBigUint64(40, lba, true);
  view.setUint16(48, blocks - 1, true);
  return { purpose: `write ${blocks} blocks at ${lba}`, entry, data, readBytes: 0 };
}

/** Makes what was written to namespace 1 outlast a loss of power. */
export function flush(): Command {
  const { entry, view } = makeEntry(opcodes.flush);
  view.setUint32(4, 1, true);
  return { purpose: "flush what was written", entry, data: nothing, readBytes: 0 };
}

/** Discards blocks of namespace 1: Dataset Management of one range, with the attribute Deallocate. */
export function discardBlocks(lba: bigint, blocks: number): Command {
  const data = new Uint8Array(16);
  viewOf(data).setUint32(4, blocks, true);
  viewOf(data).setBigUint64(8, lba, true);
  const { entry, view } = makeEntry(opcodes.datasetManagement, data.length, scatterGather.inCapsule);
  view.setUint32(4, 1, true);
  view.setUint32(44, 0b100, true);
  return { purpose: `discard ${blocks} blocks at ${lba}`, entry, data, readBytes: 0 };
}

function makeEntry(opcode: number, bytes = 0, descriptor: number = scatterGather.transport) {
  const entry = new Uint8Array(entryBytes);
  const view = viewOf(entry);
  view.setUint8(0, opcode);
  view.setUint8(1, 0x40); // Data is described by a scatter-gather list: NVMe/TCP supports nothing else.
  view.setUint32(32, bytes, true);
  view.setUint8(39, descriptor);
  return { entry, view };
}
