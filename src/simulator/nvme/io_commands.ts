import { type Command, type Outcome, Refused, statuses, viewOf } from "./command.ts";
import { transferBytes } from "./pdu.ts";
import type { Storage } from "./storage.ts";
import type { Subsystem } from "./controller.ts";

/**
 * Carries out a command of an I/O queue (NVM Command Set Specification). What it reads or writes is done when this
 * returns; only a flush takes longer.
 *
 * @throws {Refused} when it cannot
 */
export function runIo(command: Command, data: Uint8Array, subsystem: Subsystem): Outcome | Promise<Outcome> {
  const all = command.opcode === 0x00 && command.namespaceId === 0xffff_ffff;
  if (command.namespaceId !== 1 && !all) {
    throw new Refused(statuses.invalidNamespace, `There is no namespace ${command.namespaceId}.`);
  }
  const { storage } = subsystem;
  switch (command.opcode) {
    case 0x00:
      return storage.flush().then(() => ({}));
    case 0x01: {
      const { offset, length } = rangeOf(command, subsystem);
      assertTransfer(length, data.length);
      storage.write(offset, data);
      return {};
    }
    case 0x02: {
      const { offset, length } = rangeOf(command, subsystem);
      assertTransfer(length, command.data.length);
      return { data: storage.read(offset, length) };
    }
    case 0x08: {
      const { offset, length } = rangeOf(command, subsystem);
      writeZeros(storage, offset, length);
      return {};
    }
    case 0x09:
      manageDataset(command, data, subsystem);
      return {};
    default:
      throw new Refused(statuses.invalidOpcode, `There is no I/O command ${command.opcode}.`);
  }
}

const rangeBytes = 16;

/** Discards the ranges of a Dataset Management command; its other attributes are hints that change nothing. */
function manageDataset(command: Command, data: Uint8Array, subsystem: Subsystem): void {
  const count = (command.word(10) & 0xff) + 1;
  assertTransfer(count * rangeBytes, data.length);
  const view = viewOf(data);
  const ranges = Array.from({ length: count }, (_, index) => {
    const at = index * rangeBytes;
    const [first, blocks] = [view.getBigUint64(at + 8, true), BigInt(view.getUint32(at + 4, true))];
    return spanOf(first, blocks, subsystem);
  });
  const deallocates = (command.word(11) & 0b100) !== 0;
  if (!deallocates) return;
  for (const { offset, length } of ranges) subsystem.storage.discard(offset, length);
}

/** What is zero already is left alone: holes stay holes. */
function writeZeros(storage: Storage, offset: number, length: number): void {
  for (let at = 0; at < length; at += transferBytes) {
    const old = storage.read(offset + at, Math.min(transferBytes, length - at));
    if (old.some((byte) => byte !== 0)) storage.write(offset + at, old.fill(0));
  }
}

function rangeOf(
  command: Command,
  subsystem: Subsystem,
): { readonly offset: number; readonly length: number } {
  return spanOf(command.long(10), BigInt(command.word(12) & 0xffff) + 1n, subsystem);
}

function spanOf(
  first: bigint,
  blocks: bigint,
  subsystem: Subsystem,
): { readonly offset: number; readonly length: number } {
  if (first + blocks > subsystem.blocks) {
    throw new Refused(statuses.outOfRange, `There are no blocks ${first} to ${first + blocks}.`);
  }
  const { blockBytes } = subsystem;
  return { offset: Number(first) * blockBytes, length: Number(blocks) * blockBytes };
}

function assertTransfer(length: number, given: number): void {
  if (length > transferBytes) throw new Refused(statuses.invalidField, `${length} bytes are too many.`);
  if (length !== given) throw new Refused(statuses.dataLength, `${given} bytes are given for ${length}.`);
}
