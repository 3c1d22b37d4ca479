import { type Command, type Outcome, Refused, statuses } from "./command.ts";
import { type Controller, mostQueues, subsystemOf } from "./controller.ts";
import {
  describeController,
  describeIds,
  describeNamespace,
  identifyBytes,
  listNamespaces,
} from "./structures.ts";

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

const mostLogBytes = 4n << 20n;

function readLog(command: Command, controller: Controller, services: AdminServices): Uint8Array {
  const length = 4n * (BigInt(command.word(10) >>> 16) + (BigInt(command.word(11) & 0xffff) << 16n) + 1n);
  const offset = command.long(12);
  if (length > mostLogBytes || offset % 4n !== 0n) {
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
  const grant = (count: number) => BigInt(Math.min(count, mostQueues - 1));
  return grant(wanted & 0xffff) | grant(wanted >>> 16) << 16n;
}
