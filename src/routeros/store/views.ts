import { VolumeError } from "../../volume/errors.ts";
import type { StoredFile, VolumeView, Wanted } from "../../volume/ports/ports.ts";
import { anySnapshot } from "../../volume/model/snapshots.ts";
import { type Fragment, isSendable } from "../console/command.ts";
import { fitsOneExec } from "../console/exchange.ts";
import {
  allDisksQuery,
  createFilesQuery,
  disksQuery,
  filesQuery,
  namedFilesQuery,
  poolsQuery,
  resourceQuery,
  wantedFilesQuery,
} from "./queries.ts";
import { type Disks, parseFiles } from "./rows.ts";

/** The frames of a view: disks first, then files if a stem is asked about, the router's own row last. */
export function viewQueries(id: string, stem: string | undefined): Fragment[] {
  const disks = disksQuery(id, stem);
  return stem === undefined ? [disks, resourceQuery] : [disks, filesQuery(stem), resourceQuery];
}

/** The frames of a create's view: disks, files, the router's own row. */
export function createQueries(supportsNqn: boolean, wanted: Wanted | undefined): Fragment[] {
  return [allDisksQuery(supportsNqn, wanted?.id), createFilesQuery(wanted), resourceQuery];
}

/** What is left of a create's view without the lists of disks and snapshots. */
export function createBaseQueries(wanted: Wanted | undefined): Fragment[] {
  if (wanted === undefined) return [poolsQuery, resourceQuery];
  return [disksQuery(wanted.id), wantedFilesQuery(wanted), resourceQuery];
}

/** The frames of a look at files: files, pools, the router's own row. */
export function fileViewQueries(part: string): Fragment[] {
  return [filesQuery(part), poolsQuery, resourceQuery];
}

/** The frames of a look for certain files: those files, pools, the router's own row. */
export function namedFilesViewQueries(paths: readonly string[]): Fragment[] {
  return [namedFilesQuery(paths), poolsQuery, resourceQuery];
}

/** Paths by how many of them one command can ask for. One that is too long even alone is left to fail when it is sent. */
export function divideIntoQuestions(paths: readonly string[]): string[][] {
  const parts: string[][] = [];
  for (const path of paths) {
    const last = parts.at(-1);
    if (last !== undefined && fitsOneExec([], namedFilesViewQueries([...last, path]))) last.push(path);
    else parts.push([path]);
  }
  return parts;
}

/** The files of a frame whose path holds the text. */
export function filesHolding(part: string, frame: string): StoredFile[] {
  return parseFiles(frame, (path) => path.includes(part));
}

/** The files of a frame that a create asked for. */
export function createFilesOf(wanted: Wanted | undefined, frame: string): StoredFile[] {
  return parseFiles(frame, (path) => {
    if (path.includes(anySnapshot)) return true;
    return wanted !== undefined && (path.includes(wanted.stem) || path === wanted.folder);
  });
}

/**
 * Sorts the disks of a view. The router's `where` has only narrowed them down: slot and path are compared again here,
 * to the letter.
 */
export function sortDisks(
  id: string,
  stem: string | undefined,
  disks: Disks,
): Pick<VolumeView, "volume" | "foreign" | "sharers"> {
  return {
    volume: disks.volumes.find((volume) => volume.id === id),
    foreign: disks.others.find((disk) => disk.id === id),
    sharers: disks.volumes.filter((volume) =>
      volume.id !== id && stem !== undefined && volume.imagePath.includes(stem)
    ),
  };
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
