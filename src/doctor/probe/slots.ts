import { ros } from "../../routeros/console/command.ts";
import {
  answered,
  answerOf,
  NoAnswer,
  type Outcome,
  type Probe,
  type Question,
  together,
} from "./question.ts";
import { addDisk, discard, findDisk, mebibyte, withDisk } from "./scratch.ts";
import { longest } from "./search.ts";

/** The shortest slot that names a scratch object, and the longest that is tried. */
const [least, most] = [24, 64];

/** How long slots may be, and what becomes of a second disk for one. */
export const slotsQuestion: Question = {
  names: ["maxSlot", "duplicateSlot"],
  ask: async (probe) =>
    together(
      await answerOf("maxSlot", () => askLength(probe)),
      await answerOf("duplicateSlot", () => askDuplicate(probe)),
    ),
};

async function askLength(probe: Probe): Promise<Outcome> {
  const found = await longest(least, most, (length) => takes(probe, length));
  if (found === undefined) throw new NoAnswer(`not even a slot of ${least} characters is taken`);
  return answered({ maxSlot: found === most ? Infinity : found });
}

/** A slot that came out another one was not taken. */
async function takes({ line, names }: Probe, length: number): Promise<boolean> {
  const slot = names.slotOfLength(length);
  const path = names.path(`slot${length}.img`);
  const { done } = await addDisk(line, { slot, path, sizeBytes: mebibyte });
  const disk = done ? await findDisk(line, path, ros`type`) : undefined;
  await discard(line, path);
  return disk?.["slot"] === slot;
}

async function askDuplicate(probe: Probe): Promise<Outcome> {
  const { line, names } = probe;
  return await withDisk(probe, "twice", async ({ slot }) => {
    const path = names.path("second.img");
    const { done } = await addDisk(line, { slot, path, sizeBytes: mebibyte });
    const second = await findDisk(line, path, ros`type`);
    await discard(line, path);
    if (second === undefined) return answered({ duplicateSlot: "refused" });
    if (done && second["slot"] !== slot) return answered({ duplicateSlot: "renamed" });
    throw new NoAnswer(`a second disk is there, in the slot ${String(second["slot"])}`);
  });
}
