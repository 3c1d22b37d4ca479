import {
  type Fragment,
  joined,
  limitedCommand,
  maxCommandBytes,
  ros,
} from "../../routeros/console/command.ts";
import { framed, sampleNonce } from "../../routeros/console/reply.ts";
import { LostAnswer, type Ran } from "./session.ts";
import { NoAnswer, type Probe } from "./question.ts";
import { addDisk, changeDisk, discard, findDisk, frameNumber, mebibyte, withDisk } from "./scratch.ts";
import type { ScratchDisk } from "./names.ts";

/**
 * The longest length that works, of those from `least` to `most`, when every shorter one works too; undefined when not
 * even `least` does. Asks about as often as a number of that range has bits.
 */
export async function longest(
  least: number,
  most: number,
  works: (length: number) => Promise<boolean>,
): Promise<number | undefined> {
  if (await works(most)) return most;
  let [good, bad] = [least, most];
  if (least === most || !await works(least)) return undefined;
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2);
    if (await works(middle)) good = middle;
    else bad = middle;
  }
  return good;
}

/**
 * Lengths that are tried, in bytes. A router that takes the last one counts as one without a limit: it is about the
 * longest that SSH itself promises to carry (RFC 4253, section 6.1).
 */
const commandLengths = [1024, 2048, 4096, 8192, 16_384, 32_000];
/** Everything around the padding. */
const aroundPaddingBytes = framed(sampleNonce, 0, ros`:len ${""}`).text.length;

/** How long a command may be. */
export async function askMaxCommand(probe: Probe): Promise<number> {
  let taken: number | undefined;
  for (const length of commandLengths) {
    if (!await takesCommand(probe, length)) break;
    taken = length;
  }
  if (taken === undefined) throw new NoAnswer(`not even a command of ${commandLengths[0]} bytes is taken`);
  return taken === commandLengths.at(-1) ? Infinity : taken;
}

/** Whether a command of that length arrives whole: the router counts it. */
async function takesCommand({ line, names }: Probe, length: number): Promise<boolean> {
  const padding = length - aroundPaddingBytes;
  try {
    const { done, frames } = await line.run([], [ros`:len ${names.tag.padEnd(padding, "x")}`], length);
    return done && frameNumber(frames[0]) === padding;
  } catch (error) {
    // Refused before it ran, or the connection was cut for it.
    if (error instanceof LostAnswer) return false;
    throw error;
  }
}

/** How long a command may be on this router, as far as is known, in bytes. */
export function longestCommand({ known }: Probe): number {
  return Math.min(Math.max(maxCommandBytes, known.maxCommand ?? 0), commandLengths.at(-1)!);
}

/** Lengths that are tried, in bytes; a router that prints the last one counts as one without a limit. */
const outputLengths = [500, 1000, 2000, 4000, 8000, 16_000, 30_000];
/** What the command needs beside the text to print. */
const aroundOutputBytes = 100;
/** How often a list of everything is repeated in one command, where a long text cannot be sent. */
const repetitions = [1, 5, 20];

/** How much one `:put` prints. */
export async function askMaxPut(probe: Probe): Promise<number> {
  const maxBytes = longestCommand(probe);
  let whole = 0;
  for (const length of outputLengths.filter((length) => length + aroundOutputBytes <= maxBytes)) {
    const printed = await print(probe, ros`${"x".repeat(length)}`, maxBytes);
    if (printed.cut) return printed.bytes;
    whole = printed.bytes;
  }
  if (whole >= outputLengths.at(-1)!) return Infinity;
  for (const times of repetitions) {
    const lists = Array.from({ length: times }, () => ros`[/disk print detail as-value]`);
    const printed = await print(probe, concatenated(lists), maxBytes);
    if (printed.cut) return printed.bytes;
    whole = Math.max(whole, printed.bytes);
  }
  throw new NoAnswer(`${whole} bytes are printed whole, and this router gives nothing longer to print`);
}

/** Prints a value between two marks: without the second one it was cut. */
async function print(
  { line, names }: Probe,
  value: Fragment,
  maxBytes: number,
): Promise<{ readonly cut: boolean; readonly bytes: number }> {
  const [begin, end] = [names.name("begin"), names.name("end")];
  const text = concatenated([ros`${begin}`, value, ros`${end}`]);
  const { stdout } = await line.exec(limitedCommand(maxBytes, [ros`:put (${text})`]));
  const start = stdout.lastIndexOf(begin);
  if (start < 0) throw new NoAnswer("not even the beginning of a text is printed");
  const shown = stdout.slice(start).replace(/\r?\n$/, "");
  return { cut: !shown.endsWith(end), bytes: new TextEncoder().encode(shown).length };
}

function concatenated(parts: readonly Fragment[]): Fragment {
  return joined(parts, ".");
}

/** The shortest slot that names a scratch object, and the longest that is tried. */
const [minSlot, maxSlot] = [24, 64];

/** How long slots may be. */
export async function askMaxSlot(probe: Probe): Promise<number> {
  const found = await longest(minSlot, maxSlot, (length) => takesSlot(probe, length));
  if (found === undefined) throw new NoAnswer(`not even a slot of ${minSlot} characters is taken`);
  return found === maxSlot ? Infinity : found;
}

/** A slot that came out another one was not taken. */
async function takesSlot({ line, names }: Probe, length: number): Promise<boolean> {
  const slot = names.slotOfLength(length);
  const path = names.path(`slot${length}.img`);
  const { done } = await addDisk(line, { slot, path, sizeBytes: mebibyte });
  const disk = done ? await findDisk(line, path, ros`type`) : undefined;
  await discard(line, path);
  return disk?.["slot"] === slot;
}

/** The longest comment that is tried, in bytes; one that survives whole counts as one without a limit. */
const maxComment = 4096;
/** The same of an NQN: NVMe itself ends at 223. */
const maxNqn = 512;
/** What a command needs beside the text. */
const aroundTextBytes = 400;

/** A text of a disk. */
interface TextKind {
  readonly suffix: string;
  readonly most: number;
  write(text: string): Fragment;
  read(slot: string): Fragment;
  /** Counts the disks in a slot with that text. */
  match(slot: string, text: string): Fragment;
}

const comment: TextKind = {
  suffix: "comment",
  most: maxComment,
  write: (text) => ros`comment=${text}`,
  read: (slot) => ros`:len [/disk get [find where slot=${slot}] comment]`,
  match: (slot, text) => ros`:len [/disk find where slot=${slot} and comment=${text}]`,
};

const nqn: TextKind = {
  suffix: "nqn",
  most: maxNqn,
  write: (text) => ros`nvme-tcp-server-nqn=${text}`,
  read: (slot) => ros`:len [/disk get [find where slot=${slot}] nvme-tcp-server-nqn]`,
  match: (slot, text) => ros`:len [/disk find where slot=${slot} and nvme-tcp-server-nqn=${text}]`,
};

/** How much of a comment survives. */
export async function askMaxComment(probe: Probe): Promise<number> {
  return await askLength(probe, comment);
}

/** How much of an NQN survives. */
export async function askMaxNqn(probe: Probe): Promise<number> {
  return await askLength(probe, nqn);
}

async function askLength(probe: Probe, kind: TextKind): Promise<number> {
  const maxBytes = longestCommand(probe);
  const most = Math.min(kind.most, maxBytes - aroundTextBytes);
  return await withDisk(probe, kind.suffix, async (disk) => {
    const kept = await survivors(probe, kind, disk, most);
    if (kept < most) return kept;
    if (most === kind.most) return Infinity;
    throw new NoAnswer(`${most} bytes survive, and longer ones do not fit into a command`);
  });
}

/** How many bytes survive of a text of `most`: what is cut off shows; where it is refused, shorter ones are tried. */
async function survivors(probe: Probe, kind: TextKind, disk: ScratchDisk, most: number): Promise<number> {
  const attempt = async (length: number) => {
    const text = textOf(probe, length);
    const { done, texts: wording } = await write(probe, kind, disk, text);
    return { done, texts: wording, kept: done ? await readBack(probe, kind, disk, text) : 0 };
  };
  const whole = await attempt(most);
  if (whole.done) return whole.kept;
  const found = await longest(1, most, async (length) => (await attempt(length)).kept === length);
  if (found === undefined) throw new NoAnswer(`the router does not take one: ${whole.texts}`);
  return found;
}

async function write(probe: Probe, kind: TextKind, disk: ScratchDisk, text: string): Promise<Ran> {
  return await changeDisk(probe.line, disk, kind.write(text), text.length + aroundTextBytes);
}

/** The length of the beginning that the router kept; compared by the router, as its output has limits of its own. */
async function readBack({ line }: Probe, kind: TextKind, disk: ScratchDisk, text: string): Promise<number> {
  const { frames } = await line.run([], [kind.read(disk.slot)]);
  const length = frameNumber(frames[0]);
  if (length === undefined || length > text.length) throw new NoAnswer("what survived cannot be read back");
  const query = kind.match(disk.slot, text.slice(0, length));
  const matches = frameNumber((await line.run([], [query], length + aroundTextBytes)).frames[0]);
  if (matches === 1) return length;
  throw new NoAnswer(`${length} bytes survived, but not the first ones`);
}

/** A text of which no two parts are alike, and which is an NQN by its form. */
function textOf({ names }: Probe, length: number): string {
  let text = `${names.nqn("x")}:`;
  for (let count = 1; text.length < length; count++) text += `${count}.`;
  return text.slice(0, length);
}
