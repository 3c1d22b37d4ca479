import type { RouterBehaviours } from "../../router_profile/answers.ts";
import { type Fragment, ros } from "../../routeros/console/command.ts";
import { NoAnswer, type Probe } from "./question.ts";
import {
  addDisk,
  addFile,
  discard,
  findFile,
  frameNumber,
  readContents,
  readItems,
  wholeNumber,
  withDisk,
} from "./scratch.ts";
import type { Ran } from "./session.ts";

/** How long a file system may take until its free space tells the truth, in milliseconds: Btrfs commits every 30 s. */
const settleMs = 35_000;
/** The first look is after so long, in milliseconds; each further one after twice as long. */
const firstReadMs = 1000;

/**
 * Free bytes of the pool.
 *
 * @throws {NoAnswer} when the router does not tell
 */
export async function readFreeBytes({ line, pool }: Pick<Probe, "line" | "pool">): Promise<bigint> {
  const query = ros`/disk print detail as-value proplist=slot,free where slot=${pool.slot}`;
  const free = wholeNumber((await readItems(line, query))[0]?.["free"]);
  if (free === undefined) throw new NoAnswer("the router does not report the pool's free space in bytes");
  return free;
}

/** How much the free space of the pool has fallen or risen since, after it has had time to. */
interface Change {
  readonly bytes: bigint;
  /** Whether it was as much as was waited for. */
  readonly reached: boolean;
}

/** Waits until the free space has fallen from `beforeBytes` by `expectedBytes`, or has had time enough. */
export async function watchFall(probe: Probe, beforeBytes: bigint, expectedBytes: bigint): Promise<Change> {
  return await watch(probe, async () => beforeBytes - await readFreeBytes(probe), expectedBytes);
}

/** Waits until the free space has risen from `beforeBytes` by `expectedBytes`, or has had time enough. */
export async function watchRise(probe: Probe, beforeBytes: bigint, expectedBytes: bigint): Promise<Change> {
  return await watch(probe, async () => await readFreeBytes(probe) - beforeBytes, expectedBytes);
}

async function watch(probe: Probe, read: () => Promise<bigint>, expectedBytes: bigint): Promise<Change> {
  const startedMs = probe.clock.monotonicMs();
  for (let pauseMs = firstReadMs;; pauseMs *= 2) {
    const bytes = await read();
    if (bytes >= expectedBytes) return { bytes, reached: true };
    const leftMs = settleMs - (probe.clock.monotonicMs() - startedMs);
    if (leftMs <= 0) return { bytes, reached: false };
    await probe.clock.sleep(Math.min(pauseMs, leftMs), probe.signal);
  }
}

/**
 * Makes sure that nobody else uses the pool so much that the fall by a few bytes could not be told.
 *
 * @throws {NoAnswer} when somebody does
 */
export async function assertQuiet(probe: Probe, bytes: bigint): Promise<void> {
  const before = await readFreeBytes(probe);
  await probe.clock.sleep(settleMs, probe.signal);
  const fell = before - await readFreeBytes(probe);
  if (isLittle(fell, bytes)) return;
  throw new NoAnswer(
    `other use of the pool hides the result, probe again at a quiet time: its free space fell by ${fell} bytes without the ` +
      "probe",
  );
}

/** Whether a change of the free space, up or down, is little beside so many bytes. */
export function isLittle(change: bigint, bytes: bigint): boolean {
  return (change < 0n ? -change : change) <= bytes / 4n;
}

/** The size of the disk that is made: over a gibibyte, so that nothing else on the pool looks like it. */
export const largeBytes = 2n << 30n;
/** A pool with less room is left alone. */
const minFreeBytes = 4n * largeBytes;

/** Whether a new disk takes its space at once. */
export async function askAllocation(probe: Probe): Promise<RouterBehaviours["allocation"]> {
  await assertRoom(probe);
  const before = await readFreeBytes(probe);
  const fall = await withDisk(
    probe,
    "large",
    () => watchFall(probe, before, largeBytes * 9n / 10n),
    { sizeBytes: largeBytes },
  );
  if (fall.reached) return "full";
  if (fall.bytes > largeBytes / 10n) {
    throw new NoAnswer(`a disk of ${largeBytes} bytes made the free space fall by ${fall.bytes}`);
  }
  return "sparse";
}

/**
 * Leaves a pool alone that has little room.
 *
 * @throws {NoAnswer} when it has
 */
export async function assertRoom(probe: Probe): Promise<void> {
  const free = await readFreeBytes(probe);
  if (free < minFreeBytes) throw new NoAnswer(`the pool has too little room for it: free=${free}`);
}

/** The size of an image whose contents fit into a command, in bytes: a sector. */
const smallBytes = 512n;

/** What becomes of a file that is there already. */
export async function askAdopt({ line, names }: Probe): Promise<RouterBehaviours["adopt"]> {
  await assertSmallDisks({ line, names });
  const disk = names.disk("adopt");
  const contents = names.tag.repeat(Number(smallBytes)).slice(0, Number(smallBytes));
  const made = await addFile(line, disk.path, contents);
  if (!made.done) throw new NoAnswer(`no file with contents can be made: ${made.texts}`);
  const before = await readContents(line, disk.path);
  const { done } = await addDisk(line, { ...disk, sizeBytes: smallBytes });
  const after = done ? await readContents(line, disk.path) : undefined;
  const size = wholeNumber((await findFile(line, disk.path))?.["size"]);
  await discard(line, disk.path);
  if (!done) return "refused";
  // Where contents are not shown at all, the size has to do.
  if (before === contents ? after === contents : size === smallBytes) return "kept";
  throw new NoAnswer("the router made a disk of the file, but the file's contents changed");
}

/** A refusal of a small size must not be taken for a refusal of the file. */
async function assertSmallDisks({ line, names }: Pick<Probe, "line" | "names">): Promise<void> {
  const disk = names.disk("small");
  const { done, texts: text } = await addDisk(line, { ...disk, sizeBytes: smallBytes });
  await discard(line, disk.path);
  if (!done) throw new NoAnswer(`no disk of ${smallBytes} bytes can be made: ${text}`);
}

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

/** Whether a subvolume goes while there is a snapshot of it. */
export async function askSubvolumeParent(probe: Probe): Promise<RouterBehaviours["subvolumeParent"]> {
  assertSubvolumes(probe);
  const [original, snapshot] = [probe.names.name("original"), probe.names.name("snapshot")];
  const made = await addSubvolume(probe, ros`name=${original}`);
  if (!made.done) throw new NoAnswer(`no subvolume can be made: ${made.texts}`);
  const taken = await addSubvolume(probe, ros`name=${snapshot} parent=${original} read-only=${true}`);
  if (!taken.done) throw new NoAnswer(`no snapshot can be made: ${taken.texts}`);
  await removeSubvolume(probe, original);
  const left = await countSubvolumes(probe, original);
  await removeSubvolume(probe, snapshot);
  await removeSubvolume(probe, original);
  return left === 0 ? "free" : "held";
}

async function addSubvolume({ line, pool }: Probe, what: Fragment): Promise<Ran> {
  return await line.run([ros`/disk btrfs subvolume add fs=${pool.label} ${what}`], [ros`:len ${"x"}`]);
}

async function removeSubvolume({ line }: Probe, name: string): Promise<void> {
  await line.run([ros`/disk btrfs subvolume remove [find where name=${name}]`], [ros`:len ${"x"}`]);
}

async function countSubvolumes({ line }: Probe, name: string): Promise<number | undefined> {
  const { frames } = await line.run([], [ros`:len [/disk btrfs subvolume find where name=${name}]`]);
  return frameNumber(frames[0]);
}
