import { VolumeError } from "../volume/errors.ts";
import type { StoredFile, VolumeView } from "../volume/ports.ts";
import { type Fragment, isSendable } from "./command.ts";
import { type Answer, fitsOneExec } from "./exchange.ts";
import { allDisksQuery, disksQuery, filesQuery, imagePathOf, resourceQuery } from "./queries.ts";
import { type Disks, parseFiles } from "./rows.ts";

/** The frames of a view: disks first, then files if any path is asked about, the router's own row last. */
export function viewQueries(id: string, paths: readonly string[]): Fragment[] {
  return withFiles(disksQuery(id, paths), paths);
}

/** The frames of a create's view, in the order of {@linkcode viewQueries}. */
export function createQueries(supportsNqn: boolean, id: string, paths: readonly string[]): Fragment[] {
  return withFiles(allDisksQuery(supportsNqn, id), paths);
}

/** The frames of a create's view without the list of all disks, in the order of {@linkcode viewQueries}. */
export function createBaseQueries(id: string, paths: readonly string[]): Fragment[] {
  return withFiles(disksQuery(id, []), paths);
}

function withFiles(disks: Fragment, paths: readonly string[]): Fragment[] {
  return paths.length === 0 ? [disks, resourceQuery] : [disks, filesQuery(paths), resourceQuery];
}

/** The files of an answer to {@linkcode viewQueries} or its kin. */
export function filesOf(paths: readonly string[], answer: Answer): StoredFile[] {
  return paths.length === 0 ? [] : parseFiles(answer.frames[1]!, paths);
}

/**
 * Sorts the disks of a view. The router's `where` has only narrowed them down: slot and path are compared again here,
 * to the letter.
 */
export function sortDisks(
  id: string,
  paths: readonly string[],
  disks: Disks,
): Pick<VolumeView, "volume" | "foreign" | "sharers" | "pools"> {
  return {
    volume: disks.volumes.find((volume) => volume.id === id),
    foreign: disks.others.find((disk) => disk.id === id),
    sharers: disks.volumes.filter((volume) => volume.id !== id && paths.includes(volume.imagePath)),
    pools: disks.pools,
  };
}

/**
 * Divides paths into groups whose questions go into one exec each; mostly that is one group. A path that does not fit
 * even alone is left to fail when it is sent.
 */
export function groups(
  imagePaths: readonly string[],
  queriesFor: (paths: readonly string[]) => readonly Fragment[],
): string[][] {
  const all: string[][] = [[]];
  for (const path of imagePaths.map(imagePathOf)) {
    const group = all.at(-1)!;
    if (group.length === 0 || fitsOneExec([], queriesFor([...group, path]))) group.push(path);
    else all.push([path]);
  }
  return all;
}

/** The result of `read`; undefined when what came whole cannot be read all the same. */
export function ifReadable<Result>(read: () => Result): Result | undefined {
  try {
    return read();
  } catch (error) {
    if (VolumeError.is(error, "unavailable")) return undefined;
    throw error;
  }
}

/**
 * Checks that a comment can be sent back to the router for comparison.
 *
 * @throws {VolumeError} precondition when a person put characters into it that cannot
 */
export function assertComparable(id: string, comment: string): void {
  if (isSendable(comment)) return;
  throw new VolumeError(
    "precondition",
    `Cannot change the volume as its comment on the router holds control or non-ASCII characters: volume=${id}; ` +
      "take them out of the disk's comment, and leave the part in braces as it is",
  );
}
