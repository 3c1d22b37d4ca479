import { type Fragment, ros } from "../../routeros/console/command.ts";
import { parseJson } from "../../routeros/console/json.ts";
import type { Line } from "./session.ts";
import type { ScratchDisk } from "./names.ts";
import { answered, NoAnswer, type Probe, type Question } from "./question.ts";
import { changeDisk, findDisk, withDisk } from "./scratch.ts";

const firstPort = 10_000;

/** Whether sessions take turns within a line. That they never do is never proven. */
export const interleavingQuestion: Question = {
  names: ["interleave"],
  async ask(probe) {
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
      if (seen) return answered({ interleave: true });
    } finally {
      other.close();
    }
    throw new NoAnswer(`it was not seen in ${probe.races} races of two sessions, which proves nothing`);
  },
};

/**
 * Both sessions find the disk by the same comment and change it, each leaving a trace of its own. In turns, one of them
 * finds nothing: both traces show that the find of one was over before the other's change, and its own change came
 * after.
 */
async function raceForComment(probe: Probe, other: Line, disk: ScratchDisk, round: number): Promise<boolean> {
  const { slot, path } = disk;
  const before = `round ${round}`;
  const [port, host] = [firstPort + round, `nqn.2000-02.com.mikrotik:host${round}`];
  const { done, words } = await changeDisk(
    probe.line,
    disk,
    ros`nvme-tcp-server-port=${firstPort - 1} nvme-tcp-server-allow-host-name=${""} comment=${before}`,
  );
  if (!done) throw new NoAnswer(`the scratch disk cannot be changed: ${words}`);
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
async function raceBetweenStatements(probe: Probe, other: Line, { slot }: ScratchDisk): Promise<boolean> {
  const [mine, theirs] = await bothOf(
    change(probe.line, ros`/disk set [find where slot=${slot}] comment=${"mine"}`, slot),
    change(other, ros`/disk set [find where slot=${slot}] comment=${"theirs"}`, slot),
  );
  return mine === "theirs" || theirs === "mine";
}

/** Gives the comment that the same line reads behind its change. */
async function change(line: Line, statement: Fragment, slot: string): Promise<unknown> {
  const { frames } = await line.run([statement], [ros`/disk get [find where slot=${slot}] comment`]);
  return frames[0] === undefined ? undefined : parseJson(frames[0], "comment");
}

/** Waits for both, also when one fails: nothing may still run when the probe goes on. */
async function bothOf(one: Promise<unknown>, other: Promise<unknown>): Promise<readonly [unknown, unknown]> {
  await Promise.allSettled([one, other]);
  return [await one, await other];
}
