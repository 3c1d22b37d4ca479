import { VolumeError } from "../../volume/errors.ts";
import { poolOf } from "../../volume/model/ids/ids.ts";
import type { RemovalPart } from "../../volume/ports/directory_store.ts";
import { type Fragment, joined, onlyIf, ros } from "../console/command.ts";
import { fileName, namedFilesQuery } from "../store/queries.ts";

/** A regular expression for the mark of any cluster. */
const anyMark = "[0-9a-f]".repeat(8);

/** The mounted disks, and the images on a share. Without a list of keys, which an older router may refuse. */
export function shareQuery(path: string): Fragment {
  const images = ros`type=${"file"} and file-path~${`^/?${literal(poolOf(path))}/`}`;
  return ros`/disk print detail as-value where mounted or (${images})`;
}

/**
 * The directories below a folder whose last name has the mark, and what may follow it; with `part` those of them whose path
 * matches that too. Not those in a directory of a volume, whose names its pods choose.
 */
export function markedQuery(folder: string, mark: string, part?: string): Fragment {
  const below = `^${literal(fileName(folder))}/`;
  const marked = `${below}.*[.]${literal(mark)}([.][a-z0-9-]+)?$`;
  const inVolume = `${below}(.*/)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?[.]${anyMark}([.]deleted-[0-9a-f]+)?/`;
  const terms = [
    ros`name~${marked}`,
    ros`!(name~${inVolume})`,
    ...part === undefined ? [] : [ros`name~${part}`],
  ];
  return ros`/file print detail as-value proplist=name,type,size where type=${"directory"} and ${
    joined(terms, " and ")
  }`;
}

/** Those of these paths that are there, and the deleted directories of one. */
export function findQuery(paths: readonly string[], deleted: string | undefined): Fragment {
  const named = namedFilesQuery(paths);
  if (deleted === undefined) return named;
  return joined([named, ros`name~${`^${literal(fileName(deleted))}[.]deleted-[0-9a-f]+$`}`], " or ");
}

/** How many files and directories are in a directory, and itself. */
export function countQuery(path: string): Fragment {
  return ros`:len [/file find where name~${withInside(path)}]`;
}

/** How many directories are at least so many levels down in a directory. */
export function directoriesQuery(path: string, depth: number): Fragment {
  return ros`:len [/file find where type=${"directory"} and name~${levels(path, depth)}]`;
}

/** Makes a directory where nothing is, if its share is mounted. */
export function makeStatement(path: string): Fragment {
  return onlyIf(
    [nothingAt(path), shareMounted(path)],
    ros`/file add type=${"directory"} name=${fileName(path)}`,
  );
}

/** Renames a directory to a path where nothing is. */
export function renameStatement(from: string, to: string): Fragment {
  const own = ros`name=${fileName(from)} and type=${"directory"}`;
  return onlyIf([nothingAt(to)], ros`/file set [find where ${own}] name=${fileName(to)}`);
}

/**
 * Removes a part of a directory. The router looks first that no other disk is mounted in it: a removal must not reach
 * what is only mounted there.
 */
export function removeStatement(path: string, part: RemovalPart): Fragment {
  const mounts = ros`[:len [/disk find where mounted and mount-point~${withInside(path)}]]=0`;
  const roots = ros`[:len [/file find where type=${"disk"} and name~${withInside(path)}]]=0`;
  return onlyIf([mounts, roots], ros`/file remove [find where ${ofPart(path, part)}]`);
}

function ofPart(path: string, part: RemovalPart): Fragment {
  switch (part.kind) {
    case "whole":
      return ros`name=${fileName(path)} and type=${"directory"}`;
    case "files":
      return ros`type!=${"directory"} and name~${inside(path)}`;
    case "level":
      return ros`type=${"directory"} and name~${`${levels(path, part.depth)}$`}`;
  }
}

function nothingAt(path: string): Fragment {
  return ros`[:len [/file find where name=${fileName(path)}]]=0`;
}

function shareMounted(path: string): Fragment {
  return ros`[:len [/disk find where mounted and mount-point=${poolOf(path)}]]=1`;
}

/** A regular expression for a directory's path, with or without a slash in front, and the paths in it. */
function withInside(path: string): string {
  return `^/?${literal(fileName(path))}(/|$)`;
}

/** A regular expression for the paths in a directory. */
function inside(path: string): string {
  return `^${literal(fileName(path))}/`;
}

/** A regular expression for the paths so many levels down in a directory, and what is below them. */
function levels(path: string, depth: number): string {
  return `^${literal(fileName(path))}${"/[^/]+".repeat(depth)}`;
}

/**
 * A regular expression that matches this text and no other: what it finds may be removed.
 *
 * @throws {VolumeError} internal when the text has a character that none can be written for
 */
function literal(text: string): string {
  if (/^[A-Za-z0-9/._-]+$/.test(text)) return text.replaceAll(".", "[.]");
  throw new VolumeError(
    "internal",
    `Cannot look for the path because of its characters: path=${JSON.stringify(text)}`,
  );
}
