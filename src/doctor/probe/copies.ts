import type { RouterBehaviours } from "../../router_profile/answers.ts";
import { Buffer } from "node:buffer";
import { maxCommandBytes, ros } from "../../routeros/console/command.ts";
import { fileName } from "../../routeros/store/queries.ts";
import { longestCommand } from "./limits.ts";
import type { Ran } from "./session.ts";
import { NoAnswer, type Probe } from "./question.ts";
import { addFile, discard, ensureDisk, findFile, readContents, wholeNumber } from "./scratch.ts";
import { assertQuiet, assertRoom, isLittle, largeBytes, readFreeBytes, watchFall } from "./disks.ts";

/** The longest file that is made with contents, in bytes; a router keeps the contents of small files only. */
const maxContents = 30_000;
const aroundBytes = 300;

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

/** Makes a file that really holds something, as much as a command can carry, and gives its contents. */
async function makeWritten(probe: Probe, path: string): Promise<string> {
  const { line, random, known } = probe;
  const maxBytes = Math.min(longestCommand(probe), known.maxPut ?? Infinity);
  const length = Math.min(maxContents, maxBytes - aroundBytes);
  // By chance, so that no compression makes it small.
  const contents = Buffer.from(random.bytes(length)).toString("base64").slice(0, length);
  const made = await addFile(line, path, contents, length + aroundBytes);
  if (made.done) return contents;
  const short = contents.slice(0, maxCommandBytes - aroundBytes);
  const { done, texts: text } = await addFile(line, path, short);
  if (!done) throw new NoAnswer(`no file with contents can be made: ${text}`);
  return short;
}

/**
 * Copies a file.
 *
 * @throws {NoAnswer} when the router refuses
 */
async function assertCopied({ line }: Probe, from: string, to: string): Promise<void> {
  const { done, texts: text } = await copyFile({ line }, from, to);
  if (!done) throw new NoAnswer(`the file cannot be copied: ${text}`);
}

async function copyFile({ line }: Pick<Probe, "line">, from: string, to: string): Promise<Ran> {
  const [source, target] = [fileName(from), fileName(to)];
  const query = ros`:len [/file find where name=${target}]`;
  return await line.run([ros`/file copy ${source} name=${target}`], [query]);
}

/** How often a written file is copied: more to see, and still few names to list. */
const copies = 4;

/** Whether a copy shares its blocks with the original. */
export async function askCopy(probe: Probe): Promise<RouterBehaviours["copy"]> {
  if (!probe.vocabulary.fileCopy) throw new NoAnswer("this RouterOS has no /file copy");
  await assertRoom(probe);
  const full = await takesSpaceForNothing(probe) || await takesSpaceForContents(probe);
  return full ? "full" : "reflink";
}

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
      `the free space fell by ${fall.bytes} bytes after a copy of ${bytes}: something else uses the pool`,
    );
  }
  return fall.reached;
}

/**
 * How much longer the answer to a large copy takes at least than that to a small one, in milliseconds, where the router
 * really has read it by then.
 */
const longerMs = 150;
/** How long a copy is watched after the answer, in milliseconds. */
const watchMs = 6000;
const pollMs = 1000;

/** Whether a copy is whole when the router answers. */
export async function askCopyReturns(probe: Probe): Promise<RouterBehaviours["copyReturns"]> {
  if (!probe.vocabulary.fileCopy) throw new NoAnswer("this RouterOS has no /file copy");
  await assertRoom(probe);
  const small = await copyWritten(probe);
  if (small.late) return "at-once";
  const large = await copyLarge(probe);
  if (large.late) return "at-once";
  return judge(probe, small, large);
}

/** How a copy went. */
interface Copied {
  /** Whether it changed after the answer. */
  readonly late: boolean;
  /** How long the answer took, in milliseconds. */
  readonly ms: number;
}

/**
 * That nothing was seen to change proves little: holes leave no trace. A copy that shares its blocks is made in one go;
 * of any other one, the time tells.
 */
function judge({ known, say }: Probe, small: Copied, large: Copied): RouterBehaviours["copyReturns"] {
  const text =
    `a small copy was answered after ${small.ms} ms, one of ${largeBytes} bytes after ${large.ms} ms`;
  say(text);
  if (known.copy === "reflink" || large.ms - small.ms >= longerMs) {
    return "when-done";
  }
  throw new NoAnswer(`${text}, and the file did not change after the answers: the copy may still have run`);
}

/** A small file that holds something: its contents tell whether the copy is whole. */
async function copyWritten(probe: Probe): Promise<Copied> {
  const [source, copy] = [probe.names.path("written.txt"), probe.names.path("copy.txt")];
  const contents = await makeWritten(probe, source);
  const ms = await timed(probe, () => assertCopied(probe, source, copy));
  const late = await changes(probe, copy, contents);
  await discard(probe.line, source, copy);
  return { late, ms };
}

/** A large disk that holds nothing: size or free space may tell. */
async function copyLarge(probe: Probe): Promise<Copied> {
  const disk = probe.names.disk("source");
  const copy = probe.names.path("large.img");
  await ensureDisk(probe.line, { ...disk, sizeBytes: largeBytes });
  const ms = await timed(probe, () => assertCopied(probe, disk.path, copy));
  const late = await keepsGrowing(probe, copy);
  await discard(probe.line, disk.path, copy);
  return { late, ms };
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

async function keepsGrowing(probe: Probe, path: string): Promise<boolean> {
  const reading = async () => ({
    size: wholeNumber((await findFile(probe.line, path))?.["size"]),
    free: await readFreeBytes(probe),
  });
  const first = await reading();
  const endMs = probe.clock.monotonicMs() + watchMs;
  while (probe.clock.monotonicMs() < endMs) {
    await probe.clock.sleep(pollMs, probe.signal);
    const { size, free } = await reading();
    // Others use the pool too: what they take is little.
    if (size !== first.size || first.free - free > largeBytes / 20n) return true;
  }
  if (first.size === largeBytes) return false;
  throw new NoAnswer(`a copy of a disk of ${largeBytes} bytes has ${first.size ?? "no"} bytes`);
}
