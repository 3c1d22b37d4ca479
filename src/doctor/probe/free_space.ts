import { ros } from "../../routeros/console/command.ts";
import { NoAnswer, type Probe } from "./question.ts";
import { readItems, wholeNumber } from "./scratch.ts";

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

/** How much the free space of the pool has fallen since, after it has had time to. */
interface Change {
  readonly bytes: bigint;
  /** Whether it was as much as was waited for. */
  readonly reached: boolean;
}

/** Waits until the free space has fallen from `beforeBytes` by `expectedBytes`, or has had time enough. */
export async function watchFall(probe: Probe, beforeBytes: bigint, expectedBytes: bigint): Promise<Change> {
  const startedMs = probe.clock.monotonicMs();
  for (let pauseMs = firstReadMs;; pauseMs *= 2) {
    const bytes = beforeBytes - await readFreeBytes(probe);
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

/**
 * Leaves a pool alone that has little room.
 *
 * @throws {NoAnswer} when it has
 */
export async function assertRoom(probe: Probe): Promise<void> {
  const free = await readFreeBytes(probe);
  if (free < minFreeBytes) throw new NoAnswer(`the pool has too little room for it: free=${free}`);
}
