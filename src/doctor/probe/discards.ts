import { ros } from "../../routeros/console/command.ts";
import type { RouterBehaviours } from "../../router_profile/answers.ts";
import { imagePathOf } from "../../routeros/store/queries.ts";
import { VolumeError } from "../../volume/errors.ts";
import { isLittle, readFreeBytes, watchFall, watchRise } from "./disks.ts";
import { callOf, connect, type ExportedDisk, withExport } from "./exports.ts";
import { type HostLink, NoAnswer, type Probe } from "./question.ts";
import { mebibyte, readItems } from "./scratch.ts";

const blockBytes = 512n;
/** What is written and read at a time, in bytes. */
const chunkBytes = mebibyte;
const chunks = 64n;
/** A whole number of chunks and a little more: a size that no volume has. */
const sizeBytes = chunks * chunkBytes + 4096n;
const writtenBytes = chunks * chunkBytes;
/** A pool with less room is left alone. */
const minFreeBytes = 16n * sizeBytes;
/** How long writing may take, in milliseconds: with what follows it fits into two minutes. */
const defaultWriteMs = 30_000;

/** Whether the pool gets the room of blocks back that a host discards. */
export async function askDiscard(probe: Probe): Promise<RouterBehaviours["discard"]> {
  const freeBytes = await readFreeBytes(probe);
  if (freeBytes < minFreeBytes) {
    throw new NoAnswer(`the pool has too little room for it: free=${freeBytes}`);
  }
  return await withExport(probe, "trim", (disk) => fillAndDiscard(probe, disk, freeBytes), { sizeBytes });
}

async function fillAndDiscard(
  probe: Probe,
  disk: ExportedDisk,
  beforeBytes: bigint,
): Promise<RouterBehaviours["discard"]> {
  await using link = await connect(probe, disk.nqn);
  if (!link.takesDiscards) return "unsupported";
  await inTime(probe, async () => {
    await assertOwn(probe, disk, link);
    await fill(probe, link);
  });
  // Whether the disk took its room when it was made or only now: in all it is as much as its size.
  const fall = await watchFall(probe, beforeBytes, writtenBytes * 15n / 16n);
  if (!fall.reached || !isLittle(fall.bytes - writtenBytes, writtenBytes)) {
    throw new NoAnswer(
      `a disk with ${writtenBytes} bytes written to it made the free space fall by ${fall.bytes} bytes`,
    );
  }
  const filledBytes = await readFreeBytes(probe);
  if (!await inTime(probe, () => discardAll(probe, link))) return "unsupported";
  const rise = await watchRise(probe, filledBytes, writtenBytes * 3n / 4n);
  if (isLittle(rise.bytes - writtenBytes, writtenBytes)) return "frees";
  if (isLittle(rise.bytes, writtenBytes)) return "keeps";
  throw new NoAnswer(
    `the free space rose by ${rise.bytes} bytes after ${writtenBytes} were discarded: something else uses the pool`,
  );
}

/** @throws {NoAnswer} when the export does not answer in time */
async function inTime<Result>({ signal }: Probe, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (signal.aborted || !VolumeError.is(error, "deadline")) throw error;
    throw new NoAnswer(`the export does not answer in time: ${error.message}`);
  }
}

/**
 * Proves, before anything is written, that the connection leads to the scratch disk of this run: the router knows nothing
 * else by its NQN, which has this run's random digits; its size is that of no volume; and it holds nothing but zeros.
 *
 * @throws {NoAnswer} when one of these is not so
 */
async function assertOwn(probe: Probe, { nqn, slot, path }: ExportedDisk, link: HostLink): Promise<void> {
  const isNamed = nqn === probe.names.nqn("trim") || nqn === slot;
  const where = nqn === slot ? ros`slot=${slot}` : ros`nvme-tcp-server-nqn=${nqn}`;
  const found = await readItems(
    probe.line,
    ros`/disk print detail as-value proplist=slot,file-path where ${where}`,
  );
  const isOnly = found.length === 1 && imagePathOf(String(found[0]!["file-path"])) === path;
  if (!isNamed || !isOnly) throw notWritten("the router has another disk of that name");
  if (await link.namespaceBytes(callOf(probe)) !== sizeBytes) {
    throw notWritten("the host sees another size than that of the disk");
  }
  for (let at = 0n; at < sizeBytes; at += chunkBytes) {
    const bytes = at + chunkBytes > sizeBytes ? sizeBytes - at : chunkBytes;
    const data = await link.read(at / blockBytes, Number(bytes / blockBytes), callOf(probe));
    if (!isBlank(data)) throw notWritten("the new disk is not blank");
  }
}

function notWritten(reason: string): NoAnswer {
  return new NoAnswer(`nothing was written because ${reason}`);
}

function isBlank(data: Uint8Array): boolean {
  const words = new BigUint64Array(data.buffer, data.byteOffset, data.byteLength / 8);
  return words.every((word) => word === 0n);
}

/** @throws {NoAnswer} when it takes too long, or does not read back */
async function fill(probe: Probe, link: HostLink): Promise<void> {
  const data = randomChunk(probe);
  const { writeMs = defaultWriteMs } = probe;
  const endMs = probe.clock.monotonicMs() + writeMs;
  for (let chunk = 0n; chunk < chunks; chunk++) {
    if (probe.clock.monotonicMs() > endMs) {
      throw new NoAnswer(`writing ${writtenBytes} bytes takes longer than ${writeMs / 1000} s`);
    }
    probe.signal.throwIfAborted();
    await link.write(chunk * chunkBytes / blockBytes, data, callOf(probe));
  }
  await link.flush(callOf(probe));
  const last = await link.read((chunks - 1n) * chunkBytes / blockBytes, 1, callOf(probe));
  if (last.every((byte, at) => byte === data[at])) return;
  throw new NoAnswer("what was written to the disk does not read back");
}

/** By chance, so that no compression makes it small. */
function randomChunk({ random }: Pick<Probe, "random">): Uint8Array {
  const data = new Uint8Array(Number(chunkBytes));
  // No more comes at a time (Web Cryptography, getRandomValues).
  for (let at = 0; at < data.length; at += 65_536) data.set(random.bytes(65_536), at);
  return data;
}

/** Whether the router carries it out. */
async function discardAll(probe: Probe, link: HostLink): Promise<boolean> {
  try {
    await link.discard(0n, Number(sizeBytes / blockBytes), callOf(probe));
    return true;
  } catch (error) {
    if (VolumeError.is(error) && probe.host.isRefusedCommand(error)) return false;
    throw error;
  }
}
