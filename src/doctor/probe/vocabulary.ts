import type { Vocabulary } from "../../router_profile/profile.ts";
import { type Fragment, ros } from "../../routeros/console/command.ts";
import { isAtLeast, storagePackage } from "../../routeros/console/router_info.ts";
import { canCopy } from "./copies.ts";
import type { ProbeSession } from "./session.ts";
import type { ScratchNames } from "./names.ts";
import { NoAnswer } from "./question.ts";
import { readItems } from "./scratch.ts";

/** Finds out which words the router's grammar has, by using them. */
export async function askVocabulary(
  line: ProbeSession,
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

async function hasStoragePackage(line: ProbeSession): Promise<boolean> {
  const packages = await readItems(line, ros`/system package print detail as-value`);
  return packages.some(({ name, disabled }) =>
    name === storagePackage && disabled !== true && disabled !== "yes"
  );
}

async function isTaken(line: ProbeSession, query: Fragment): Promise<boolean> {
  return (await line.run([], [query])).done;
}

async function copies(line: ProbeSession, names: ScratchNames): Promise<boolean> {
  try {
    return await canCopy({ line, names });
  } catch (error) {
    if (error instanceof NoAnswer) return false;
    throw error;
  }
}
