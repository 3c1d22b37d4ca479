import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/ports.ts";
import { type Fragment, ros } from "../../routeros/console/command.ts";
import type { HostLink, HostName } from "./host_side.ts";
import type { ScratchDisk } from "./names.ts";
import { NoAnswer, type Outcome, type Probe } from "./question.ts";
import { changeDisk, withDisk } from "./scratch.ts";

const callMs = 10_000;

/** A disk that is exported under an NQN of its own. */
export interface ExportedDisk extends ScratchDisk {
  readonly nqn: string;
  /** What exports it, as it was exported first. */
  readonly exportOn: Fragment;
}

/** Makes an exported scratch disk, works with it, and removes it again. */
export async function withExport(
  probe: Probe,
  suffix: string,
  work: (disk: ExportedDisk) => Promise<Outcome>,
): Promise<Outcome> {
  return await withDisk(probe, suffix, async (disk) => {
    // Before 7.21 the export is named after the slot.
    const nqn = probe.vocabulary.nqn ? probe.names.nqn(suffix) : disk.slot;
    const port = ros`nvme-tcp-export=${true} nvme-tcp-server-port=${probe.host.port}`;
    const exportOn = probe.vocabulary.nqn ? ros`${port} nvme-tcp-server-nqn=${nqn}` : port;
    await change(probe, disk, exportOn);
    const outcome = await work({ ...disk, nqn, exportOn });
    await change(probe, disk, exportOff);
    return outcome;
  });
}

/** What withdraws an export. */
export const exportOff: Fragment = ros`nvme-tcp-export=${false}`;

/**
 * Changes a disk.
 *
 * @throws {NoAnswer} when the router refuses
 */
export async function change({ line }: Probe, disk: ScratchDisk, what: Fragment): Promise<void> {
  const { done, words } = await changeDisk(line, disk, what);
  if (!done) throw new NoAnswer(`the scratch disk cannot be changed: ${words}`);
}

/**
 * Connects to the export as a host.
 *
 * @throws {NoAnswer} when it cannot be reached from here
 */
export async function connect(probe: Probe, nqn: string, host = hostOf(probe, 1)): Promise<HostLink> {
  try {
    return await probe.host.connect(nqn, host, callOf(probe));
  } catch (error) {
    if (!isTrouble(error)) throw error;
    throw new NoAnswer(`the export cannot be reached from here: ${error.message}`);
  }
}

/** Whether an error only says that the export cannot be asked. */
export function isTrouble(error: unknown): error is VolumeError {
  return VolumeError.is(error, "unavailable") || VolumeError.is(error, "deadline");
}

/** Who this machine says it is; other numbers are other hosts. */
export function hostOf({ names }: Probe, number: number): HostName {
  const id = `${names.tag.slice(-8)}-0000-4000-8000-00000000000${number}`;
  return { nqn: `nqn.2014-08.org.nvmexpress:uuid:${id}`, id };
}

/** A call to the export that ends with the probe, or soon. */
export function callOf({ clock, signal }: Probe): CallContext {
  return { requestId: "probe", signal, deadlineMs: clock.now() + callMs };
}
