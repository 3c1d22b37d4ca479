import { answered, NoAnswer, type Outcome, type Probe, type Question } from "./question.ts";
import { addDisk, discard, withDisk } from "./scratch.ts";
import { readFreeBytes, watchFall } from "./free_space.ts";

const gibibyte = 1n << 30n;
/** The size of the disk that is made: over a gibibyte, so that nothing else on the pool looks like it. */
export const largeBytes = 2n * gibibyte;
/** A pool with less room is left alone. */
const leastFreeBytes = 4n * largeBytes;

/** Whether a new disk takes its space at once. */
export const allocationQuestion: Question = {
  names: ["allocation"],
  ask: askAllocation,
};

async function askAllocation(probe: Probe): Promise<Outcome> {
  await assertRoom(probe);
  const before = await readFreeBytes(probe);
  const fall = await withDisk(
    probe,
    "large",
    () => watchFall(probe, before, largeBytes * 9n / 10n),
    { sizeBytes: largeBytes },
  );
  if (fall.reached) return answered({ allocation: "full" });
  if (fall.bytes > largeBytes / 10n) {
    throw new NoAnswer(`a disk of ${largeBytes} bytes made the free space fall by ${fall.bytes}`);
  }
  probe.say(await sayWhetherBeyond(probe));
  return answered({ allocation: "sparse" });
}

/**
 * What becomes of a disk larger than the free space. Asked only where space is not taken at once: else the pool would
 * be full.
 */
async function sayWhetherBeyond(probe: Probe): Promise<string> {
  const disk = probe.names.disk("beyond");
  const sizeBytes = await readFreeBytes(probe) + gibibyte;
  const { done, words } = await addDisk(probe.line, { ...disk, sizeBytes });
  await discard(probe.line, disk.path);
  return `a disk larger than the free space is ${done ? "taken" : `refused: ${words}`}`;
}

/**
 * Leaves a pool alone that has little room.
 *
 * @throws {NoAnswer} when it has
 */
export async function assertRoom(probe: Probe): Promise<void> {
  const free = await readFreeBytes(probe);
  if (free < leastFreeBytes) throw new NoAnswer(`the pool has too little room for it: free=${free}`);
}
