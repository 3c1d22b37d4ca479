import type { RouterBehaviours } from "../../router_profile/answers.ts";
import type { Vocabulary } from "../../router_profile/profile.ts";
import { type Fragment, ros } from "../../routeros/console/command.ts";
import { isAtLeast, storagePackage } from "../../routeros/console/router_info.ts";
import { canCopy } from "./copies.ts";
import type { ProbeSession } from "./session.ts";
import type { ScratchDisk, ScratchNames } from "./names.ts";
import { NoAnswer, type Probe } from "./question.ts";
import { changeDisk, findDisk, frameNumber, readItems, withDisk } from "./scratch.ts";
import { parseJson } from "../../routeros/console/json.ts";

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

const firstPort = 10_000;

/** Whether sessions take turns within a line. That they never do is never proven. */
export async function askInterleave(probe: Probe): Promise<boolean> {
  const other = probe.another();
  try {
    await other.connect();
    const seen = await withDisk(probe, "race", async (disk) => {
      for (let round = 0; round < probe.races; round++) {
        const race = round % 2 === 0 ? raceForComment : raceBetweenStatements;
        if (await race(probe, other, disk, round)) return true;
      }
      return false;
    });
    if (seen) return true;
  } finally {
    other.close();
  }
  throw new NoAnswer(`it was not seen in ${probe.races} races of two sessions, which proves nothing`);
}

/**
 * Both sessions find the disk by the same comment and change it, each leaving a trace of its own. In turns, one of them
 * finds nothing: both traces show that the find of one was over before the other's change, and its own change came
 * after.
 */
async function raceForComment(
  probe: Probe,
  other: ProbeSession,
  disk: ScratchDisk,
  round: number,
): Promise<boolean> {
  const { slot, path } = disk;
  const before = `round ${round}`;
  const [port, host] = [firstPort + round, `nqn.2000-02.com.mikrotik:host${round}`];
  const { done, texts: text } = await changeDisk(
    probe.line,
    disk,
    ros`nvme-tcp-server-port=${firstPort - 1} nvme-tcp-server-allow-host-name=${""} comment=${before}`,
  );
  if (!done) throw new NoAnswer(`the scratch disk cannot be changed: ${text}`);
  const found = ros`/disk set [find where slot=${slot} and comment=${before}]`;
  await bothOf(
    change(probe.line, ros`${found} nvme-tcp-server-port=${port} comment=${"mine"}`, slot),
    change(other, ros`${found} nvme-tcp-server-allow-host-name=${host} comment=${"theirs"}`, slot),
  );
  const keys = ros`nvme-tcp-server-port,nvme-tcp-server-allow-host-name`;
  const item = await findDisk(probe.line, path, keys);
  return String(item?.["nvme-tcp-server-port"]) === String(port) &&
    item?.["nvme-tcp-server-allow-host-name"] === host;
}

/** Both sessions change the comment and read it, each in one line: whoever reads the other's was overtaken. */
async function raceBetweenStatements(
  probe: Probe,
  other: ProbeSession,
  { slot }: ScratchDisk,
): Promise<boolean> {
  const [mine, theirs] = await bothOf(
    change(probe.line, ros`/disk set [find where slot=${slot}] comment=${"mine"}`, slot),
    change(other, ros`/disk set [find where slot=${slot}] comment=${"theirs"}`, slot),
  );
  return mine === "theirs" || theirs === "mine";
}

/** Gives the comment that the same line reads behind its change. */
async function change(line: ProbeSession, statement: Fragment, slot: string): Promise<unknown> {
  const { frames } = await line.run([statement], [ros`/disk get [find where slot=${slot}] comment`]);
  return frames[0] === undefined ? undefined : parseJson(frames[0], "comment");
}

/** Waits for both, also when one fails: nothing may still run when the probe goes on. */
async function bothOf(one: Promise<unknown>, other: Promise<unknown>): Promise<readonly [unknown, unknown]> {
  await Promise.allSettled([one, other]);
  return [await one, await other];
}
