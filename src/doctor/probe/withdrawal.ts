import { callOf, change, connect, type ExportedDisk, exportOff, isTrouble, withExport } from "./exports.ts";
import type { HostLink } from "./host_side.ts";
import { answered, NoAnswer, type Outcome, type Probe, type Question } from "./question.ts";

/** How long a withdrawn export is watched, in milliseconds. */
const watchMs = 60_000;
const pollMs = 100;

/** How long a withdrawn export goes on serving. */
export const withdrawalQuestion: Question = {
  names: ["unexport"],
  ask: async (probe) => await withExport(probe, "cut", (disk) => askUnexport(probe, disk)),
};

/** From the withdrawal until the host cannot read any more. */
async function askUnexport(probe: Probe, disk: ExportedDisk): Promise<Outcome> {
  await using link = await connect(probe, disk.nqn);
  if (!await serves(probe, link)) {
    throw new NoAnswer("the host cannot read from the export even while it is on");
  }
  // Counted from before the withdrawal is sent: rather a little too long than too short.
  const startedMs = probe.clock.monotonicMs();
  await change(probe, disk, exportOff);
  const sinceMs = () => Math.ceil(probe.clock.monotonicMs() - startedMs);
  // What is cut before the first look was cut with the withdrawal.
  if (!await serves(probe, link)) return answered({ unexport: 0 });
  do {
    if (sinceMs() >= watchMs) {
      throw new NoAnswer(
        `a withdrawn export still served its host after ${watchMs / 1000} s: a node could not be fenced`,
      );
    }
    await pauseUntil(probe, link.ended);
  } while (await serves(probe, link));
  return answered({ unexport: sinceMs() });
}

async function serves(probe: Probe, link: HostLink): Promise<boolean> {
  try {
    await link.read(0n, 1, callOf(probe));
    return true;
  } catch (error) {
    // A target that is silent to its host serves it no more than one that refuses.
    if (isTrouble(error)) return false;
    throw error;
  }
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
