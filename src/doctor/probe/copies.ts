import { ros } from "../../routeros/console/command.ts";
import { fileName } from "../../routeros/store/queries.ts";
import { assertQuiet, isLittle, readFreeBytes, watchFall } from "./free_space.ts";
import { connect, type ExportedDisk, withdraw, withExport } from "./exports.ts";
import { NoAnswer, type Probe } from "./question.ts";
import { addFile, discard } from "./scratch.ts";
import type { Ran } from "./session.ts";
import { writeSeen, writtenBytes, writtenDiskBytes } from "./written.ts";

/**
 * Whether the router can copy a file at all.
 *
 * @throws {NoAnswer} when no file can be made to copy
 */
export async function canCopy({ line, names }: Pick<Probe, "line" | "names">): Promise<boolean> {
  const [from, to] = [names.path("copy-from.txt"), names.path("copy-to.txt")];
  const made = await addFile(line, from, names.tag);
  if (!made.done) throw new NoAnswer(`no file with contents can be made: ${made.texts}`);
  const { done } = await copyFile({ line }, from, to);
  await discard(line, from, to);
  return done;
}

/**
 * Copies a file.
 *
 * @throws {NoAnswer} when the router refuses
 */
export async function assertCopied({ line }: Probe, from: string, to: string): Promise<void> {
  const { done, texts: text } = await copyFile({ line }, from, to);
  if (!done) throw new NoAnswer(`the file cannot be copied: ${text}`);
}

async function copyFile({ line }: Pick<Probe, "line">, from: string, to: string): Promise<Ran> {
  const [source, target] = [fileName(from), fileName(to)];
  const query = ros`:len [/file find where name=${target}]`;
  return await line.run([ros`/file copy ${source} name=${target}`], [query]);
}

/** How often a filled disk is copied: more to see than what others use of the pool meanwhile. */
const copies = 3;
const copiedBytes = BigInt(copies) * writtenBytes;

/**
 * Whether copies share their blocks with the original: the free space tells, once it has shown a disk that was filled.
 *
 * @throws {NoAnswer} when it does not tell
 */
export async function sharesBlocks(probe: Probe): Promise<boolean> {
  await assertQuiet(probe, writtenBytes);
  const beforeBytes = await readFreeBytes(probe);
  return await withExport(probe, "shared", (disk) => fillAndCopy(probe, disk, beforeBytes), {
    sizeBytes: writtenDiskBytes,
  });
}

async function fillAndCopy(probe: Probe, disk: ExportedDisk, beforeBytes: bigint): Promise<boolean> {
  const { line, names } = probe;
  await fillSeen(probe, disk, beforeBytes);
  await withdraw(probe, disk);
  const filledBytes = await readFreeBytes(probe);
  const targets = Array.from({ length: copies }, (_, index) => names.path(`shared${index}.img`));
  for (const target of targets) await assertCopied(probe, disk.path, target);
  const fall = await watchFall(probe, filledBytes, copiedBytes * 3n / 4n);
  await discard(line, ...targets);
  if (fall.reached) return false;
  if (isLittle(fall.bytes, copiedBytes)) return true;
  throw new NoAnswer(
    `the free space fell by ${fall.bytes} bytes after copies of ${copiedBytes}: something else uses the pool, so probe ` +
      "again at a quiet time",
  );
}

async function fillSeen(probe: Probe, disk: ExportedDisk, beforeBytes: bigint): Promise<void> {
  await using link = await connect(probe, disk.nqn);
  await writeSeen(probe, disk, link, beforeBytes);
}
