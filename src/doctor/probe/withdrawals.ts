import type { RouterBehaviours } from "../../router_profile/answers.ts";
import { VolumeError } from "../../volume/errors.ts";
import {
  asked,
  connect,
  enters,
  type ExportedDisk,
  hostOf,
  serves,
  withdraw,
  withExport,
} from "./exports.ts";
import { assertChanged } from "./scratch.ts";
import { type HostLink, NoAnswer, type Probe } from "./question.ts";

/** How often an export is withdrawn: a connection may be lost by chance once. */
const rounds = 2;
/** How long a withdrawn export is watched, in milliseconds: all rounds and the clean-up fit into two minutes. */
const lingerWatchMs = 45_000;
/** How soon the first look has to come, in milliseconds: the driver waits at least as long after every withdrawal. */
const atOnceMs = 1000;

/** How long an export may go on serving where it then refuses commands, in milliseconds: half the driver's default wait. */
const longestBeforeRefusalMs = 5000;

/** How long a withdrawn export goes on serving its hosts, in milliseconds, or that it refuses their commands. */
export async function askUnexport(probe: Probe): Promise<RouterBehaviours["unexport"]> {
  const seen = await watchWithdrawals(probe);
  const servedMs = Math.max(...seen.map((one) => one.servedMs));
  const refusing = seen.filter(({ refuses }) => refuses).length;
  if (refusing === 0) return servedMs;
  if (refusing < seen.length) {
    throw new NoAnswer(
      "one withdrawal refused its host's commands, and another ended its session: probe again over a steady network",
    );
  }
  if (servedMs <= longestBeforeRefusalMs) return "refuses-commands";
  throw new NoAnswer(
    `a withdrawn export refuses its host's commands, but only after ${servedMs} ms: probe again, and set ` +
      "--unexport-grace to twice that",
  );
}

/** What a host has seen of a withdrawal. */
interface Seen {
  /** Whether the target refused its commands; else it ended the session. */
  readonly refuses: boolean;
  /** How long it went on serving; 0 where the host was cut off before it could look. */
  readonly servedMs: number;
}

/**
 * Watches an export being withdrawn, several times. A session that ends may just have been lost: so a second export stays on and
 * has to go on serving, and the withdrawn one must let nobody in any more.
 */
async function watchWithdrawals(probe: Probe): Promise<readonly Seen[]> {
  return await withExport(probe, "cut-control", (control) =>
    withExport(probe, "cut", async (disk) => {
      const seen: Seen[] = [];
      while (seen.length < rounds) {
        if (seen.length > 0) await assertChanged(probe.line, disk, disk.exportOn);
        seen.push(await watchBeside(probe, disk, control));
      }
      return seen;
    }));
}

async function watchBeside(probe: Probe, disk: ExportedDisk, control: ExportedDisk): Promise<Seen> {
  await using kept = await connect(probe, control.nqn);
  await using link = await connect(probe, disk.nqn);
  for (const one of [kept, link]) {
    if (await serves(probe, one)) continue;
    throw new NoAnswer("the host cannot read from an export even while it is on: probe again");
  }
  const seen = await readThroughWithdrawal(probe, disk, link);
  await assertNotLost(probe, kept);
  if (!await enters(probe, disk, hostOf(probe, 1))) return seen;
  throw new NoAnswer(
    "the session to a withdrawn export ended, but the export lets its host in again: probe again, and do not trust this " +
      "router to shut out a node if that stays so",
  );
}

/**
 * Checks that a session to an export that nobody changed still serves.
 *
 * @throws {NoAnswer} when it does not
 */
export async function assertNotLost(probe: Probe, kept: HostLink): Promise<void> {
  if (await serves(probe, kept)) return;
  throw new NoAnswer(
    "the session to an export that stayed on ended as well: probe again over a steady network",
  );
}

/** Reads without a pause from before the withdrawal is sent, so that no moment of refused commands is missed. */
async function readThroughWithdrawal(probe: Probe, disk: ExportedDisk, link: HostLink): Promise<Seen> {
  const startedMs = probe.clock.monotonicMs();
  let isOff = false;
  const reading = readUntilItFails(probe, link, () => isOff);
  const withdrawing = withdraw(probe, disk).then(() => {
    isOff = true;
  });
  const [end] = await Promise.all([reading, withdrawing]);
  const servedMs = Math.ceil(end.atMs - startedMs);
  // What is cut before a first look in time was cut with the withdrawal. Behind a slow answer it may have lingered.
  const isAtOnce = !end.servedOff && servedMs <= atOnceMs;
  return { refuses: probe.host.isRefusedCommand(end.failure), servedMs: isAtOnce ? 0 : servedMs };
}

/** How reading ended. */
interface ReadEnd {
  readonly failure: VolumeError;
  /** By the monotonic clock, in milliseconds. */
  readonly atMs: number;
  /** Whether a read was answered that began when the export was known to be off. */
  readonly servedOff: boolean;
}

/**
 * @throws {NoAnswer} when it goes on for as long as a withdrawn export is watched
 * @throws {VolumeError} deadline when the target is silent: that says nothing
 */
async function readUntilItFails(probe: Probe, link: HostLink, isOff: () => boolean): Promise<ReadEnd> {
  const endMs = probe.clock.monotonicMs() + lingerWatchMs;
  let servedOff = false;
  while (probe.clock.monotonicMs() < endMs) {
    const beganOff = isOff();
    try {
      await asked(probe, (call) => link.read(0n, 1, call));
    } catch (failure) {
      if (!VolumeError.is(failure, "unavailable")) throw failure;
      return { failure, atMs: probe.clock.monotonicMs(), servedOff };
    }
    servedOff ||= beganOff;
    await probe.clock.sleep(0, probe.signal);
  }
  throw stillServes();
}

function stillServes(): NoAnswer {
  const seconds = lingerWatchMs / 1000;
  return new NoAnswer(
    `a withdrawn export still served its host after ${seconds} s: a node could not be fenced. Measure how long it takes, ` +
      "and set --unexport-grace to more",
  );
}
