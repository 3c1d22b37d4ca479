import { ros } from "../../routeros/console/command.ts";
import { readContents } from "./copying.ts";
import {
  answered,
  answerOf,
  NoAnswer,
  type Outcome,
  type Probe,
  type Question,
  together,
} from "./question.ts";
import {
  addDisk,
  addFile,
  detachDisk,
  discard,
  ensureDisk,
  findDisk,
  findFile,
  mebibyte,
  wholeNumber,
  withDisk,
} from "./scratch.ts";

/** The size of an image whose contents fit into a command, in bytes: a sector. */
const smallBytes = 512n;

/** Sizes that are odd or do not fit, and what becomes of a file that is there already. */
export const diskSizesQuestion: Question = {
  names: ["oddSize", "otherSize", "adopt"],
  ask: async (probe) =>
    together(
      await answerOf("oddSize", () => askOddSize(probe)),
      await answerOf("otherSize", () => askOtherSize(probe)),
      await answerOf("adopt", () => askAdopt(probe)),
    ),
};

async function askOddSize(probe: Probe): Promise<Outcome> {
  const { line, names } = probe;
  // Where no disk can be made at all, an odd size is not the reason.
  await withDisk(probe, "even", () => Promise.resolve());
  const disk = names.disk("odd");
  const sizeBytes = mebibyte + 1n;
  const { done } = await addDisk(line, { ...disk, sizeBytes });
  const given = done ? await sizeOf({ line }, disk.path) : undefined;
  await discard(line, disk.path);
  if (!done) return answered({ oddSize: "refused" });
  if (given === sizeBytes) return answered({ oddSize: "kept" });
  if (given !== undefined && given % smallBytes === 0n) return answered({ oddSize: "rounded" });
  throw new NoAnswer(`a disk of ${sizeBytes} bytes became one of ${given ?? "unknown size"}`);
}

async function askOtherSize({ line, names }: Probe): Promise<Outcome> {
  const disk = names.disk("other");
  await ensureDisk(line, { ...disk, sizeBytes: mebibyte });
  const detached = await detachDisk(line, disk);
  if (!detached.done) throw new NoAnswer(`the scratch disk cannot be removed: ${detached.words}`);
  const { done } = await addDisk(line, { ...disk, sizeBytes: 2n * mebibyte });
  const given = done ? await sizeOf({ line }, disk.path) : undefined;
  await discard(line, disk.path);
  if (!done) return answered({ otherSize: "refused" });
  if (given === mebibyte) return answered({ otherSize: "kept" });
  if (given === 2n * mebibyte) return answered({ otherSize: "resized" });
  throw new NoAnswer(`a file of 1 MiB added with 2 MiB became a disk of ${given ?? "unknown size"}`);
}

async function askAdopt({ line, names }: Probe): Promise<Outcome> {
  await assertSmallDisks({ line, names });
  const disk = names.disk("adopt");
  const contents = names.tag.repeat(Number(smallBytes)).slice(0, Number(smallBytes));
  const made = await addFile(line, disk.path, contents);
  if (!made.done) throw new NoAnswer(`no file with contents can be made: ${made.words}`);
  const before = await readContents({ line }, disk.path);
  const { done } = await addDisk(line, { ...disk, sizeBytes: smallBytes });
  const after = done ? await readContents({ line }, disk.path) : undefined;
  const size = wholeNumber((await findFile(line, disk.path))?.["size"]);
  await discard(line, disk.path);
  if (!done) return answered({ adopt: "refused" });
  // Where contents are not shown at all, the size has to do.
  if (before === contents ? after === contents : size === smallBytes) return answered({ adopt: "kept" });
  throw new NoAnswer("the file was taken over, but its contents did not stay");
}

/** A refusal of a small size must not be taken for a refusal of the file. */
async function assertSmallDisks({ line, names }: Pick<Probe, "line" | "names">): Promise<void> {
  const disk = names.disk("small");
  const { done, words } = await addDisk(line, { ...disk, sizeBytes: smallBytes });
  await discard(line, disk.path);
  if (!done) throw new NoAnswer(`no disk of ${smallBytes} bytes can be made: ${words}`);
}

async function sizeOf({ line }: Pick<Probe, "line">, path: string): Promise<bigint | undefined> {
  return wholeNumber((await findDisk(line, path, ros`size`))?.["size"]);
}
