// What Identify and Get Log Page give (NVM Express Base Specification, "Identify" and "Log Page").

import { putText, viewOf } from "./bytes.ts";
import { type Controller, mostEntries, version } from "./controller.ts";
import { inCapsuleBytes } from "./pdu.ts";
import type { Subsystem } from "./subsystem.ts";

/** Length of everything that Identify gives. */
export const identifyBytes = 4096;
/** Name of the discovery service, at every target. */
export const discoveryNqn = "nqn.2014-08.org.nvmexpress.discovery";

const transferExponent = 5; // 2^5 pages of 4 KiB: 128 KiB.
const blockExponent = 9;

/** Identify Controller. */
export function describeController(controller: Controller): Uint8Array {
  const { subsystem } = controller;
  const bytes = new Uint8Array(identifyBytes);
  const view = viewOf(bytes);
  // The router's own target is the kernel's, which names itself so.
  putText(bytes, 4, 20, subsystem?.serial ?? "discovery", " ");
  putText(bytes, 24, 40, "Linux", " ");
  putText(bytes, 64, 8, "7.24", " ");
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
  view.setUint16(514, mostEntries, true);
  view.setUint32(516, subsystem === undefined ? 0 : 1, true);
  view.setUint16(520, 0b1000, true); // Write Zeroes.
  view.setUint8(525, 1); // Writes need a flush.
  view.setUint32(536, 1 | 1 << 20, true); // Scatter-gather lists, also for data in the command's own PDU.
  putText(bytes, 768, 256, subsystem?.nqn ?? discoveryNqn);
  view.setUint32(1792, (64 + inCapsuleBytes) / 16, true);
  view.setUint32(1796, 1, true);
  view.setUint8(1803, 1);
  return bytes;
}

/** Identify Namespace. */
export function describeNamespace(subsystem: Subsystem): Uint8Array {
  const bytes = new Uint8Array(identifyBytes);
  const view = viewOf(bytes);
  for (const at of [0, 8, 16]) view.setBigUint64(at, subsystem.blocks, true);
  view.setUint8(30, 1); // Other controllers may have it too.
  bytes.set(subsystem.nguid, 104);
  view.setUint8(130, blockExponent);
  return bytes;
}

/** The ids of the namespace, each behind its type and its length. */
export function describeIds({ nguid, uuid }: Subsystem): Uint8Array {
  const bytes = new Uint8Array(identifyBytes);
  bytes.set([2, 16, 0, 0, ...nguid, 3, 16, 0, 0, ...uuid, 4, 1, 0, 0, 0]);
  return bytes;
}

/** The ids of the namespaces after `after`: the first of a list that ends with a zero. */
export function listNamespaces(after: number): Uint8Array {
  const bytes = new Uint8Array(identifyBytes);
  if (after < 1) bytes[0] = 1;
  return bytes;
}

/** Where a target is, as its discovery log tells it. */
export interface Portal {
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
    log.set([3, address.includes(":") ? 2 : 1, 2, 0], at); // TCP, the family, an NVM subsystem.
    view.setUint16(at + 4, 1, true);
    view.setUint16(at + 6, 0xffff, true);
    view.setUint16(at + 8, 32, true);
    putText(log, at + 32, 32, String(port), " ");
    putText(log, at + 256, 256, nqn);
    putText(log, at + 512, 256, address, " ");
  });
  return log;
}
