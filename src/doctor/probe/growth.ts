import { ros } from "../../routeros/console/command.ts";
import { callOf, change, connect, type ExportedDisk, exportOff, withExport } from "./exports.ts";
import type { HostLink } from "./host_side.ts";
import { answered, NoAnswer, type Outcome, type Probe, type Question } from "./question.ts";
import { findDisk, mebibyte, wholeNumber } from "./scratch.ts";

/** How long the router may take until a change shows to a host, in milliseconds. */
const followMs = 3000;
const pollMs = 100;
const wantedBytes = 2n * mebibyte;

/** When those who are connected see that a disk has grown. */
export const growthQuestion: Question = {
  names: ["grow"],
  ask: async (probe) => await withExport(probe, "grow", (disk) => askGrow(probe, disk)),
};

async function askGrow(probe: Probe, disk: ExportedDisk): Promise<Outcome> {
  await using link = await connect(probe, disk.nqn);
  if (await link.namespaceBytes(callOf(probe)) !== mebibyte) {
    throw new NoAnswer("the host sees another size than that of the disk");
  }
  await change(probe, disk, ros`file-size=${wantedBytes}`);
  if (await follows(probe, link)) return answered({ grow: "live" });
  await change(probe, disk, exportOff);
  await change(probe, disk, disk.exportOn);
  await using again = await connect(probe, disk.nqn);
  if (await follows(probe, again)) return answered({ grow: "after-toggle" });
  const told = wholeNumber((await findDisk(probe.line, disk.path, ros`size`))?.["size"]);
  probe.say(`a disk that was set to ${wantedBytes} bytes tells ${told}, and shows its host what it was`);
  return answered({ grow: "never" });
}

async function follows(probe: Probe, link: HostLink): Promise<boolean> {
  const endMs = probe.clock.monotonicMs() + followMs;
  for (;;) {
    if (await link.namespaceBytes(callOf(probe)) === wantedBytes) return true;
    if (probe.clock.monotonicMs() >= endMs) return false;
    await probe.clock.sleep(pollMs, probe.signal);
  }
}
