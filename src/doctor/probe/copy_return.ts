import { assertRoom, largeBytes } from "./allocation.ts";
import { assertCopied, makeWritten, readContents } from "./copying.ts";
import { readFreeBytes } from "./free_space.ts";
import { answered, NoAnswer, type Outcome, type Probe, type Question } from "./question.ts";
import { discard, ensureDisk, findFile, wholeNumber } from "./scratch.ts";

/**
 * How much longer the answer to a large copy takes at least than that to a small one, in milliseconds, where the router
 * really has read it by then.
 */
const longerMs = 150;
/** How long a copy is watched after the answer, in milliseconds. */
const watchMs = 6000;
const pollMs = 1000;

/** Whether a copy is whole when the router answers. */
export const copyReturnQuestion: Question = {
  names: ["copyReturns"],
  async ask(probe) {
    if (!probe.vocabulary.fileCopy) throw new NoAnswer("this RouterOS has no /file copy");
    await assertRoom(probe);
    const small = await copyWritten(probe);
    if (small.late) return answered({ copyReturns: "at-once" });
    const large = await copyLarge(probe);
    if (large.late) return answered({ copyReturns: "at-once" });
    return judge(probe, small, large);
  },
};

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
function judge({ known, say }: Probe, small: Copied, large: Copied): Outcome {
  const words =
    `a small copy was answered after ${small.ms} ms, one of ${largeBytes} bytes after ${large.ms} ms`;
  say(words);
  if (known.copy === "reflink" || large.ms - small.ms >= longerMs) {
    return answered({ copyReturns: "when-done" });
  }
  throw new NoAnswer(`${words}, and nothing changed behind the answers: it may still have been at work`);
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
  const first = await readContents(probe, path);
  const endMs = probe.clock.monotonicMs() + watchMs;
  while (first !== wanted && probe.clock.monotonicMs() < endMs) {
    await probe.clock.sleep(pollMs, probe.signal);
    if (await readContents(probe, path) !== first) return true;
  }
  return false;
}

async function keepsGrowing(probe: Probe, path: string): Promise<boolean> {
  const look = async () => ({
    size: wholeNumber((await findFile(probe.line, path))?.["size"]),
    free: await readFreeBytes(probe),
  });
  const first = await look();
  const endMs = probe.clock.monotonicMs() + watchMs;
  while (probe.clock.monotonicMs() < endMs) {
    await probe.clock.sleep(pollMs, probe.signal);
    const { size, free } = await look();
    // Others use the pool too: what they take is little.
    if (size !== first.size || first.free - free > largeBytes / 20n) return true;
  }
  if (first.size === largeBytes) return false;
  throw new NoAnswer(`a copy of a disk of ${largeBytes} bytes has ${first.size ?? "no"} bytes`);
}
