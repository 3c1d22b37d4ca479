import { type JsonObject, parseJson } from "../../routeros/console/json.ts";
import { type CommandValue, type Fragment, joined, ros } from "../../routeros/console/command.ts";
import { fileName, imagePathOf } from "../../routeros/store/queries.ts";
import { ProbeSession, type Ran } from "./session.ts";
import { isScratchName, isScratchPath, type ScratchDisk, scratchPrefix } from "./names.ts";
import { NoAnswer, type Probe, type ProbeOptions } from "./question.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import type { PoolDisk } from "../router/pools.ts";

/** A mebibyte: the size of a scratch disk where size does not matter. */
export const mebibyte = 1n << 20n;

/** An item as the router gave it, whatever the types of its values. */
type Item = JsonObject;

/**
 * Reads items.
 *
 * @throws {NoAnswer} when the router refuses
 */
export async function readItems(line: ProbeSession, query: Fragment): Promise<readonly Item[]> {
  const { done, frames, texts: text } = await line.run([], [query]);
  if (!done) throw new NoAnswer(`the router refuses to answer: ${text}`);
  const items = parseJson(frames[0]!, "answer");
  return Array.isArray(items) ? items.filter(isItem) : isItem(items) ? [items] : [];
}

/** What is said about a disk when it is made. */
interface DiskPlan extends ScratchDisk {
  readonly sizeBytes: bigint;
  readonly more?: Fragment;
}

/** The statement that adds a disk, never exported and never mounted by the router. */
function addStatement({ slot, path, sizeBytes, more }: DiskPlan): Fragment {
  const add =
    ros`/disk add type=${"file"} slot=${slot} file-path=${path} file-size=${sizeBytes} mount-filesystem=${false}`;
  return joined([add, more ?? ros`nvme-tcp-export=${false}`], " ");
}

/** The entry of a disk with that file, as far as `keys` go; undefined when there is none. */
export async function findDisk(line: ProbeSession, path: string, keys: Fragment): Promise<Item | undefined> {
  const query = ros`/disk print detail as-value proplist=slot,file-path,${keys} where file-path=${path}`;
  return (await readItems(line, query)).find((item) => item["file-path"] === path);
}

/** The entry of a file or a folder; undefined when there is none. */
export async function findFile(line: ProbeSession, path: string): Promise<Item | undefined> {
  const query = ros`/file print detail as-value proplist=name,type,size where name=${fileName(path)}`;
  return (await readItems(line, query)).find((item) => imagePathOf(String(item["name"])) === path);
}

/**
 * Adds a disk.
 *
 * @throws {NoAnswer} when the router refuses
 */
export async function ensureDisk(line: ProbeSession, plan: DiskPlan): Promise<void> {
  const ran = await addDisk(line, plan);
  if (!ran.done) throw new NoAnswer(`no scratch disk can be made: ${ran.texts}`);
}

/** Adds a disk, if the router lets it. */
export async function addDisk(line: ProbeSession, plan: DiskPlan): Promise<Ran> {
  return await line.run([addStatement(plan)], [countQuery(plan.path)]);
}

/** Changes a disk, if the router lets it. */
export async function changeDisk(
  line: ProbeSession,
  { slot, path }: ScratchDisk,
  change: Fragment,
): Promise<Ran> {
  return await line.run([ros`/disk set [find where slot=${slot}] ${change}`], [countQuery(path)]);
}

/**
 * Changes a disk that has to be there: the router carries out a change of no disk in silence.
 *
 * @param then what holds of the disk afterwards
 * @throws {NoAnswer} when the router refuses, or has no such disk
 */
export async function assertChanged(
  line: ProbeSession,
  { slot, path }: ScratchDisk,
  change: Fragment,
  then?: Fragment,
): Promise<void> {
  const own = [ros`slot=${slot}`, ros`file-path=${path}`, ...then === undefined ? [] : [then]];
  const count = ros`:len [/disk find where ${joined(own, " and ")}]`;
  const { done, frames, texts } = await line.run(
    [ros`/disk set [find where slot=${slot}] ${change}`],
    [count],
  );
  if (!done) throw new NoAnswer(`the scratch disk cannot be changed: ${texts}`);
  if (frameNumber(frames[0]) === 1) return;
  throw new NoAnswer(
    "the router changed no scratch disk: it is gone, or does not show the change. Probe again while nothing else changes disks",
  );
}

/** Makes a file with contents, if the router lets it. */
export async function addFile(line: ProbeSession, path: string, contents: string): Promise<Ran> {
  const name = fileName(path);
  const query = ros`:len [/file find where name=${name}]`;
  return await line.run([ros`/file add name=${name} contents=${contents}`], [query]);
}

/** The contents of a small file; undefined when the router does not give them. */
export async function readContents(line: ProbeSession, path: string): Promise<string | undefined> {
  const query = ros`/file get [find where name=${fileName(path)}] contents`;
  const { done, frames } = await line.run([], [query]);
  const value = done ? parseJson(frames[0]!, "contents") : undefined;
  return typeof value === "string" ? value : undefined;
}

/**
 * Removes a disk and its file, as far as the router lets it: what is left falls to the clean-up at the end.
 */
export async function discard(line: ProbeSession, ...paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    await line.run([ros`/disk remove [find where file-path=${path}]`], [countQuery(path)]);
    const name = fileName(path);
    await line.run([ros`/file remove [find where name=${name}]`], [
      ros`:len [/file find where name=${name}]`,
    ]);
  }
}

/** Makes a scratch disk, works with it, and removes it again. */
export async function withDisk<Result>(
  probe: Probe,
  suffix: string,
  work: (disk: ScratchDisk) => Promise<Result>,
  plan: Partial<DiskPlan> = {},
): Promise<Result> {
  const disk = probe.names.disk(suffix);
  await ensureDisk(probe.line, { ...disk, sizeBytes: mebibyte, ...plan });
  const result = await work(disk);
  await discard(probe.line, disk.path);
  return result;
}

/** A whole number, also as digits; undefined when it is none. */
export function wholeNumber(value: Item[string] | undefined): bigint | undefined {
  if (typeof value === "bigint") return value;
  return typeof value === "string" && /^\d+$/.test(value) ? BigInt(value) : undefined;
}

/** The whole number that a frame consists of. */
export function frameNumber(frame: string | undefined): number | undefined {
  const number = wholeNumber(parseJson(frame ?? "null", "number") as CommandValue as string);
  return number === undefined ? undefined : Number(number);
}

function countQuery(path: string): Fragment {
  return ros`:len [/disk find where file-path=${path}]`;
}

function isItem(value: unknown): value is Item {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Something that a probe made, and how it is removed. */
interface Leftover {
  /** What it is, for people. */
  readonly what: string;
  /** The statement that removes it. */
  readonly remove: Fragment;
}

/** Where a probe makes things. */
export interface ScratchLocation {
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
export async function findLeftovers(
  line: ProbeSession,
  location: ScratchLocation,
): Promise<readonly Leftover[]> {
  return [
    ...await findDisks(line, location),
    ...await findSubvolumes(line, location),
    ...await findFiles(line, location),
  ];
}

async function findDisks(line: ProbeSession, { basePath }: ScratchLocation): Promise<readonly Leftover[]> {
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
async function findSubvolumes(
  line: ProbeSession,
  { pool, basePath }: ScratchLocation,
): Promise<readonly Leftover[]> {
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

async function findFiles(line: ProbeSession, { basePath }: ScratchLocation): Promise<readonly Leftover[]> {
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
async function readFirst(line: ProbeSession, queries: readonly Fragment[]): Promise<readonly Item[]> {
  let reason = "";
  for (const query of queries) {
    try {
      return await readItems(line, query);
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      reason = error.message;
    }
  }
  throw new VolumeError("unavailable", `Cannot list what a probe has left on the router because ${reason}`);
}

/** How often it is looked whether everything is gone, and how long is waited between, in milliseconds. */
const rounds = 8;
const pauseMs = 2000;
/** How long the router gets for a command that was given up, in milliseconds: it may still make something. */
const lateMs = 3000;

/** Something is left on the router, or it is not known that nothing is. */
export class NotClean extends VolumeError {
  constructor(message: string, cause: unknown) {
    super("precondition", message, { cause });
  }
}

/**
 * Cleans up, on a line of its own that nothing stops: a probe that was stopped has to clean up as well.
 *
 * @param line the connection that the probe used
 * @param failure what ended the probe; undefined when it went through
 * @throws {NotClean} when something stays, or nobody knows
 */
export async function leaveNothing(
  line: ProbeSession,
  location: ScratchLocation,
  failure: unknown,
  options: ProbeOptions,
): Promise<void> {
  const mayComeLate = line.lost > 0;
  line.close();
  options.say("cleaning up");
  const cleaner = new ProbeSession({ ...options, signal: new AbortController().signal });
  try {
    await removeAll(cleaner, location, mayComeLate, options).catch(async (error) => {
      // The connection may break in the clean-up as well: it goes on over a new one.
      if (cleaner.lost === 0) throw error;
      await removeAll(cleaner, location, true, options);
    });
    options.say("nothing is left");
  } catch (error) {
    const first = failure instanceof Error ? `${failure.message}\n` : "";
    throw new NotClean(`${first}${messageOf(error)}`, error);
  } finally {
    cleaner.close();
  }
}

/**
 * Removes everything that probes have made.
 *
 * @param mayComeLate whether some command ended without a word, and may still run
 * @throws {VolumeError} unavailable when the router cannot be asked; precondition when something stays
 */
export async function removeAll(
  line: ProbeSession,
  location: ScratchLocation,
  mayComeLate: boolean,
  options: ProbeOptions,
): Promise<void> {
  if (mayComeLate) await options.clock.sleep(lateMs);
  const left = await cleanUp(line, location, options).catch((cause) => {
    throw new VolumeError(
      "unavailable",
      `Cannot clean up after the probe because the router cannot be asked: base-path=${location.basePath}; the next probe of ` +
        "this folder does it, or remove names that begin with rds-csi-probe- by hand",
      { cause },
    );
  });
  if (left.length === 0) return;
  const byHand = left.map(({ remove }) => remove.text).join("\n");
  throw new VolumeError(
    "precondition",
    `Cannot remove everything that the probe has made; run by hand:\n${byHand}`,
  );
}

/** The router refuses to remove what something else uses: it is tried again a little later. Gives what is left. */
async function cleanUp(
  line: ProbeSession,
  location: ScratchLocation,
  { clock, say }: ProbeOptions,
): Promise<readonly Leftover[]> {
  let left = await findLeftovers(line, location);
  const refusals = new Map<string, string>();
  for (let round = 1; left.length > 0 && round <= rounds; round++) {
    if (round > 1) await clock.sleep(pauseMs);
    for (const { what, remove } of left) {
      const { done, texts: text } = await line.run([remove], [ros`:len ${"x"}`]);
      if (!done) refusals.set(what, text);
    }
    left = await findLeftovers(line, location);
  }
  for (const { what } of left) {
    say(`cannot remove ${what}: ${refusals.get(what) ?? "the router gives no reason"}`);
  }
  return left;
}
