import { ros } from "../../routeros/console/command.ts";
import { NoAnswer, type Probe } from "./question.ts";
import { readItems, wholeNumber } from "./scratch.ts";

/** How long a file system may take until its free space tells the truth, in milliseconds: Btrfs commits every 30 s. */
const settleMs = 35_000;
/** The first look is after so long, in milliseconds; each further one after twice as long. */
const firstLookMs = 1000;

/**
 * Free bytes of the pool.
 *
 * @throws {NoAnswer} when the router does not tell
 */
export async function readFreeBytes({ line, pool }: Pick<Probe, "line" | "pool">): Promise<bigint> {
  const query = ros`/disk print detail as-value proplist=slot,free where slot=${pool.slot}`;
  const free = wholeNumber((await readItems(line, query))[0]?.["free"]);
  if (free === undefined) throw new NoAnswer("the pool's free space is not told in bytes");
  return free;
}

/** How much the free space of the pool has fallen since, after it has had time to. */
export interface Fall {
  readonly bytes: bigint;
  /** Whether it was as much as was waited for. */
  readonly reached: boolean;
}

/** Waits until the free space has fallen from `beforeBytes` by `expectedBytes`, or has had time enough. */
export async function watchFall(probe: Probe, beforeBytes: bigint, expectedBytes: bigint): Promise<Fall> {
  const startedMs = probe.clock.monotonicMs();
  for (let pauseMs = firstLookMs;; pauseMs *= 2) {
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
  throw new NoAnswer(`others use the pool too much to see it: its free space fell by ${fell} by itself`);
}

/** Whether a change of the free space, up or down, is little beside so many bytes. */
export function isLittle(change: bigint, bytes: bigint): boolean {
  return (change < 0n ? -change : change) <= bytes / 4n;
}
