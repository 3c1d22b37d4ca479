import { anySnapshot } from "../../volume/model/snapshots/snapshots.ts";
import type { SourceQuery, Wanted } from "../../volume/model/inventory.ts";
import { type Fragment, joined, ros } from "../console/command.ts";
import { fitsOneExec } from "../console/exchange.ts";

/** What of a disk a listing needs: the frame of thousands of disks stays small. */
const diskKeys =
  ros`slot,type,size,file-path,comment,nvme-tcp-export,nvme-tcp-server-port,mounted,mount-point,fs,fs-label,free,state,nvme-tcp-server-nqn`;

/** The disk in a slot, every disk whose image path holds the file-name prefix, the mounted pools, and the disk in another slot. */
export function disksQuery(slot: string, filePrefix?: string, other?: string): Fragment {
  const terms = [
    ros`slot=${slot}`,
    ...filePrefix === undefined ? [] : [ros`file-path~${holding(filePrefix)}`],
    ros`mounted`,
    ...other === undefined ? [] : [ros`slot=${other}`],
  ];
  return ros`/disk print detail as-value where ${joined(terms, " or ")}`;
}

/** The mounted pools. */
export const poolsQuery: Fragment = ros`/disk print detail as-value where mounted`;

/** Every file-backed disk and the mounted pools; with `slot` also whatever is in that slot. */
export function allDisksQuery(slot?: string): Fragment {
  const terms = [ros`type=${"file"}`, ros`mounted`];
  if (slot !== undefined) terms.push(ros`slot=${slot}`);
  return ros`/disk print detail as-value proplist=${diskKeys} where ${joined(terms, " or ")}`;
}

/**
 * The arrays that are not just clean: one that a pool stripes over is an item of its own. Without a list of keys, which an
 * older router may refuse; a healthy router has no row for it.
 */
export const uncleanArraysQuery: Fragment =
  ros`/disk print detail as-value where type=${"raid"} and state!=${"clean"}`;

/** The same disks with all their keys: a shorter question, and a longer answer. */
export const allDisksInFullQuery: Fragment = ros`/disk print detail as-value where type=${"file"} or mounted`;

/** The file-backed disks whose slot matches a regular expression. */
export function someDisksQuery(slotPattern: string): Fragment {
  return ros`/disk print detail as-value proplist=${diskKeys} where type=${"file"} and slot~${slotPattern}`;
}

/** The files and folders whose path holds the text. */
export function filesQuery(part: string): Fragment {
  return filesWhere([ros`name~${holding(part)}`]);
}

/** The files and folders whose path matches a regular expression, or two. */
export function someFilesQuery(pattern: string, ending?: string): Fragment {
  const matches = ros`name~${pattern}`;
  return filesWhere([ending === undefined ? matches : ros`${matches} and name~${ending}`]);
}

/** Those of the files and folders that are there. */
export function namedFilesQuery(paths: readonly string[]): Fragment {
  return filesWhere(paths.map((path) => ros`name=${fileName(path)}`));
}

/** The files of the file-name prefix and the folder that are wanted, and all snapshots. */
export function createFilesQuery(wanted: Wanted | undefined): Fragment {
  const terms = wanted === undefined ? [] : wantedTerms(wanted);
  return filesWhere([...terms, ros`name~${holding(anySnapshot)}`]);
}

function wantedTerms({ filePrefix, folder }: Pick<Wanted, "filePrefix" | "folder">): Fragment[] {
  return [ros`name~${holding(filePrefix)}`, ...folder === "" ? [] : [ros`name=${fileName(folder)}`]];
}

/** Never without a list of keys, else the contents of small files come along. */
function filesWhere(terms: readonly Fragment[]): Fragment {
  return ros`/file print detail as-value proplist=name,type,size where ${joined(terms, " or ")}`;
}

/** Version and uptime. */
export const resourceQuery: Fragment = ros`/system resource print as-value`;

/** The installed packages. */
export const packagesQuery: Fragment = ros`/system package print detail as-value`;

/** The frames of a view: disks first, then files if a file-name prefix is asked about, with the folder, the router's own row last. */
export function viewQueries(id: string, filePrefix: string | undefined, folder = ""): Fragment[] {
  const disks = disksQuery(id, filePrefix);
  if (filePrefix === undefined) return [disks, resourceQuery];
  return [disks, filesWhere(wantedTerms({ filePrefix, folder })), resourceQuery];
}

/** The frames of a look at a volume and a source: disks, files, the router's own row. */
export function sourceViewQueries(wanted: Wanted, source: SourceQuery): Fragment[] {
  const { id, part } = { id: undefined, part: undefined, ...source };
  const files = [...wantedTerms(wanted), ...part === undefined ? [] : [ros`name~${holding(part)}`]];
  return [disksQuery(wanted.id, wanted.filePrefix, id), filesWhere(files), resourceQuery];
}

/** The frames of a create's view: disks, files, the router's own row. */
export function createQueries(wanted: Wanted | undefined): Fragment[] {
  return [allDisksQuery(wanted?.id), createFilesQuery(wanted), resourceQuery];
}

/** What is left of a create's view without the lists of disks and snapshots. */
export function createBaseQueries(wanted: Wanted | undefined): Fragment[] {
  if (wanted === undefined) return [poolsQuery, resourceQuery];
  return [disksQuery(wanted.id), filesWhere(wantedTerms(wanted)), resourceQuery];
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

/**
 * A regular expression that every text with `part` in it matches, alike in POSIX and elsewhere. What it finds is
 * compared again, so that a character without a plain way to write it may stand for any.
 */
export function holding(part: string): string {
  const form = part.replace(/[^A-Za-z0-9/_-]/g, (character) => character === "." ? "[.]" : ".");
  // It may be where a path begins, and `/file` spells paths without the slash that they begin with everywhere else.
  return form.replace(/^\/(?=[^/]+\/.)/, "(^|/)");
}

/** A path as `/file` spells it: without the leading slash. */
export function fileName(path: string): string {
  return path.replace(/^\/+/, "");
}

/** A path as the rest of the driver spells it: with one leading slash. */
export function imagePathOf(path: string): string {
  return /^\/(?!\/)/.test(path) ? path : `/${fileName(path)}`;
}

/** The last name of a path: by it RouterOS knows a subvolume as a parent. */
export function lastSegment(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
