import { VolumeError } from "../../volume/errors.ts";
import type { HardwareFinding, HardwareReading } from "../../volume/model/health/hardware.ts";
import { judgeHardware } from "../../volume/rules/health/hardware.ts";
import { type Finding, fine, type Fix, problem, warning } from "../../volume/model/finding.ts";
import { routerFixes } from "./fixes.ts";
import type { RouterCheck } from "./check.ts";

const drivesName = "drives";

/** Checks what the router reports of arrays, drives and Btrfs file systems. A router that reports nothing is no fault. */
export const drivesCheck: RouterCheck = {
  name: drivesName,
  essential: false,
  async run(router) {
    const disks = await router.drives();
    try {
      return judgeDrives({ disks, filesystems: await router.filesystems(disks) });
    } catch (error) {
      if (!VolumeError.is(error, "unavailable")) throw error;
      const unknown = warning(drivesName, `the Btrfs file systems cannot be checked: ${error.message}`);
      return [...judgeDrives({ disks }), unknown];
    }
  },
};

/** One finding for each fault; the state of an array below a mounted pool is that of the pool, which has a check of its own. */
export function judgeDrives(reading: HardwareReading): Finding[] {
  const faults = judgeHardware(reading).findings
    .filter(({ reason, pools }) => reason !== "ArrayUnsound" || pools.length === 0);
  return faults.length > 0 ? faults.map(judged) : [fine(drivesName, described(reading))];
}

function judged(finding: HardwareFinding): Finding {
  const judge = finding.severity === "critical" ? problem : warning;
  const pools = finding.pools.map((pool) => `/${pool}`).join(", ");
  return judge(drivesName, pools === "" ? finding.message : `${pools}: ${finding.message}`, fixFor(finding));
}

function fixFor({ reason, slot }: HardwareFinding): Fix {
  return reason === "BtrfsDeviceMissing" ? routerFixes.btrfsLook() : routerFixes.poolLook(slot);
}

function described({ disks }: HardwareReading): string {
  if (disks === undefined) return "the router does not report the health of its drives";
  const drives = disks.filter(({ kind }) => kind !== "raid");
  const reporting = drives.filter(({ usedPercent, sparePercent, celsius, warnings }) =>
    [usedPercent, sparePercent, celsius, warnings].some((value) => value !== undefined)
  );
  return `${drives.length} drives and partitions, of which ${reporting.length} report their health; no fault is known`;
}
