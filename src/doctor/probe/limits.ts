import type { RouterBehaviours } from "../../router_profile/answers.ts";
import { neededLimits } from "../../router_profile/limits.ts";
import { command, type Fragment, joined, ros } from "../../routeros/console/command.ts";
import { framed, sampleNonce } from "../../routeros/console/reply.ts";
import { LostAnswer } from "./session.ts";
import { NoAnswer, type Probe } from "./question.ts";
import { addDisk, changeDisk, discard, findDisk, frameNumber, mebibyte, withDisk } from "./scratch.ts";
import type { ScratchDisk } from "./names.ts";

const { slotCharacters, commentBytes, putBytes, commandBytes } = neededLimits;

/** Whether the longest texts that the driver sends and reads arrive whole; the first that does not is named. */
export async function askLimits(probe: Probe): Promise<RouterBehaviours["limits"]> {
  const missed = await findMissed(probe);
  if (missed === undefined) return "enough";
  probe.say(`it does not take or give whole: ${missed}`);
  return "too-small";
}

async function findMissed(probe: Probe): Promise<string | undefined> {
  // What is lost once may have been lost by chance.
  if (!await takesCommand(probe) && !await takesCommand(probe)) return `a command of ${commandBytes} bytes`;
  return await withDisk(probe, "texts", async (disk) => {
    const { nqnBytes } = probe;
    if (!await takesSlot(probe)) return `a slot of ${slotCharacters} characters`;
    if (!await keepsLong(probe, disk, ros`nvme-tcp-server-nqn`, nqnBytes)) {
      return `an NQN of ${nqnBytes} bytes`;
    }
    if (!await keepsLong(probe, disk, ros`comment`, commentBytes)) {
      return `a comment of ${commentBytes} bytes`;
    }
    return await prints(probe, disk) ? undefined : `an answer of ${putBytes} bytes`;
  });
}

/** Everything around the padding. */
const aroundPaddingBytes = framed(sampleNonce, 0, ros`:len ${""}`).text.length;

/** Whether a command arrives whole: the router counts it. */
async function takesCommand({ line, names }: Probe): Promise<boolean> {
  const padding = commandBytes - aroundPaddingBytes;
  try {
    const { done, frames } = await line.run([], [ros`:len ${names.tag.padEnd(padding, "x")}`]);
    return done && frameNumber(frames[0]) === padding;
  } catch (error) {
    // Refused before it ran, or the connection was cut for it.
    if (error instanceof LostAnswer) return false;
    throw error;
  }
}

/** Whether a disk gets such a slot. A slot that came out another one was not taken. */
async function takesSlot({ line, names }: Probe): Promise<boolean> {
  const slot = names.slotOfLength(slotCharacters);
  const path = names.path("slot.img");
  const { done } = await addDisk(line, { slot, path, sizeBytes: mebibyte });
  const disk = done ? await findDisk(line, path, ros`type`) : undefined;
  await discard(line, path);
  return disk?.["slot"] === slot;
}

/** The length of a text that every router keeps, in bytes. */
const shortBytes = 60;

/** @throws {NoAnswer} when not even a short one survives */
async function keepsLong(probe: Probe, disk: ScratchDisk, key: Fragment, length: number): Promise<boolean> {
  if (await keeps(probe, disk, key, shortBytes)) return await keeps(probe, disk, key, length);
  throw new NoAnswer(`the router does not keep a short ${key.text}`);
}

/** Whether a text survives whole; compared by the router, as its output has limits of its own. */
async function keeps(probe: Probe, disk: ScratchDisk, key: Fragment, length: number): Promise<boolean> {
  const text = textOf(probe, length);
  const { done } = await changeDisk(probe.line, disk, ros`${key}=${text}`);
  const query = ros`:len [/disk find where slot=${disk.slot} and ${key}=${text}]`;
  return done && frameNumber((await probe.line.run([], [query])).frames[0]) === 1;
}

/** A text of which no two parts are alike, and which is an NQN by its form. */
function textOf({ names }: Probe, length: number): string {
  let text = `${names.nqn("x")}:`;
  for (let count = 1; text.length < length; count++) text += `${count}.`;
  return text.slice(0, length);
}

/** Whether the long comment of a disk, several times over, is printed whole: without the mark at its end it was cut. */
async function prints({ line, names }: Probe, { slot }: ScratchDisk): Promise<boolean> {
  const [begin, end] = [names.name("begin"), names.name("end")];
  const times = Math.ceil(putBytes / commentBytes);
  const comments = Array.from({ length: times }, () => ros`[/disk get [find where slot=${slot}] comment]`);
  const text = joined([ros`${begin}`, ...comments, ros`${end}`], ".");
  const { stdout } = await line.exec(command(ros`:put (${text})`));
  const start = stdout.lastIndexOf(begin);
  if (start < 0) throw new NoAnswer("not even the beginning of a text is printed");
  return stdout.slice(start).replace(/\r?\n$/, "").endsWith(end);
}
