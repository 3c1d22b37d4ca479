import { VolumeError } from "../../volume/errors.ts";
import type { PoolDisk } from "../router/pools.ts";
import { type Fragment, ros } from "../../routeros/console/command.ts";
import { fileName, imagePathOf } from "../../routeros/store/queries.ts";
import type { Line } from "./session.ts";
import { isScratchName, isScratchPath, scratchPrefix } from "./names.ts";
import { NoAnswer } from "./question.ts";
import { type Item, readItems } from "./scratch.ts";

/** Something that a probe made, and how it is removed. */
export interface Leftover {
  /** What it is, for people. */
  readonly what: string;
  /** The statement that removes it. */
  readonly remove: Fragment;
}

/** Where a probe makes things. */
export interface ScratchPlace {
  readonly basePath: string;
  readonly pool: Pick<PoolDisk, "label" | "mountPoint">;
}

/**
 * Lists everything that probes have made there, in an order in which it can be removed: what uses before what is used,
 * what is inside before what is around it.
 *
 * The router's `where` only narrows it down; whether a name is that of a scratch object is judged here, to the letter.
 *
 * @throws {VolumeError} when the router cannot be asked
 */
export async function findLeftovers(line: Line, place: ScratchPlace): Promise<readonly Leftover[]> {
  return [
    ...await findDisks(line, place),
    ...await findSubvolumes(line, place),
    ...await findFiles(line, place),
  ];
}

async function findDisks(line: Line, { basePath }: ScratchPlace): Promise<readonly Leftover[]> {
  const disks = await readFirst(line, [
    ros`/disk print detail as-value proplist=slot,file-path where type=${"file"} and file-path~${scratchPrefix}`,
    // Where file-backed disks are not even known, there is none.
    ros`/disk print as-value proplist=slot where type=${"file"}`,
  ]);
  return disks.flatMap((disk): Leftover[] => {
    const [slot, path] = [String(disk["slot"]), imagePathOf(String(disk["file-path"]))];
    if (!isScratchPath(path, basePath)) return [];
    const remove = ros`/disk remove [find where slot=${slot} and file-path=${path}]`;
    return [{ what: `disk ${slot} on ${path}`, remove }];
  });
}

/** Snapshots go before what they were taken of, longer paths before shorter ones. */
async function findSubvolumes(line: Line, { pool, basePath }: ScratchPlace): Promise<readonly Leftover[]> {
  const items = await readFirst(line, [
    ros`/disk btrfs subvolume print detail as-value proplist=fs,name,fullname,snapshot where name~${scratchPrefix}`,
    ros`/disk btrfs subvolume print detail as-value proplist=fs,name where name~${scratchPrefix}`,
    // Where subvolumes are not even known, there is none.
    ros`/disk print as-value proplist=slot where slot=${scratchPrefix}`,
  ]);
  const inside = basePath.slice(pool.mountPoint.length + 2);
  const found = items.flatMap((item) => {
    const full = String(item["fullname"] ?? item["name"]);
    const last = full.slice(full.lastIndexOf("/") + 1);
    const folder = full.slice(0, Math.max(0, full.lastIndexOf("/")));
    const ours = item["fs"] === pool.label && isScratchName(last) && (folder === "" || folder === inside);
    if (!ours) return [];
    const byName = item["fullname"] === undefined ? ros`name=${last}` : ros`fullname=${full}`;
    return [{ full, byName, snapshot: item["snapshot"] === true || item["snapshot"] === "yes" }];
  });
  const ordered = found.toSorted((a, b) =>
    Number(b.snapshot) - Number(a.snapshot) || b.full.length - a.full.length
  );
  return ordered.map(({ full, byName }) => ({
    what: `subvolume ${full} of ${pool.label}`,
    remove: ros`/disk btrfs subvolume remove [find where fs=${pool.label} and ${byName}]`,
  }));
}

async function findFiles(line: Line, { basePath }: ScratchPlace): Promise<readonly Leftover[]> {
  const query = ros`/file print detail as-value proplist=name where name~${scratchPrefix}`;
  const paths = (await readFirst(line, [query])).map((file) => imagePathOf(String(file["name"])))
    .filter((path) => isScratchPath(path, basePath));
  return paths.toSorted((a, b) => b.length - a.length).map((path) => ({
    what: `file ${path}`,
    remove: ros`/file remove [find where name=${fileName(path)}]`,
  }));
}

/**
 * The items of the first query that the router takes: of those behind it, an older one knows the words.
 *
 * @throws {VolumeError} unavailable when it refuses them all: what is there is then not known
 */
async function readFirst(line: Line, queries: readonly Fragment[]): Promise<readonly Item[]> {
  let reason = "";
  for (const query of queries) {
    try {
      return await readItems(line, query);
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      reason = error.message;
    }
  }
  throw new VolumeError("unavailable", `Cannot tell what a probe has left on the router as ${reason}`);
}
