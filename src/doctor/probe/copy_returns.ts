import { Buffer } from "node:buffer";
import type { RouterBehaviours } from "../../router_profile/answers.ts";
import { maxCommandBytes, ros } from "../../routeros/console/command.ts";
import { fileName } from "../../routeros/store/queries.ts";
import { assertCopied, canCopy, sharesBlocks } from "./copies.ts";
import { assertRoom, largeBytes } from "./free_space.ts";
import { asked, connect, exportedAs, type ExportedDisk, withdraw, withExport } from "./exports.ts";
import type { ScratchDisk } from "./names.ts";
import { NoAnswer, type Probe } from "./question.ts";
import { addFile, discard, ensureDisk, findFile, readContents, wholeNumber } from "./scratch.ts";
import { holdsTail, writeScratch, writtenDiskBytes } from "./written.ts";

/** What the command that makes a file needs beside its contents, in bytes. */
const aroundBytes = 300;

/**
 * How much longer the answer to a large copy takes at least than that to a small one, in milliseconds, where the router
 * really has read it by then.
 */
const longerMs = 150;
/** How often each copy is made: one pair of times says little. */
const samples = 3;
/** How long a copy is watched after the answer, in milliseconds. */
const watchMs = 6000;
const pollMs = 1000;

/**
 * Whether a copy is whole when the router answers. The free space says nothing: a file system reports it late, in steps,
 * and for everybody.
 */
export async function askCopyReturns(probe: Probe): Promise<RouterBehaviours["copyReturns"]> {
  if (!await canCopy(probe)) throw new NoAnswer("this RouterOS has no /file copy");
  await assertRoom(probe);
  const small = await copyWritten(probe);
  if (small.late || await comesLate(probe)) return "at-once";
  if (!await areKnownToShare(probe)) assertTakesTime(probe, small.ms, await timeLarge(probe));
  return "when-done";
}

async function areKnownToShare(probe: Probe): Promise<boolean> {
  try {
    return await sharesBlocks(probe);
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    probe.say(`whether copies share their blocks is not known: ${error.message}`);
    return false;
  }
}

/**
 * That every copy was whole when it was read proves little where a copy is fast. One that shares its blocks is made in one go;
 * of any other one, the time tells.
 *
 * @throws {NoAnswer} when the times do not tell
 */
function assertTakesTime({ say }: Probe, smallMs: readonly number[], largeMs: readonly number[]): void {
  const text =
    `small copies were answered after ${smallMs.join(", ")} ms, and copies of ${largeBytes} bytes ` +
    `after ${largeMs.join(", ")} ms`;
  say(text);
  if (Math.min(...largeMs) - Math.max(...smallMs) >= longerMs) return;
  throw new NoAnswer(
    `${text}, and no copy changed after the answer: it may still have run. Watch a copy of a large file that was written, and ` +
      "add the answer by hand",
  );
}

/** Small files that hold something: their contents may tell whether a copy is whole. Times are in milliseconds. */
async function copyWritten(
  probe: Probe,
): Promise<{ readonly late: boolean; readonly ms: readonly number[] }> {
  const source = probe.names.path("written.txt");
  const contents = await makeWritten(probe, source);
  const ms: number[] = [];
  let late = false;
  while (!late && ms.length < samples) {
    const copy = probe.names.path(`copy${ms.length}.txt`);
    ms.push(await timed(probe, () => assertCopied(probe, source, copy)));
    late = await changes(probe, copy, contents);
    await discard(probe.line, copy);
  }
  await discard(probe.line, source);
  return { late, ms };
}

/** How long copies of a large disk take that holds nothing, in milliseconds. */
async function timeLarge(probe: Probe): Promise<readonly number[]> {
  const disk = probe.names.disk("source");
  await ensureDisk(probe.line, { ...disk, sizeBytes: largeBytes });
  const ms: number[] = [];
  while (ms.length < samples) {
    const copy = probe.names.path(`large${ms.length}.img`);
    ms.push(await timed(probe, () => assertCopied(probe, disk.path, copy)));
    const size = wholeNumber((await findFile(probe.line, copy))?.["size"]);
    if (size !== largeBytes) {
      throw new NoAnswer(`a copy of a disk of ${largeBytes} bytes has ${size ?? "no"} bytes: make no copies`);
    }
    await discard(probe.line, copy);
  }
  await discard(probe.line, disk.path);
  return ms;
}

/** Makes a file that really holds something, as much as a command can carry, and gives its contents. */
async function makeWritten(probe: Probe, path: string): Promise<string> {
  const { line, random } = probe;
  const length = maxCommandBytes - aroundBytes;
  // By chance, so that no compression makes it small.
  const contents = Buffer.from(random.bytes(length)).toString("base64").slice(0, length);
  const { done, texts: text } = await addFile(line, path, contents);
  if (!done) throw new NoAnswer(`no file with contents can be made: ${text}`);
  return contents;
}

async function timed({ clock }: Probe, work: () => Promise<void>): Promise<number> {
  const startedMs = clock.monotonicMs();
  await work();
  return Math.round(clock.monotonicMs() - startedMs);
}

async function changes(probe: Probe, path: string, wanted: string): Promise<boolean> {
  const first = await readContents(probe.line, path);
  const endMs = probe.clock.monotonicMs() + watchMs;
  while (first !== wanted && probe.clock.monotonicMs() < endMs) {
    await probe.clock.sleep(pollMs, probe.signal);
    if (await readContents(probe.line, path) !== first) return true;
  }
  return false;
}

/** Whether copies of a disk that a host has filled lack its end after the answer, and have it later. */
async function comesLate(probe: Probe): Promise<boolean> {
  return await withExport(probe, "tail", async (disk) => {
    const tail = await fillDisk(probe, disk);
    // The driver too copies only what nobody can write to.
    await withdraw(probe, disk);
    for (let sample = 0; sample < samples; sample++) {
      if (await lacksTail(probe, disk, tail, `tail${sample}`)) return true;
    }
    return false;
  }, { sizeBytes: writtenDiskBytes });
}

async function fillDisk(probe: Probe, disk: ExportedDisk): Promise<Uint8Array> {
  await using link = await connect(probe, disk.nqn);
  return await writeScratch(probe, disk, link);
}

/** The command that copies exports the copy as well: a later one could miss that the router goes on copying. */
async function lacksTail(
  probe: Probe,
  from: ScratchDisk,
  tail: Uint8Array,
  suffix: string,
): Promise<boolean> {
  const { line, names } = probe;
  const disk = names.disk(suffix);
  const { nqn, exportOn } = exportedAs(probe, disk, suffix);
  const copy = ros`/file copy ${fileName(from.path)} name=${fileName(disk.path)}`;
  const add =
    ros`/disk add type=${"file"} slot=${disk.slot} file-path=${disk.path} mount-filesystem=${false}`;
  const { done, texts } = await line.run([copy, ros`${add} ${exportOn}`], [ros`:len ${"x"}`]);
  if (!done) throw new NoAnswer(`no disk can be made of a copy: ${texts}`);
  const late = await waitsForTail(probe, nqn, tail);
  await withdraw(probe, disk);
  await discard(line, disk.path);
  return late;
}

/** @throws {NoAnswer} when the tail never comes */
async function waitsForTail(probe: Probe, nqn: string, tail: Uint8Array): Promise<boolean> {
  await using link = await connect(probe, nqn);
  // The disk keeps the size that the file had when the router made it.
  if (await asked(probe, (call) => link.namespaceBytes(call)) < writtenDiskBytes) return true;
  if (await holdsTail(probe, link, tail)) return false;
  const endMs = probe.clock.monotonicMs() + watchMs;
  while (probe.clock.monotonicMs() < endMs) {
    await probe.clock.sleep(pollMs, probe.signal);
    if (await holdsTail(probe, link, tail)) return true;
  }
  throw new NoAnswer(
    "a copy of a disk does not hold what was written to it: make no copies with this router",
  );
}
