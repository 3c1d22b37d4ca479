import { ros } from "../../routeros/console/command.ts";
import {
  callOf,
  change,
  connect,
  type ExportedDisk,
  exportOff,
  hostOf,
  isTrouble,
  withExport,
} from "./exports.ts";
import type { HostName } from "./host_side.ts";
import { answered, NoAnswer, type Outcome, type Probe, type Question } from "./question.ts";

/** Which hosts an export lets in. */
export const hostListQuestion: Question = {
  names: ["allowHost"],
  ask: async (probe) => await withExport(probe, "host", (disk) => askAllowHost(probe, disk)),
};

async function askAllowHost(probe: Probe, disk: ExportedDisk): Promise<Outcome> {
  const [first, second] = [hostOf(probe, 1), hostOf(probe, 2)];
  // Whoever cannot be reached at all must not be taken for one who refuses.
  await (await connect(probe, disk.nqn, first))[Symbol.asyncDispose]();
  await allow(probe, disk, first.nqn);
  if (!await enters(probe, disk, first)) {
    throw new NoAnswer("a host is not let in though it alone is named: the name is not its NQN");
  }
  if (await enters(probe, disk, second)) return answered({ allowHost: "ignored" });
  await allow(probe, disk, `${first.nqn},${second.nqn}`);
  const both = await enters(probe, disk, first) && await enters(probe, disk, second);
  return answered({ allowHost: both ? "list" : "single" });
}

/** The export is bounced, so that what is named counts for whoever comes. */
async function allow(probe: Probe, disk: ExportedDisk, names: string): Promise<void> {
  await change(probe, disk, exportOff);
  await change(probe, disk, ros`nvme-tcp-server-allow-host-name=${names} ${disk.exportOn}`);
}

async function enters(probe: Probe, { nqn }: ExportedDisk, host: HostName): Promise<boolean> {
  try {
    await (await probe.host.connect(nqn, host, callOf(probe)))[Symbol.asyncDispose]();
    return true;
  } catch (error) {
    if (probe.host.isRefusal(error)) return false;
    if (isTrouble(error)) throw new NoAnswer(`the export cannot be reached from here: ${error.message}`);
    throw error;
  }
}
