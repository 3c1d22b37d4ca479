// What Identify and Get Log Page give (NVM Express Base Specification, "Identify" and "Log Page").
import { type Command, type Outcome, putText, Refused, statuses, viewOf } from "./command.ts";
import {
  type Controller,
  maxEntries,
  maxQueues,
  type Subsystem,
  subsystemOf,
  version,
} from "./controller.ts";
import { inCapsuleBytes } from "./pdu.ts";
import { firmware } from "../model/exports.ts";

/** What an admin command may ask beside its controller. */
export interface AdminServices {
  /** The discovery log, as this host sees it. */
  discoveryLog(controller: Controller): Uint8Array;
}

/**
 * Carries out a command of an admin queue.
 *
 * @throws {Refused} when it cannot
 */
export function runAdmin(command: Command, controller: Controller, services: AdminServices): Outcome {
  switch (command.opcode) {
    case 0x02:
      return { data: readLog(command, controller, services) };
    case 0x06:
      return { data: identify(command, controller) };
    case 0x08:
      return { result: 1n }; // Not aborted: a command is over before the next one is looked at.
    case 0x09:
      return setFeatures(command, controller);
    case 0x0a:
      return getFeatures(command, controller);
    case 0x18:
      return {};
    default:
      throw new Refused(statuses.invalidOpcode, `There is no admin command ${command.opcode}.`);
  }
}

function identify(command: Command, controller: Controller): Uint8Array {
  const what = command.word(10) & 0xff;
  switch (what) {
    case 0x00:
      return command.namespaceId === 1
        ? describeNamespace(subsystemOf(controller))
        : noNamespace(command.namespaceId);
    case 0x01:
      return describeController(controller);
    case 0x02:
      return controller.subsystem === undefined ? new Uint8Array(identifyBytes) : listNamespaces(
        command.namespaceId,
      );
    case 0x03:
      return command.namespaceId === 1 ? describeIds(subsystemOf(controller)) : noNamespace(0);
    default:
      throw new Refused(statuses.invalidField, `There is nothing to identify under ${what}.`);
  }
}

/** All namespaces together have no size; one that is not there is refused. */
function noNamespace(namespaceId: number): Uint8Array {
  if (namespaceId === 0xffff_ffff) return new Uint8Array(identifyBytes);
  throw new Refused(statuses.invalidNamespace, `There is no namespace ${namespaceId}.`);
}

const maxLogBytes = 4n << 20n;

function readLog(command: Command, controller: Controller, services: AdminServices): Uint8Array {
  const length = 4n * (BigInt(command.word(10) >>> 16) + (BigInt(command.word(11) & 0xffff) << 16n) + 1n);
  const offset = command.long(12);
  if (length > maxLogBytes || offset % 4n !== 0n) {
    throw new Refused(statuses.invalidField, `No log is read from ${offset} on, ${length} bytes.`);
  }
  const log = logPage(command.word(10) & 0xff, controller, services);
  const part = new Uint8Array(Number(length));
  if (offset < BigInt(log.length)) part.set(log.subarray(Number(offset)).subarray(0, part.length));
  return part;
}

/** What is beyond the end of a page reads as zeros; so does a page on which nothing is noted. */
function logPage(page: number, controller: Controller, services: AdminServices): Uint8Array {
  switch (page) {
    case 0x01:
    case 0x02:
    case 0x03:
      return new Uint8Array(0);
    case 0x04: {
      const { changed } = controller;
      controller.changed = false;
      return Uint8Array.of(changed ? 1 : 0, 0, 0, 0);
    }
    case 0x70:
      if (controller.subsystem === undefined) return services.discoveryLog(controller);
  }
  throw new Refused(statuses.logPage, `There is no log page ${page}.`);
}

function setFeatures(command: Command, controller: Controller): Outcome {
  const value = command.word(11);
  switch (command.word(10) & 0xff) {
    case 0x07:
      return { result: grantQueues(value) };
    case 0x0b:
      controller.eventConfiguration = value;
      return {};
    case 0x0f:
      controller.keepAliveMs = value;
      controller.heard();
      return {};
  }
  throw new Refused(statuses.invalidField, "This feature cannot be set.");
}

function getFeatures(command: Command, controller: Controller): Outcome {
  switch (command.word(10) & 0xff) {
    case 0x06:
      return { result: 1n };
    case 0x07:
      return { result: grantQueues(0xffff_ffff) };
    case 0x0b:
      return { result: BigInt(controller.eventConfiguration) };
    case 0x0f:
      return { result: BigInt(controller.keepAliveMs) };
  }
  throw new Refused(statuses.invalidField, "There is no such feature.");
}

/** Two counts of queues, each less by one. */
function grantQueues(wanted: number): bigint {
  const grant = (count: number) => BigInt(Math.min(count, maxQueues - 1));
  return grant(wanted & 0xffff) | grant(wanted >>> 16) << 16n;
}

/** Length of everything that Identify gives. */
const identifyBytes = 4096;
/** Name of the discovery service, at every target. */
export const discoveryNqn = "nqn.2014-08.org.nvmexpress.discovery";

const transferExponent = 5; // 2^5 pages of 4 KiB: 128 KiB.

/** Identify Controller. */
function describeController(controller: Controller): Uint8Array {
  const { subsystem } = controller;
  const bytes = new Uint8Array(identifyBytes);
  const view = viewOf(bytes);
  // The router's own target is the kernel's, which names itself so.
  putText(bytes, 4, 20, subsystem?.serial ?? "discovery", " ");
  putText(bytes, 24, 40, "Linux", " ");
  putText(bytes, 64, 8, firmware, " ");
  view.setUint8(76, 0b11); // Several ports, several controllers.
  view.setUint8(77, transferExponent);
  view.setUint16(78, controller.id, true);
  view.setUint32(80, version, true);
  view.setUint32(92, subsystem === undefined ? 0 : 0x100, true); // Notices of changed namespaces.
  view.setUint8(111, subsystem === undefined ? 2 : 1);
  view.setUint8(258, 3);
  view.setUint8(259, 3);
  view.setUint8(260, 0b11);
  view.setUint8(261, 0b100); // Logs are read in parts, also long ones.
  view.setUint16(320, 10, true); // Keep-alive counts whole seconds.
  view.setUint8(512, 0x66);
  view.setUint8(513, 0x44);
  view.setUint16(514, maxEntries, true);
  view.setUint32(516, subsystem === undefined ? 0 : 1, true);
  view.setUint16(520, subsystem !== undefined ? 0b1100 : 0b1000, true); // Write Zeroes; Dataset Management.
  view.setUint8(525, 1); // Writes need a flush.
  view.setUint32(536, 1 | 1 << 20, true); // Scatter-gather lists, also for data in the command's own PDU.
  putText(bytes, 768, 256, subsystem?.nqn ?? discoveryNqn);
  view.setUint32(1792, (64 + inCapsuleBytes) / 16, true);
  view.setUint32(1796, 1, true);
  view.setUint8(1803, 1);
  return bytes;
}

/** Identify Namespace. */
function describeNamespace(subsystem: Subsystem): Uint8Array {
  const bytes = new Uint8Array(identifyBytes);
  const view = viewOf(bytes);
  for (const at of [0, 8, 16]) view.setBigUint64(at, subsystem.blocks, true);
  view.setUint8(30, 1); // Other controllers may have it too.
  view.setUint8(130, Math.log2(subsystem.blockBytes));
  return bytes;
}

/** The ids of the namespace, each behind its type and its length: a UUID, and the set of its commands. */
function describeIds({ uuid }: Subsystem): Uint8Array {
  const bytes = new Uint8Array(identifyBytes);
  bytes.set([3, 16, 0, 0, ...uuid, 4, 1, 0, 0, 0]);
  return bytes;
}

/** The ids of the namespaces after `after`: the first of a list that ends with a zero. */
function listNamespaces(after: number): Uint8Array {
  const bytes = new Uint8Array(identifyBytes);
  if (after < 1) bytes[0] = 1;
  return bytes;
}

/** Where a target is, as its discovery log tells it. */
interface Portal {
  readonly address: string;
  readonly port: number;
}

const recordBytes = 1024;

/** The discovery log: a header, and a record for each subsystem. */
export function describeExports(
  subsystems: readonly Subsystem[],
  generation: bigint,
  { address, port }: Portal,
): Uint8Array {
  const log = new Uint8Array(recordBytes * (1 + subsystems.length));
  const view = viewOf(log);
  view.setBigUint64(0, generation, true);
  view.setBigUint64(8, BigInt(subsystems.length), true);
  subsystems.forEach(({ nqn }, index) => {
    const at = recordBytes * (1 + index);
    // TCP, the family, an NVM subsystem, whose flow control of queues may be off.
    log.set([3, address.includes(":") ? 2 : 1, 2, 4], at);
    view.setUint16(at + 4, port, true);
    view.setUint16(at + 6, 0xffff, true);
    view.setUint16(at + 8, 32, true);
    putText(log, at + 32, 32, String(port), " ");
    putText(log, at + 256, 256, nqn);
    putText(log, at + 512, 256, address, " ");
  });
  return log;
}
