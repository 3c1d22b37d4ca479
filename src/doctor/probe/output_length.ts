import { type Fragment, joined, limitedCommand, ros } from "../../routeros/console/command.ts";
import { longestCommand } from "./command_length.ts";
import { answered, NoAnswer, type Probe, type Question } from "./question.ts";

/** Lengths that are tried, in bytes; a router that prints the last one counts as one without a limit. */
const lengths = [500, 1000, 2000, 4000, 8000, 16_000, 30_000];
/** What the command needs beside the text to print. */
const aroundBytes = 100;
/** How often a list of everything is repeated in one command, where a long text cannot be sent. */
const repetitions = [1, 5, 20];

/** How much one `:put` prints. */
export const outputLengthQuestion: Question = {
  names: ["maxPut"],
  async ask(probe) {
    const mostBytes = longestCommand(probe);
    let whole = 0;
    for (const length of lengths.filter((length) => length + aroundBytes <= mostBytes)) {
      const printed = await print(probe, ros`${"x".repeat(length)}`, mostBytes);
      if (printed.cut) return answered({ maxPut: printed.bytes });
      whole = printed.bytes;
    }
    if (whole >= lengths.at(-1)!) return answered({ maxPut: Infinity });
    for (const times of repetitions) {
      const lists = Array.from({ length: times }, () => ros`[/disk print detail as-value]`);
      const printed = await print(probe, concatenated(lists), mostBytes);
      if (printed.cut) return answered({ maxPut: printed.bytes });
      whole = Math.max(whole, printed.bytes);
    }
    throw new NoAnswer(`${whole} bytes are printed whole, and this router gives nothing longer to print`);
  },
};

/** Prints a value between two marks: without the second one it was cut. */
async function print(
  { line, names }: Probe,
  value: Fragment,
  mostBytes: number,
): Promise<{ readonly cut: boolean; readonly bytes: number }> {
  const [begin, end] = [names.name("begin"), names.name("end")];
  const text = concatenated([ros`${begin}`, value, ros`${end}`]);
  const { stdout } = await line.exec(limitedCommand(mostBytes, [ros`:put (${text})`]));
  const start = stdout.lastIndexOf(begin);
  if (start < 0) throw new NoAnswer("not even the beginning of a text is printed");
  const shown = stdout.slice(start).replace(/\r?\n$/, "");
  return { cut: !shown.endsWith(end), bytes: new TextEncoder().encode(shown).length };
}

function concatenated(parts: readonly Fragment[]): Fragment {
  return joined(parts, ".");
}
