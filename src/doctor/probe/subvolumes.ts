import { type Fragment, ros } from "../../routeros/console/command.ts";
import type { Ran } from "./session.ts";
import {
  answered,
  answerOf,
  NoAnswer,
  type Outcome,
  type Probe,
  type Question,
  together,
} from "./question.ts";
import { discard, frameNumber } from "./scratch.ts";

/** Where subvolumes may be made, and when they can be removed. */
export const subvolumesQuestion: Question = {
  names: ["subvolumeNames", "subvolumeParent"],
  async ask(probe) {
    const { vocabulary, pool } = probe;
    if (!vocabulary.subvolumes) throw new NoAnswer("this RouterOS has no Btrfs subvolumes");
    if (pool.filesystem !== "btrfs") throw new NoAnswer(`the pool is ${pool.filesystem}, not Btrfs`);
    if (pool.label === "") throw new NoAnswer("the pool has no label by which its subvolumes could be named");
    return together(
      await answerOf("subvolumeNames", () => askNames(probe)),
      await answerOf("subvolumeParent", () => askParent(probe)),
    );
  },
};

/** A plain folder is where one would be made for a volume. */
async function askNames(probe: Probe): Promise<Outcome> {
  const { line, names, pool } = probe;
  const inside = names.basePath.slice(pool.mountPoint.length + 2);
  if (inside === "") throw new NoAnswer("the base path is the pool itself: name a folder in it");
  const top = await add(probe, ros`name=${names.name("top")}`);
  if (!top.done) throw new NoAnswer(`no subvolume can be made: ${top.words}`);
  const nested = await add(probe, ros`name=${`${inside}/${names.name("nested")}`}`);
  await remove(probe, names.name("nested"));
  await remove(probe, names.name("top"));
  await discard(line, names.path("nested"));
  return answered({ subvolumeNames: nested.done ? "nested" : "flat" });
}

async function askParent(probe: Probe): Promise<Outcome> {
  const [original, snapshot] = [probe.names.name("original"), probe.names.name("snapshot")];
  const made = await add(probe, ros`name=${original}`);
  if (!made.done) throw new NoAnswer(`no subvolume can be made: ${made.words}`);
  const taken = await add(probe, ros`name=${snapshot} parent=${original} read-only=${true}`);
  if (!taken.done) throw new NoAnswer(`no snapshot can be made: ${taken.words}`);
  await remove(probe, original);
  const left = await count(probe, original);
  await remove(probe, snapshot);
  await remove(probe, original);
  return answered({ subvolumeParent: left === 0 ? "free" : "held" });
}

async function add({ line, pool }: Probe, what: Fragment): Promise<Ran> {
  return await line.run([ros`/disk btrfs subvolume add fs=${pool.label} ${what}`], [ros`:len ${"x"}`]);
}

async function remove({ line }: Probe, name: string): Promise<void> {
  await line.run([ros`/disk btrfs subvolume remove [find where name=${name}]`], [ros`:len ${"x"}`]);
}

async function count({ line }: Probe, name: string): Promise<number | undefined> {
  const { frames } = await line.run([], [ros`:len [/disk btrfs subvolume find where name=${name}]`]);
  return frameNumber(frames[0]);
}
