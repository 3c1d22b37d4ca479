import { VolumeError } from "../../volume/errors.ts";
import type { Line } from "./session.ts";
import { answered, type Outcome, type Probe, type Question } from "./question.ts";
import { withDisk } from "./scratch.ts";

/** So many connections are opened at most; a router that takes them all counts as one without a limit. */
const most = 32;

/** How many SSH connections there may be at a time. */
export const sessionCountQuestion: Question = {
  names: ["maxSessions"],
  // A scratch disk shows whoever watches the router that somebody probes it.
  ask: async (probe) => await withDisk(probe, "many", () => openAll(probe)),
};

async function openAll(probe: Probe): Promise<Outcome> {
  await probe.line.connect();
  const opened: Line[] = [];
  try {
    while (opened.length < most - 1) {
      const line = probe.another();
      opened.push(line);
      if (!await opens(line)) return answered({ maxSessions: opened.length });
    }
    return answered({ maxSessions: Infinity });
  } finally {
    for (const line of opened) line.close();
    await settle(probe);
  }
}

async function opens(line: Line): Promise<boolean> {
  try {
    await line.connect();
    return true;
  } catch (error) {
    if (VolumeError.is(error, "unavailable")) return false;
    throw error;
  }
}

/** The router counts a connection until it has noticed its end. */
async function settle({ clock, signal }: Probe): Promise<void> {
  await clock.sleep(1000, signal);
}
