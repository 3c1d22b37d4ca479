import type { RouterBehaviours } from "../../router_profile/answers.ts";
import { ros } from "../../routeros/console/command.ts";
import { connect, serves, withExport } from "./exports.ts";
import { assertChanged } from "./scratch.ts";
import { assertNotLost } from "./withdrawals.ts";
import { type HostLink, NoAnswer, type Probe } from "./question.ts";

/** How long a session may take to end after what ends it, in milliseconds. */
const endsWithinMs = 1000;

/**
 * Whether sessions end by what is not meant for them: a new comment of their disk, or another disk that comes, is exported,
 * withdrawn and removed.
 */
export async function askSideEffects(probe: Probe): Promise<RouterBehaviours["sideEffects"]> {
  return await outlastsOwnChange(probe) && await outlastsOthers(probe) ? "harmless" : "ends-sessions";
}

async function outlastsOwnChange(probe: Probe): Promise<boolean> {
  return await withExport(probe, "still", (control) =>
    withExport(probe, "live", async (disk) => {
      await using kept = await connectAndRead(probe, control.nqn);
      await using link = await connectAndRead(probe, disk.nqn);
      await assertChanged(probe.line, disk, ros`comment=${"changed"}`);
      if (await goesOn(probe, link)) return true;
      await assertNotLost(probe, kept);
      return false;
    }));
}

async function outlastsOthers(probe: Probe): Promise<boolean> {
  return await withExport(probe, "one", async (disk) => {
    if (await outlastsAnother(probe, disk.nqn)) return true;
    // All sessions may end, so that none can be the control: a connection is hardly lost twice.
    if (!await outlastsAnother(probe, disk.nqn)) return false;
    throw new NoAnswer(
      "one session ended while another disk came and went, and another one did not: probe again over a steady network",
    );
  });
}

async function outlastsAnother(probe: Probe, nqn: string): Promise<boolean> {
  await using link = await connectAndRead(probe, nqn);
  const during = await withExport(probe, "two", () => goesOn(probe, link));
  return during && await goesOn(probe, link);
}

async function connectAndRead(probe: Probe, nqn: string): Promise<HostLink> {
  const link = await connect(probe, nqn);
  if (await serves(probe, link)) return link;
  await link[Symbol.asyncDispose]();
  throw new NoAnswer("the host cannot read from the export even before anything is changed");
}

async function goesOn(probe: Probe, link: HostLink): Promise<boolean> {
  await probe.clock.sleep(endsWithinMs, probe.signal);
  return await serves(probe, link);
}
