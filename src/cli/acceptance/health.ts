import { RouterReader } from "../../routeros/store/reader.ts";
import { Session } from "../../routeros/ssh/session.ts";
import type { SshTransport } from "../../routeros/ssh/transport.ts";
import { counted } from "../../volume/model/counted.ts";
import type { HardwareDisk, HardwareReading } from "../../volume/model/health/hardware.ts";
import type { Clock, Random } from "../../volume/ports/system.ts";
import { judgeHardware } from "../../volume/rules/health/hardware.ts";
import { NotHere, type Step } from "./step.ts";

/** What the reading of the health needs. */
export interface HealthOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly signal: AbortSignal;
  readonly transport: SshTransport;
}

/** What a drive or a member of an array may report of itself, for people. */
const values: readonly (readonly [name: string, of: keyof HardwareDisk])[] = [
  ["warnings", "warnings"],
  ["spare blocks", "sparePercent"],
  ["wear", "usedPercent"],
  ["heat", "celsius"],
  ["errors", "ioErrors"],
  ["failed members", "memberFailed"],
];

/** The step that reads the health of arrays, drives and Btrfs file systems, as a controller does from time to time. */
export function healthStep(options: HealthOptions): Step {
  return {
    step: "health reading",
    promise: "What is wrong is found by the doctor, with the command that mends it",
    run: async () => {
      const session = new Session(options);
      try {
        const reader = new RouterReader({ ...options, session });
        const context = { requestId: "acceptance", signal: options.signal };
        const { disks } = await reader.drives(context);
        return describeReading({ disks, filesystems: await reader.filesystems(disks, context) });
      } finally {
        session.close();
      }
    },
  };
}

/**
 * What a reading has, in numbers and words of this program: a message of a fault would name the drive.
 *
 * @throws {NotHere} when the router refuses to report anything
 */
export function describeReading(reading: HardwareReading): string {
  const { disks, filesystems } = reading;
  if (disks === undefined) throw new NotHere("the router does not report the health of its drives");
  const kinds = ["drive", "partition", "array"];
  const kindOf = ({ kind }: HardwareDisk) =>
    kind === "raid" ? "array" : kind === "partition" ? kind : "drive";
  const amounts = kinds.map((kind) => counted(disks.filter((disk) => kindOf(disk) === kind).length, kind));
  const reported = values.filter(([, of]) => disks.some((disk) => disk[of] !== undefined));
  const faults = new Set(judgeHardware(reading).findings.map(({ reason }) => reason));
  const named = (names: readonly string[]) => names.length === 0 ? "none" : names.join(", ");
  return [
    ...amounts,
    ...filesystems === undefined ? [] : [counted(filesystems.length, "Btrfs file system")],
    `they report ${named(reported.map(([name]) => name))}`,
    `faults: ${named([...faults])}`,
  ].join(", ");
}
