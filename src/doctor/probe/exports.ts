import { runLimited } from "../../async/deadline.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { type Fragment, ros } from "../../routeros/console/command.ts";
import { type HostLink, type HostName, NoAnswer, type Probe } from "./question.ts";
import type { RouterBehaviours } from "../../router_profile/answers.ts";
import type { ScratchDisk } from "./names.ts";
import { assertChanged, findDisk, mebibyte, wholeNumber, withDisk } from "./scratch.ts";

/** How long an export may take to answer a command, in milliseconds, if the probe does not say. */
const defaultCallMs = 10_000;

/** A disk that is exported under an NQN of its own. */
export interface ExportedDisk extends ScratchDisk {
  readonly nqn: string;
  /** What exports it, as it was exported first. */
  readonly exportOn: Fragment;
}

/** What is needed to be a host of the exports of a probe. */
type HostProbe = Pick<Probe, "host" | "clock" | "signal" | "callMs"> & {
  readonly names: { readonly tag: string };
};

/** Makes an exported scratch disk, works with it, and removes it again. */
export async function withExport<Answer>(
  probe: Probe,
  suffix: string,
  work: (disk: ExportedDisk) => Promise<Answer>,
  plan: { readonly sizeBytes?: bigint } = {},
): Promise<Answer> {
  return await withDisk(probe, suffix, async (disk) => {
    const answer = await work(await exportDisk(probe, disk, suffix));
    await withdraw(probe, disk);
    return answer;
  }, plan);
}

/**
 * Exports a scratch disk to a host that does not exist.
 *
 * @throws {NoAnswer} when the router refuses
 */
export async function exportDisk(probe: Probe, disk: ScratchDisk, suffix: string): Promise<ExportedDisk> {
  const exported = exportedAs(probe, disk, suffix);
  await assertChanged(probe.line, disk, exported.exportOn);
  return exported;
}

/** How a scratch disk is exported to a host that does not exist. */
export function exportedAs(probe: Probe, disk: ScratchDisk, suffix: string): ExportedDisk {
  const nqn = probe.names.nqn(suffix);
  const port = ros`nvme-tcp-export=${true} nvme-tcp-server-port=${probe.host.port}`;
  // Made up for this probe: no machine has that name, so that none finds a disk to use.
  const reached = ros`${port} nvme-tcp-server-allow-host-name=${hostOf(probe, 1).nqn}`;
  return { ...disk, nqn, exportOn: ros`${reached} nvme-tcp-server-nqn=${nqn}` };
}

/**
 * Withdraws the export of a disk.
 *
 * @throws {NoAnswer} when the router refuses, or shows it on
 */
export async function withdraw({ line }: Probe, disk: ScratchDisk): Promise<void> {
  await assertChanged(line, disk, ros`nvme-tcp-export=${false}`, ros`!nvme-tcp-export`);
}

/**
 * Connects to the export as a host.
 *
 * @throws {NoAnswer} when it cannot be reached from here
 */
export async function connect(probe: HostProbe, nqn: string, host = hostOf(probe, 1)): Promise<HostLink> {
  try {
    return await asked(probe, (call) => probe.host.connect(nqn, host, call));
  } catch (error) {
    if (!isTrouble(error)) throw error;
    if (probe.host.isRefusal(error)) {
      throw new NoAnswer("the only listed host cannot connect, so the list does not hold NQNs");
    }
    throw new NoAnswer(`the export cannot be reached from here: ${error.message}`);
  }
}

/** Whether an error only says that the export cannot be asked. */
function isTrouble(error: unknown): error is VolumeError {
  return VolumeError.is(error, "unavailable") || VolumeError.is(error, "deadline");
}

/** Who this machine says it is; other numbers are other hosts. */
export function hostOf({ names }: Pick<HostProbe, "names">, number: number): HostName {
  const id = `${names.tag.slice(-8)}-0000-4000-8000-00000000000${number}`;
  return { nqn: `nqn.2014-08.org.nvmexpress:uuid:${id}`, id };
}

/** Asks the export, in a call that ends with the probe, or soon. */
export async function asked<T>(
  { clock, signal, callMs: timeoutMs = defaultCallMs }: Pick<Probe, "clock" | "signal" | "callMs">,
  work: (call: CallContext) => Promise<T>,
): Promise<T> {
  return await runLimited(clock, { name: "the probe's command", timeoutMs, signal }, work);
}

/** How long the router may take until a change shows to a host, in milliseconds. */
const followMs = 3000;
/** How often it is looked again, in milliseconds. */
const pollMs = 100;
const grownBytes = 2n * mebibyte;

/** When those who are connected see that a disk has grown. */
export async function askGrow(probe: Probe): Promise<RouterBehaviours["grow"]> {
  return await withExport(probe, "grow", (disk) => growExported(probe, disk));
}

async function growExported(probe: Probe, disk: ExportedDisk): Promise<RouterBehaviours["grow"]> {
  await using link = await connect(probe, disk.nqn);
  if (await asked(probe, (call) => link.namespaceBytes(call)) !== mebibyte) {
    throw new NoAnswer("the host sees another size than that of the disk");
  }
  await assertChanged(probe.line, disk, ros`file-size=${grownBytes}`);
  if (await follows(probe, link)) return "live";
  await withdraw(probe, disk);
  await assertChanged(probe.line, disk, disk.exportOn);
  await using again = await connect(probe, disk.nqn);
  if (await follows(probe, again)) return "after-toggle";
  const reported = wholeNumber((await findDisk(probe.line, disk.path, ros`size`))?.["size"]);
  throw new NoAnswer(
    `a disk that was set to ${grownBytes} bytes tells ${reported}, and shows its host what it was: volumes cannot be expanded`,
  );
}

async function follows(probe: Probe, link: HostLink): Promise<boolean> {
  const endMs = probe.clock.monotonicMs() + followMs;
  for (;;) {
    if (await asked(probe, (call) => link.namespaceBytes(call)) === grownBytes) return true;
    if (probe.clock.monotonicMs() >= endMs) return false;
    await probe.clock.sleep(pollMs, probe.signal);
  }
}

/** By what hosts tell what is exported, in lower-case hex, "" where there is none; the serial number as it is. */
export interface IdentitySeen {
  readonly uuid: string;
  readonly nguid: string;
  readonly serial: string;
}

/**
 * By what a host tells what is exported now.
 *
 * @throws {NoAnswer} when it cannot be reached from here
 */
export async function readIdentity(probe: HostProbe, nqn: string): Promise<IdentitySeen> {
  await using link = await connect(probe, nqn);
  const { uuid, nguid } = await asked(probe, (call) => link.namespaceIdentity(call));
  return { uuid, nguid, serial: link.serial };
}

/** Whether a host finds the same: another serial number alone makes it another one, too. */
export function isSame(one: IdentitySeen, other: IdentitySeen): boolean {
  return one.uuid === other.uuid && one.nguid === other.nguid && one.serial === other.serial;
}

/**
 * Whether a host that is connected can read.
 *
 * @throws {VolumeError} deadline when the target is silent: that says neither
 */
export async function serves(probe: Probe, link: HostLink): Promise<boolean> {
  try {
    await asked(probe, (call) => link.read(0n, 1, call));
    return true;
  } catch (error) {
    if (VolumeError.is(error, "unavailable")) return false;
    throw error;
  }
}

/**
 * Whether an export lets a host in.
 *
 * @throws {NoAnswer} when it cannot be reached
 */
export async function enters(
  probe: Probe,
  { nqn }: Pick<ExportedDisk, "nqn">,
  host: HostName,
): Promise<boolean> {
  try {
    await (await asked(probe, (call) => probe.host.connect(nqn, host, call)))[Symbol.asyncDispose]();
    return true;
  } catch (error) {
    if (probe.host.isRefusal(error)) return false;
    if (isTrouble(error)) throw new NoAnswer(`the export cannot be reached from here: ${error.message}`);
    throw error;
  }
}
