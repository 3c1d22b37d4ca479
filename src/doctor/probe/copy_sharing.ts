import { assertRoom, largeBytes } from "./allocation.ts";
import { assertCopied, makeWritten } from "./copying.ts";
import { assertQuiet, isLittle, readFreeBytes, watchFall } from "./free_space.ts";
import { answered, NoAnswer, type Probe, type Question } from "./question.ts";
import { discard, ensureDisk } from "./scratch.ts";

/** How often a written file is copied: more to see, and still few names to list. */
const copies = 4;

/** Whether a copy shares its blocks with the original. */
export const copySharingQuestion: Question = {
  names: ["copy"],
  async ask(probe) {
    if (!probe.vocabulary.fileCopy) throw new NoAnswer("this RouterOS has no /file copy");
    await assertRoom(probe);
    const full = await takesSpaceForNothing(probe) || await takesSpaceForContents(probe);
    return answered({ copy: full ? "full" : "reflink" });
  },
};

/** A large disk that holds nothing: a router that writes every zero makes the free space fall a long way. */
async function takesSpaceForNothing(probe: Probe): Promise<boolean> {
  const { line, names } = probe;
  const source = names.disk("shared");
  const copy = names.path("shared-copy.img");
  await ensureDisk(line, { ...source, sizeBytes: largeBytes });
  const fell = await falls(probe, largeBytes, () => assertCopied(probe, source.path, copy));
  await discard(line, source.path, copy);
  return fell;
}

/** A file that holds something, as much as can be made: copies that are no longer than it show in small numbers. */
async function takesSpaceForContents(probe: Probe): Promise<boolean> {
  const { line, names } = probe;
  const source = names.path("shared.txt");
  const contents = await makeWritten(probe, source);
  await assertQuiet(probe, BigInt(contents.length * copies));
  const targets = Array.from({ length: copies }, (_, index) => names.path(`shared${index}.txt`));
  const fell = await falls(probe, BigInt(contents.length * copies), async () => {
    for (const target of targets) await assertCopied(probe, source, target);
  });
  await discard(line, source, ...targets);
  return fell;
}

/** Whether work makes the free space fall by most of `bytes`. */
async function falls(probe: Probe, bytes: bigint, work: () => Promise<void>): Promise<boolean> {
  const before = await readFreeBytes(probe);
  await work();
  const fall = await watchFall(probe, before, bytes * 3n / 4n);
  if (!fall.reached && !isLittle(fall.bytes, bytes)) {
    throw new NoAnswer(
      `the free space fell by ${fall.bytes} where ${bytes} were copied: others use the pool`,
    );
  }
  return fall.reached;
}
