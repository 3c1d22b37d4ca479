import { VolumeError } from "../volume/errors.ts";
import type { StoredVolume } from "../volume/ports.ts";
import { unreadable } from "./json.ts";
import { parseDisks, sorted } from "./rows.ts";

/** Parts asked for at the same time; other callers need channels too. */
const parallel = 3;
/** How many last characters may be needed to tell parts apart: 16^4 parts hold any number of disks. */
const deepest = 4;

const hexDigits = [..."0123456789abcdef"];

/** The disks whose slot ends in `suffix`. */
interface Part {
  /** A regular expression of character classes and anchors only, alike in POSIX and here. */
  readonly pattern: string;
  /** Characters of the end that it fixes; undefined when it cannot be divided further. */
  readonly suffix: string | undefined;
}

/**
 * Divides the slots that end in `suffix` by the character before it. Every slot is in exactly one part, whatever it is
 * made of. By the end, as ids start alike and end at random.
 */
export function divide(suffix: string): Part[] {
  const parts: Part[] = hexDigits.map((digit) => ({
    pattern: `${digit}${suffix}$`,
    suffix: `${digit}${suffix}`,
  }));
  parts.push({ pattern: `[^0-9a-f]${suffix}$`, suffix: undefined });
  if (suffix !== "") parts.push({ pattern: `^${suffix}$`, suffix: undefined });
  return parts;
}

/**
 * Lists every file-backed disk in as many parts as the router's output limit forces.
 *
 * @param ask reads the disks whose slot matches a pattern; undefined when the answer came cut
 * @throws {VolumeError} unavailable when even a small part comes cut, or a part holds what it should not
 */
export async function listInParts(
  ask: (pattern: string) => Promise<string | undefined>,
): Promise<StoredVolume[]> {
  const volumes: StoredVolume[] = [];
  const todo = divide("");
  const work = async () => {
    try {
      for (let part = todo.shift(); part !== undefined; part = todo.shift()) {
        const frame = await ask(part.pattern);
        // Depth first: where even small parts come cut, that shows after a few commands, not after thousands.
        if (frame === undefined) todo.unshift(...divided(part));
        else volumes.push(...volumesOf(frame, part));
      }
    } catch (error) {
      todo.length = 0;
      throw error;
    }
  };
  await Promise.all(Array.from({ length: parallel }, work));
  return sorted(volumes);
}

function divided(part: Part): Part[] {
  if (part.suffix !== undefined && part.suffix.length < deepest) return divide(part.suffix);
  throw new VolumeError(
    "unavailable",
    `Cannot list the router's disks as even a small part of them comes cut: slots=${part.pattern}`,
  );
}

function volumesOf(frame: string, part: Part): readonly StoredVolume[] {
  const form = new RegExp(part.pattern);
  const { volumes, others } = parseDisks(frame);
  const stray = volumes.find((volume) => !form.test(volume.id)) ?? others[0];
  if (stray === undefined) return volumes;
  throw unreadable(
    "list of disks",
    `it shows a disk that was not asked for: slot=${stray.id} asked=${part.pattern}`,
  );
}
