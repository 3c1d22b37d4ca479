import type { RouterBehaviours } from "../../router_profile/answers.ts";
import { VolumeError } from "../../volume/errors.ts";
import {
  asked,
  change,
  connect,
  enters,
  type ExportedDisk,
  hostOf,
  pollMs,
  serves,
  withdraw,
  withExport,
} from "./exports.ts";
import { type HostLink, NoAnswer, type Probe } from "./question.ts";

/** How often an export is withdrawn: a connection may be lost by chance once. */
const rounds = 2;
/** How long a withdrawn export is watched, in milliseconds: all rounds and the clean-up fit into two minutes. */
const lingerWatchMs = 45_000;
/** How soon the first look has to come, in milliseconds: the driver waits at least as long after every withdrawal. */
const atOnceMs = 1000;

/** What a host that reads without a pause sees of a withdrawal. */
export async function askWithdrawal(probe: Probe): Promise<RouterBehaviours["withdrawal"]> {
  const [seen, ...more] = await watchWithdrawals(probe, "off", readThroughWithdrawal);
  if (more.every((other) => other === seen)) return seen!;
  throw new NoAnswer(
    "one withdrawal refused its host's commands, and another ended its session: probe again over a steady network",
  );
}

/** How long a withdrawn export goes on serving, in milliseconds; 0 where its host was cut off before it could look. */
export async function askUnexport(probe: Probe): Promise<number> {
  return Math.max(...await watchWithdrawals(probe, "cut", measureLingering));
}

/** Withdraws an export to which a host is connected, and watches that host. */
type Watch<Seen> = (probe: Probe, disk: ExportedDisk, link: HostLink) => Promise<Seen>;

/**
 * Watches an export being withdrawn, several times. A session that ends may just have been lost: so a second export stays on and
 * has to go on serving, and the withdrawn one must let nobody in any more.
 */
async function watchWithdrawals<Seen>(
  probe: Probe,
  suffix: string,
  watch: Watch<Seen>,
): Promise<readonly Seen[]> {
  return await withExport(probe, `${suffix}-control`, (control) =>
    withExport(probe, suffix, async (disk) => {
      const seen: Seen[] = [];
      while (seen.length < rounds) {
        if (seen.length > 0) await change(probe, disk, disk.exportOn);
        seen.push(await watchBeside(probe, disk, control, watch));
      }
      return seen;
    }));
}

async function watchBeside<Seen>(
  probe: Probe,
  disk: ExportedDisk,
  control: ExportedDisk,
  watch: Watch<Seen>,
): Promise<Seen> {
  await using kept = await connect(probe, control.nqn);
  await using link = await connect(probe, disk.nqn);
  for (const one of [kept, link]) {
    if (await serves(probe, one)) continue;
    throw new NoAnswer("the host cannot read from an export even while it is on: probe again");
  }
  const seen = await watch(probe, disk, link);
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

async function readThroughWithdrawal(
  probe: Probe,
  disk: ExportedDisk,
  link: HostLink,
): Promise<RouterBehaviours["withdrawal"]> {
  const [failure] = await Promise.all([readUntilItFails(probe, link), withdraw(probe, disk)]);
  return probe.host.isRefusedCommand(failure) ? "refuses-commands" : "ends-sessions";
}

/**
 * @throws {NoAnswer} when it goes on for as long as a withdrawn export is watched
 * @throws {VolumeError} deadline when the target is silent: that says nothing
 */
async function readUntilItFails(probe: Probe, link: HostLink): Promise<VolumeError> {
  const endMs = probe.clock.monotonicMs() + lingerWatchMs;
  while (probe.clock.monotonicMs() < endMs) {
    try {
      await asked(probe, (call) => link.read(0n, 1, call));
    } catch (error) {
      if (VolumeError.is(error, "unavailable")) return error;
      throw error;
    }
    await probe.clock.sleep(0, probe.signal);
  }
  throw stillServes();
}

/** From the withdrawal until the host cannot read any more, in milliseconds. */
async function measureLingering(probe: Probe, disk: ExportedDisk, link: HostLink): Promise<number> {
  // Counted from before the withdrawal is sent: rather a little too long than too short.
  const startedMs = probe.clock.monotonicMs();
  await withdraw(probe, disk);
  const sinceMs = () => Math.ceil(probe.clock.monotonicMs() - startedMs);
  // What is cut before a first look in time was cut with the withdrawal. Behind a slow answer it may have lingered.
  if (!await serves(probe, link)) return sinceMs() <= atOnceMs ? 0 : sinceMs();
  do {
    if (sinceMs() >= lingerWatchMs) throw stillServes();
    await pauseUntil(probe, link.ended);
  } while (await serves(probe, link));
  return sinceMs();
}

function stillServes(): NoAnswer {
  const seconds = lingerWatchMs / 1000;
  return new NoAnswer(
    `a withdrawn export still served its host after ${seconds} s: a node could not be fenced. Measure how long it takes, ` +
      "and set --unexport-grace to more",
  );
}

/** Waits until it is time to look again, or there is something to see. */
async function pauseUntil({ clock, signal }: Probe, ended: Promise<unknown>): Promise<void> {
  const stop = new AbortController();
  try {
    await Promise.race([clock.sleep(pollMs, AbortSignal.any([signal, stop.signal])), ended]);
  } finally {
    stop.abort();
  }
}
