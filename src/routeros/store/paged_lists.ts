import { VolumeError } from "../../volume/errors.ts";
import type { StoredFile, StoredVolume } from "../../volume/model/inventory.ts";
import { unreadable } from "../console/json.ts";
import { holding } from "./queries.ts";
import { parseDisks, parseFiles, sorted } from "./rows.ts";

/** Parts asked for at the same time; other callers need channels too. */
const parallel = 3;
/** How many characters beside a text may be needed to tell parts apart: near it are random digits, or a time. */
const deepest = 6;

const hexDigits = [..."0123456789abcdef"];
const others = [..."ghijklmnopqrstuvwxyz./_-"];

/** Some of the items of a list. */
export interface Part {
  /** A regular expression of character classes and anchors only, alike in POSIX and here. */
  readonly pattern: string;
  /** Another one, which items have to match too; undefined for none. */
  readonly ending?: string;
  /** What it can be divided into; undefined when it cannot be divided further. */
  readonly smaller: (() => readonly Part[]) | undefined;
}

/** Divides slots by their last characters, as ids start alike and end at random. Every slot is in exactly one part. */
export function divideSlots(): Part[] {
  return before("$", 1).filter(({ pattern }) => pattern !== "^$");
}

/**
 * Divides the paths that hold `text` by the character behind it, and where names do not differ there, by the one before
 * it, or where a name begins with it, by the end of the path. Every path is in a part, whatever it is made of.
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
    ...others.map((character) =>
      character === "/" && !pattern.endsWith("$")
        // Before the name of a folder all that is in it is alike.
        ? { pattern: `/${pattern}`, smaller: () => byEnding(`/${pattern}`, before("$", 1)) }
        : oneMore(holding(character), pattern, depth)
    ),
    { pattern: `[^0-9a-z./_-]${pattern}`, smaller: undefined },
  ];
}

/** Those that match a pattern, divided by their ends. */
function byEnding(pattern: string, ends: readonly Part[]): readonly Part[] {
  return ends.map(({ pattern: ending, smaller }) => ({
    pattern,
    ending,
    smaller: smaller === undefined ? undefined : () => byEnding(pattern, smaller()),
  }));
}

function oneMore(character: string, pattern: string, depth: number): Part {
  const longer = character + pattern;
  return { pattern: longer, smaller: depth < deepest ? () => before(longer, depth + 1) : undefined };
}

/**
 * Lists every file-backed disk in as many parts as the router's output limit forces, ordered by id.
 *
 * @param ask reads the disks whose slot matches a pattern; undefined when the answer came cut
 * @param known see `parseDisks()`
 * @throws {VolumeError} unavailable when even a small part comes cut, or a part holds what it should not
 */
export async function listDisksInParts(
  ask: (pattern: string) => Promise<string | undefined>,
  known?: ReadonlyMap<string, StoredVolume>,
): Promise<StoredVolume[]> {
  const parse = (frame: string, pattern: string) => {
    const form = new RegExp(pattern);
    const { volumes, others } = parseDisks(frame, known);
    const orphan = volumes.find((volume) => !form.test(volume.id)) ?? others[0];
    if (orphan === undefined) return volumes;
    throw unreadable(
      "list of disks",
      `it shows an unrequested disk: slot=${orphan.id} asked=${pattern}`,
    );
  };
  return sorted(await listInParts("disks", divideSlots(), ask, parse));
}

/**
 * Lists every file and folder whose path holds `text` in as many parts as the router's output limit forces, ordered by
 * path.
 *
 * @param ask reads the files whose path matches a pattern, and another one if that is given; undefined when the answer came cut
 * @throws {VolumeError} unavailable when even a small part comes cut
 */
export async function listFilesInParts(
  text: string,
  ask: Ask,
): Promise<StoredFile[]> {
  const parse = (frame: string) => parseFiles(frame, (path) => path.includes(text));
  const files = await listInParts("files", divideFiles(text), ask, parse);
  // A path that holds the text twice is in two parts.
  const unique = new Map(files.map((file) => [file.path, file]));
  return [...unique.values()].toSorted((a, b) => a.path < b.path ? -1 : 1);
}

/** Reads the items that match one pattern, or two; undefined when the answer came cut. */
type Ask = (pattern: string, ending?: string) => Promise<string | undefined>;

async function listInParts<Item>(
  what: string,
  parts: readonly Part[],
  ask: Ask,
  parse: (frame: string, pattern: string) => readonly Item[],
): Promise<Item[]> {
  const items: Item[] = [];
  const todo = [...parts];
  const work = async () => {
    try {
      for (let part = todo.shift(); part !== undefined; part = todo.shift()) {
        const frame = await ask(part.pattern, part.ending);
        // Depth first: where even small parts come cut, that shows after a few commands, not after thousands.
        if (frame === undefined) todo.unshift(...divided(what, part));
        else items.push(...parse(frame, part.pattern));
      }
    } catch (error) {
      todo.length = 0;
      throw error;
    }
  };
  await Promise.all(Array.from({ length: parallel }, work));
  return items;
}

function divided(what: string, part: Part): readonly Part[] {
  if (part.smaller !== undefined) return part.smaller();
  throw new VolumeError(
    "unavailable",
    `Cannot list the router's ${what} because even a small part of the answer is cut off: ` +
      `pattern=${part.pattern}${part.ending === undefined ? "" : ` ending=${part.ending}`}`,
  );
}
