import { Buffer } from "node:buffer";
import { ros } from "../../routeros/console/command.ts";
import { imagePathOf } from "../../routeros/store/queries.ts";
import { isLittle, watchFall } from "./free_space.ts";
import { asked, type ExportedDisk } from "./exports.ts";
import { type HostLink, NoAnswer, type Probe } from "./question.ts";
import { mebibyte, readItems } from "./scratch.ts";

/** What is written and read at a time, in bytes. */
const chunkBytes = mebibyte;
const chunks = 64n;
/** A whole number of chunks and a little more: a size that no volume has. */
export const writtenDiskBytes = chunks * chunkBytes + 4096n;
/** How much of it is written, in bytes. */
export const writtenBytes = chunks * chunkBytes;
/** How long writing may take, in milliseconds: with what follows it fits into two minutes. */
const defaultWriteMs = 30_000;

/**
 * Fills a scratch disk of {@linkcode writtenDiskBytes} over its connection, and returns what {@linkcode holdsTail} looks for.
 *
 * @throws {NoAnswer} when it is not proven to be one, or the export is too slow
 */
export async function writeScratch(probe: Probe, disk: ExportedDisk, link: HostLink): Promise<Uint8Array> {
  await assertOwn(probe, disk, link);
  return await fill(probe, link);
}

/**
 * Fills a scratch disk as {@linkcode writeScratch} does, and makes sure that the free space shows it: one that is counted in
 * coarse steps, or that others change, shows nothing of what comes after it either.
 *
 * @param beforeBytes the free space before the disk was made
 * @throws {NoAnswer} when it does not
 */
export async function writeSeen(
  probe: Probe,
  disk: ExportedDisk,
  link: HostLink,
  beforeBytes: bigint,
): Promise<void> {
  await writeScratch(probe, disk, link);
  // Whether the disk took its room when it was made or only now: in all it is as much as its size.
  const fall = await watchFall(probe, beforeBytes, writtenBytes * 15n / 16n);
  if (fall.reached && isLittle(fall.bytes - writtenBytes, writtenBytes)) return;
  throw new NoAnswer(
    `a disk with ${writtenBytes} bytes written to it made the free space fall by ${fall.bytes} bytes: ` +
      "probe again when nothing else uses the pool",
  );
}

/** Whether the last part of a filled disk, or of a copy of it, is what was written. */
export async function holdsTail(probe: Probe, link: HostLink, tail: Uint8Array): Promise<boolean> {
  return isEqual(await readBytes(probe, link, (chunks - 1n) * chunkBytes, chunkBytes), tail);
}

/**
 * Proves, before anything is written, that the connection leads to the scratch disk of this run: the router knows nothing
 * else by its NQN, which has this run's random digits; its size is that of no volume; and it holds nothing but zeros.
 *
 * @throws {NoAnswer} when one of these is not so
 */
async function assertOwn(probe: Probe, { nqn, path }: ExportedDisk, link: HostLink): Promise<void> {
  const found = await readItems(
    probe.line,
    ros`/disk print detail as-value proplist=slot,file-path where nvme-tcp-server-nqn=${nqn}`,
  );
  const isOnly = found.length === 1 && imagePathOf(String(found[0]!["file-path"])) === path;
  if (!nqn.startsWith(probe.names.nqn("")) || !isOnly) {
    throw notWritten("the router has another disk of that name");
  }
  if (await asked(probe, (call) => link.namespaceBytes(call)) !== writtenDiskBytes) {
    throw notWritten("the host sees another size than that of the disk");
  }
  const blank = new Uint8Array(Number(chunkBytes));
  for (let at = 0n; at < writtenDiskBytes; at += chunkBytes) {
    const bytes = at + chunkBytes > writtenDiskBytes ? writtenDiskBytes - at : chunkBytes;
    const data = await readBytes(probe, link, at, bytes);
    if (!isEqual(data, blank.subarray(0, Number(bytes)))) throw notWritten("the new disk is not blank");
  }
}

/** Reads whole blocks, from a place in bytes on. */
async function readBytes(probe: Probe, link: HostLink, at: bigint, bytes: bigint): Promise<Uint8Array> {
  const blockBytes = BigInt(await asked(probe, (call) => link.blockBytes(call)));
  return await asked(probe, (call) => link.read(at / blockBytes, Number(bytes / blockBytes), call));
}

function notWritten(reason: string): NoAnswer {
  return new NoAnswer(`nothing was written because ${reason}`);
}

function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}

/** @throws {NoAnswer} when it takes too long, or does not read back */
async function fill(probe: Probe, link: HostLink): Promise<Uint8Array> {
  const data = randomChunk(probe);
  const { writeMs = defaultWriteMs } = probe;
  const endMs = probe.clock.monotonicMs() + writeMs;
  const blockBytes = BigInt(await asked(probe, (call) => link.blockBytes(call)));
  for (let chunk = 0n; chunk < chunks; chunk++) {
    if (probe.clock.monotonicMs() > endMs) {
      throw new NoAnswer(`writing ${writtenBytes} bytes takes longer than ${writeMs / 1000} s`);
    }
    probe.signal.throwIfAborted();
    await asked(probe, (call) => link.write(chunk * chunkBytes / blockBytes, data, call));
  }
  await asked(probe, (call) => link.flush(call));
  if (await holdsTail(probe, link, data)) return data;
  throw new NoAnswer("what was written to the disk does not read back");
}

/** By chance, so that no compression makes it small. */
function randomChunk({ random }: Pick<Probe, "random">): Uint8Array {
  const data = new Uint8Array(Number(chunkBytes));
  // No more comes at a time (Web Cryptography, getRandomValues).
  for (let at = 0; at < data.length; at += 65_536) data.set(random.bytes(65_536), at);
  return data;
}
