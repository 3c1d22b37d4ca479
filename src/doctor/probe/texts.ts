import { type Fragment, ros } from "../../routeros/console/command.ts";
import { longestCommand } from "./command_length.ts";
import type { Ran } from "./session.ts";
import type { ScratchDisk } from "./names.ts";
import {
  answered,
  type AnswerName,
  answerOf,
  NoAnswer,
  type Outcome,
  type Probe,
  type Question,
  together,
} from "./question.ts";
import { changeDisk, frameNumber, withDisk } from "./scratch.ts";
import { longest } from "./search.ts";

/** The longest comment that is tried, in bytes; one that survives whole counts as one without a limit. */
const mostComment = 4096;
/** The same of an NQN: NVMe itself ends at 223. */
const mostNqn = 512;
/** What a command needs beside the text. */
const aroundBytes = 400;

/** How much of a comment and of an NQN survives. */
export const textsQuestion: Question = {
  names: ["maxComment", "maxNqn"],
  ask: async (probe) =>
    together(
      await answerOf("maxComment", () => askLength(probe, comment)),
      await answerOf("maxNqn", () => askLength(probe, nqn)),
    ),
};

/** A text of a disk. */
interface TextKind {
  readonly name: AnswerName & ("maxComment" | "maxNqn");
  readonly suffix: string;
  readonly most: number;
  write(text: string): Fragment;
  read(slot: string): Fragment;
  /** Counts the disks in a slot with that text. */
  match(slot: string, text: string): Fragment;
}

const comment: TextKind = {
  name: "maxComment",
  suffix: "comment",
  most: mostComment,
  write: (text) => ros`comment=${text}`,
  read: (slot) => ros`:len [/disk get [find where slot=${slot}] comment]`,
  match: (slot, text) => ros`:len [/disk find where slot=${slot} and comment=${text}]`,
};

const nqn: TextKind = {
  name: "maxNqn",
  suffix: "nqn",
  most: mostNqn,
  write: (text) => ros`nvme-tcp-server-nqn=${text}`,
  read: (slot) => ros`:len [/disk get [find where slot=${slot}] nvme-tcp-server-nqn]`,
  match: (slot, text) => ros`:len [/disk find where slot=${slot} and nvme-tcp-server-nqn=${text}]`,
};

async function askLength(probe: Probe, kind: TextKind): Promise<Outcome> {
  const mostBytes = longestCommand(probe);
  const most = Math.min(kind.most, mostBytes - aroundBytes);
  return await withDisk(probe, kind.suffix, async (disk) => {
    const kept = await survivors(probe, kind, disk, most);
    if (kept < most) return answered({ [kind.name]: kept });
    if (most === kind.most) return answered({ [kind.name]: Infinity });
    throw new NoAnswer(`${most} bytes survive, and longer ones do not fit into a command`);
  });
}

/** How many bytes survive of a text of `most`: what is cut off shows; where it is refused, shorter ones are tried. */
async function survivors(probe: Probe, kind: TextKind, disk: ScratchDisk, most: number): Promise<number> {
  const attempt = async (length: number) => {
    const text = textOf(probe, length);
    const { done, words } = await write(probe, kind, disk, text);
    return { done, words, kept: done ? await readBack(probe, kind, disk, text) : 0 };
  };
  const whole = await attempt(most);
  if (whole.done) return whole.kept;
  const found = await longest(1, most, async (length) => (await attempt(length)).kept === length);
  if (found === undefined) throw new NoAnswer(`the router does not take one: ${whole.words}`);
  return found;
}

async function write(probe: Probe, kind: TextKind, disk: ScratchDisk, text: string): Promise<Ran> {
  return await changeDisk(probe.line, disk, kind.write(text), text.length + aroundBytes);
}

/** The length of the beginning that the router kept; compared by the router, as its output has limits of its own. */
async function readBack({ line }: Probe, kind: TextKind, disk: ScratchDisk, text: string): Promise<number> {
  const { frames } = await line.run([], [kind.read(disk.slot)]);
  const length = frameNumber(frames[0]);
  if (length === undefined || length > text.length) throw new NoAnswer("what survived cannot be read back");
  const query = kind.match(disk.slot, text.slice(0, length));
  const matches = frameNumber((await line.run([], [query], length + aroundBytes)).frames[0]);
  if (matches === 1) return length;
  throw new NoAnswer(`${length} bytes survived, but not the first ones`);
}

/** A text of which no two parts are alike, and which is an NQN by its form. */
function textOf({ names }: Probe, length: number): string {
  let text = `${names.nqn("x")}:`;
  for (let count = 1; text.length < length; count++) text += `${count}.`;
  return text.slice(0, length);
}
