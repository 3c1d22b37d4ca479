import type { RouterBehaviours } from "../../router_profile/answers.ts";
import { type Fragment, ros } from "../../routeros/console/command.ts";
import { NoAnswer, type Probe } from "./question.ts";
import { discard } from "./scratch.ts";
import type { Ran } from "./session.ts";

/** @throws {NoAnswer} where there are no subvolumes */
function assertSubvolumes({ pool }: Probe): void {
  if (pool.filesystem !== "btrfs") throw new NoAnswer(`the pool is ${pool.filesystem}, not Btrfs`);
  if (pool.label === "") throw new NoAnswer("the pool has no label by which its subvolumes could be named");
}

/** Where subvolumes may be made: a plain folder is where one would be made for a volume. */
export async function askSubvolumeNames(probe: Probe): Promise<RouterBehaviours["subvolumeNames"]> {
  assertSubvolumes(probe);
  const { line, names, pool } = probe;
  const inside = names.basePath.slice(pool.mountPoint.length + 2);
  if (inside === "") throw new NoAnswer("the base path is the pool itself: name a folder in it");
  const top = await addSubvolume(probe, ros`name=${names.name("top")}`);
  if (!top.done) throw new NoAnswer(`no subvolume can be made: ${top.texts}`);
  const nested = await addSubvolume(probe, ros`name=${`${inside}/${names.name("nested")}`}`);
  await removeSubvolume(probe, names.name("nested"));
  await removeSubvolume(probe, names.name("top"));
  await discard(line, names.path("nested"));
  return nested.done ? "nested" : "flat";
}

async function addSubvolume({ line, pool }: Probe, what: Fragment): Promise<Ran> {
  return await line.run([ros`/disk btrfs subvolume add fs=${pool.label} ${what}`], [ros`:len ${"x"}`]);
}

async function removeSubvolume({ line }: Probe, name: string): Promise<void> {
  await line.run([ros`/disk btrfs subvolume remove [find where name=${name}]`], [ros`:len ${"x"}`]);
}
