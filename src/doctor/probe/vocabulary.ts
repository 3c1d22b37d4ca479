import type { Vocabulary } from "../../router_profile/profile.ts";
import { command, type Fragment, ros } from "../../routeros/console/command.ts";
import { canCopy } from "./copying.ts";
import type { Line } from "./session.ts";
import type { ScratchNames } from "./names.ts";
import { isAtLeast, storagePackage } from "../../routeros/console/router_info.ts";
import { NoAnswer } from "./question.ts";
import { frameNumber, readItems } from "./scratch.ts";

/** Finds out which words the router's grammar has, by using them. */
export async function askVocabulary(
  line: Line,
  names: ScratchNames,
  version: string,
): Promise<Vocabulary> {
  const nobody = names.name("none");
  return {
    rose: await hasStoragePackage(line),
    // A list of keys is no proof: an older router may pass over one that it does not know.
    nqn: isAtLeast(version, 7, 21) &&
      await isTaken(line, ros`/disk print as-value proplist=nvme-tcp-server-nqn where slot=${nobody}`),
    subvolumes: await isTaken(
      line,
      ros`/disk btrfs subvolume print as-value proplist=name where name=${nobody}`,
    ),
    fileCopy: await copies(line, names),
  };
}

async function hasStoragePackage(line: Line): Promise<boolean> {
  const packages = await readItems(line, ros`/system package print detail as-value`);
  return packages.some(({ name, disabled }) =>
    name === storagePackage && disabled !== true && disabled !== "yes"
  );
}

async function isTaken(line: Line, query: Fragment): Promise<boolean> {
  return (await line.run([], [query])).done;
}

async function copies(line: Line, names: ScratchNames): Promise<boolean> {
  try {
    return await canCopy({ line, names });
  } catch (error) {
    if (error instanceof NoAnswer) return false;
    throw error;
  }
}

/**
 * Whether the legend of a print names flags that none of the disks shown has.
 *
 * @param expected what to believe where it cannot be seen
 */
export async function askLegend(
  line: Line,
  slot: string,
  expected: "present" | "all",
): Promise<"present" | "all"> {
  const { stdout } = await line.exec(command(ros`/disk print where slot=${slot}`));
  const { frames } = await line.run([], [ros`:len [/disk find where slot=${slot} and formatting]`]);
  const isFormatting = frameNumber(frames[0]) !== 0;
  if (!stdout.includes("Flags:") || isFormatting) return expected;
  return stdout.includes("FORMATTING") ? "all" : "present";
}
