import type { Vocabulary } from "../../router_profile/profile.ts";
import { ros } from "../../routeros/console/command.ts";
import { storagePackage } from "../../routeros/console/router_info.ts";
import { canCopy } from "./copies.ts";
import type { ProbeSession } from "./session.ts";
import type { ScratchNames } from "./names.ts";
import { NoAnswer, type Probe } from "./question.ts";
import { frameNumber, readItems, withDisk } from "./scratch.ts";
import type { RouterBehaviours } from "../../router_profile/answers.ts";

/** Finds out which words the router's grammar has, by using them. */
export async function askVocabulary(
  line: ProbeSession,
  names: ScratchNames,
): Promise<Vocabulary> {
  return {
    rose: await hasStoragePackage(line),
    fileCopy: await copies(line, names),
  };
}

async function hasStoragePackage(line: ProbeSession): Promise<boolean> {
  const packages = await readItems(line, ros`/system package print detail as-value`);
  return packages.some(({ name, disabled }) =>
    name === storagePackage && disabled !== true && disabled !== "yes"
  );
}

async function copies(line: ProbeSession, names: ScratchNames): Promise<boolean> {
  try {
    return await canCopy({ line, names });
  } catch (error) {
    if (error instanceof NoAnswer) return false;
    throw error;
  }
}

/** Whether a comment is matched exactly: compare-and-set rests on it. */
export async function askTextMatch(probe: Probe): Promise<RouterBehaviours["textMatch"]> {
  const [comment, otherCase] = ["Probe", "pROBE"];
  return await withDisk(probe, "case", async ({ slot }) => {
    const count = async (wanted: string) => {
      const query = ros`:len [/disk find where slot=${slot} and comment=${wanted}]`;
      return frameNumber((await probe.line.run([], [query])).frames[0]);
    };
    if (await count(comment) !== 1) throw new NoAnswer("a disk is not found by its own comment");
    return await count(otherCase) === 0 ? "exact" : "ignore-case";
  }, { more: ros`nvme-tcp-export=${false} comment=${comment}` });
}
