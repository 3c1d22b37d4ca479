import type { StoredFile } from "../../volume/ports/ports.ts";
import { collectParts, type Part } from "./in_parts.ts";
import { holding } from "./queries.ts";
import { parseFiles } from "./rows.ts";

/** How many characters beside the text may be needed to tell parts apart: near it are random digits, or a time. */
const deepest = 6;

const hexDigits = [..."0123456789abcdef"];
const others = [..."ghijklmnopqrstuvwxyz./_-"];

/**
 * Divides the paths that hold `text` by the character behind it, and where names do not differ there, by the one before
 * it. Every path is in a part, whatever it is made of.
 */
export function divideFiles(text: string): Part[] {
  return behind(holding(text), 1);
}

function behind(pattern: string, depth: number): Part[] {
  const parts: Part[] = hexDigits.map((digit) => ({
    pattern: pattern + digit,
    smaller: depth < deepest ? () => behind(pattern + digit, depth + 1) : undefined,
  }));
  for (const end of ["[^0-9a-f]", "$"]) {
    parts.push({ pattern: pattern + end, smaller: () => before(pattern + end, 1) });
  }
  return parts;
}

function before(pattern: string, depth: number): Part[] {
  return [
    ...hexDigits.map((digit) => oneMore(digit, pattern, depth)),
    { pattern: `[^0-9a-f]${pattern}`, smaller: () => beforeOthers(pattern, depth) },
    { pattern: `^${pattern}`, smaller: undefined },
  ];
}

function beforeOthers(pattern: string, depth: number): Part[] {
  return [
    ...others.map((character) => oneMore(holding(character), pattern, depth)),
    { pattern: `[^0-9a-z./_-]${pattern}`, smaller: undefined },
  ];
}

function oneMore(character: string, pattern: string, depth: number): Part {
  const longer = character + pattern;
  return { pattern: longer, smaller: depth < deepest ? () => before(longer, depth + 1) : undefined };
}

/**
 * Lists every file and folder whose path holds `text` in as many parts as the router's output limit forces, ordered by
 * path.
 *
 * @param ask reads the files whose path matches a pattern; undefined when the answer came cut
 * @throws {VolumeError} unavailable when even a small part comes cut
 */
export async function listFilesInParts(
  text: string,
  ask: (pattern: string) => Promise<string | undefined>,
): Promise<StoredFile[]> {
  const files = await collectParts("files", divideFiles(text), async (part) => {
    const frame = await ask(part.pattern);
    return frame === undefined ? undefined : parseFiles(frame, (path) => path.includes(text));
  });
  // A path that holds the text twice is in two parts.
  const unique = new Map(files.map((file) => [file.path, file]));
  return [...unique.values()].toSorted((a, b) => a.path < b.path ? -1 : 1);
}
