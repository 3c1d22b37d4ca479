import type { StoredVolume } from "../../volume/ports/ports.ts";
import { collectParts, type Part } from "./in_parts.ts";
import { unreadable } from "../console/json.ts";
import { parseDisks, sorted } from "./rows.ts";
import type { RouterWords } from "../console/version.ts";

/** How many last characters may be needed to tell parts apart: 16^4 parts hold any number of disks. */
const deepest = 4;

const hexDigits = [..."0123456789abcdef"];

/**
 * Divides the slots that end in `suffix` by the character before it. Every slot is in exactly one part, whatever it is
 * made of. By the end, as ids start alike and end at random.
 */
export function divide(suffix: string): Part[] {
  const parts: Part[] = hexDigits.map((digit) => {
    const longer = `${digit}${suffix}`;
    return { pattern: `${longer}$`, smaller: longer.length < deepest ? () => divide(longer) : undefined };
  });
  parts.push({ pattern: `[^0-9a-f]${suffix}$`, smaller: undefined });
  if (suffix !== "") parts.push({ pattern: `^${suffix}$`, smaller: undefined });
  return parts;
}

/**
 * Lists every file-backed disk in as many parts as the router's output limit forces.
 *
 * @param ask reads the disks whose slot matches a pattern; undefined when the answer came cut
 * @param router how the answers are to be read
 * @throws {VolumeError} unavailable when even a small part comes cut, or a part holds what it should not
 */
export async function listInParts(
  ask: (pattern: string) => Promise<string | undefined>,
  router: () => RouterWords,
): Promise<StoredVolume[]> {
  const volumes = await collectParts("disks", divide(""), async (part) => {
    const frame = await ask(part.pattern);
    return frame === undefined ? undefined : volumesOf(frame, part, router());
  });
  return sorted(volumes);
}

function volumesOf(frame: string, part: Part, router: RouterWords): readonly StoredVolume[] {
  const form = new RegExp(part.pattern);
  const { volumes, others } = parseDisks(frame, router);
  const stray = volumes.find((volume) => !form.test(volume.id)) ?? others[0];
  if (stray === undefined) return volumes;
  throw unreadable(
    "list of disks",
    `it shows a disk that was not asked for: slot=${stray.id} asked=${part.pattern}`,
  );
}
