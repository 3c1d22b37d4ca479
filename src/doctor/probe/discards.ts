import type { RouterBehaviours } from "../../router_profile/answers.ts";
import { VolumeError } from "../../volume/errors.ts";
import { isLittle, readFreeBytes, watchRise } from "./disks.ts";
import { asked, connect, type ExportedDisk, withExport } from "./exports.ts";
import { type HostLink, NoAnswer, type Probe } from "./question.ts";
import { blockBytes, writeSeen, writtenBytes, writtenDiskBytes } from "./written.ts";

/** A pool with less room is left alone. */
const minFreeBytes = 16n * writtenDiskBytes;

/** Whether the pool gets the room of blocks back that a host discards. */
export async function askDiscard(probe: Probe): Promise<RouterBehaviours["discard"]> {
  const freeBytes = await readFreeBytes(probe);
  if (freeBytes < minFreeBytes) {
    throw new NoAnswer(`the pool has too little room for it: free=${freeBytes}`);
  }
  return await withExport(probe, "trim", (disk) => fillAndDiscard(probe, disk, freeBytes), {
    sizeBytes: writtenDiskBytes,
  });
}

async function fillAndDiscard(
  probe: Probe,
  disk: ExportedDisk,
  beforeBytes: bigint,
): Promise<RouterBehaviours["discard"]> {
  await using link = await connect(probe, disk.nqn);
  if (!link.takesDiscards) return "unsupported";
  await writeSeen(probe, disk, link, beforeBytes);
  const filledBytes = await readFreeBytes(probe);
  if (!await discardAll(probe, link)) return "unsupported";
  const rise = await watchRise(probe, filledBytes, writtenBytes * 3n / 4n);
  if (isLittle(rise.bytes - writtenBytes, writtenBytes)) return "frees";
  if (isLittle(rise.bytes, writtenBytes)) return "keeps";
  throw new NoAnswer(
    `the free space rose by ${rise.bytes} bytes after ${writtenBytes} were discarded: something else uses the pool`,
  );
}

/** Whether the router carries it out. */
async function discardAll(probe: Probe, link: HostLink): Promise<boolean> {
  try {
    await asked(probe, (call) => link.discard(0n, Number(writtenDiskBytes / blockBytes), call));
    return true;
  } catch (error) {
    if (VolumeError.is(error) && probe.host.isRefusedCommand(error)) return false;
    throw error;
  }
}
