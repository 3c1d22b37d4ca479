import { maxCommandBytes, ros } from "../../routeros/console/command.ts";
import { framed, nonceBytes } from "../../routeros/console/reply.ts";
import { LostAnswer } from "./session.ts";
import { answered, NoAnswer, type Probe, type Question } from "./question.ts";
import { frameNumber } from "./scratch.ts";

/**
 * Lengths that are tried, in bytes. A router that takes the last one counts as one without a limit: it is about the
 * longest that SSH itself promises to carry (RFC 4253, section 6.1).
 */
const lengths = [1024, 2048, 4096, 8192, 16_384, 32_000];
/** Everything around the padding. */
const aroundBytes = framed("0".repeat(2 * nonceBytes), 0, ros`:len ${""}`).text.length;

/** How long a command may be. */
export const commandLengthQuestion: Question = {
  names: ["maxCommand"],
  async ask(probe) {
    let taken: number | undefined;
    for (const length of lengths) {
      if (!await takes(probe, length)) break;
      taken = length;
    }
    if (taken === undefined) throw new NoAnswer(`not even a command of ${lengths[0]} bytes is taken`);
    return answered({ maxCommand: taken === lengths.at(-1) ? Infinity : taken });
  },
};

/** Whether a command of that length arrives whole: the router counts it. */
async function takes({ line, names }: Probe, length: number): Promise<boolean> {
  const padding = length - aroundBytes;
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
  return Math.min(Math.max(maxCommandBytes, known.maxCommand ?? 0), lengths.at(-1)!);
}
