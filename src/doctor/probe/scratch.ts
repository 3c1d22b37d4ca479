import type { JsonObject } from "../../routeros/console/json.ts";
import { parseJson } from "../../routeros/console/json.ts";
import { type CommandValue, type Fragment, joined, ros } from "../../routeros/console/command.ts";
import { fileName, imagePathOf } from "../../routeros/store/queries.ts";
import type { Line, Ran } from "./session.ts";
import type { ScratchDisk } from "./names.ts";
import { NoAnswer, type Probe } from "./question.ts";

/** A mebibyte: the size of a scratch disk where size does not matter. */
export const mebibyte = 1n << 20n;

/** An item as the router gave it, whatever the types of its values. */
export type Item = JsonObject;

/**
 * Reads items.
 *
 * @throws {NoAnswer} when the router refuses
 */
export async function readItems(line: Line, query: Fragment, mostBytes?: number): Promise<readonly Item[]> {
  const { done, frames, words } = await line.run([], [query], mostBytes);
  if (!done) throw new NoAnswer(`the router refuses to tell: ${words}`);
  const items = parseJson(frames[0]!, "answer");
  return Array.isArray(items) ? items.filter(isItem) : isItem(items) ? [items] : [];
}

/** What is said about a disk when it is made. */
export interface DiskPlan extends ScratchDisk {
  readonly sizeBytes: bigint;
  readonly more?: Fragment;
}

/** The statement that adds a disk, never exported and never mounted by the router. */
export function addStatement({ slot, path, sizeBytes, more }: DiskPlan): Fragment {
  const add =
    ros`/disk add type=${"file"} slot=${slot} file-path=${path} file-size=${sizeBytes} mount-filesystem=${false}`;
  return joined([add, more ?? ros`nvme-tcp-export=${false}`], " ");
}

/** The entry of a disk with that file, as far as `keys` go; undefined when there is none. */
export async function findDisk(line: Line, path: string, keys: Fragment): Promise<Item | undefined> {
  const query = ros`/disk print detail as-value proplist=slot,file-path,${keys} where file-path=${path}`;
  return (await readItems(line, query)).find((item) => item["file-path"] === path);
}

/** The entry of a file or a folder; undefined when there is none. */
export async function findFile(line: Line, path: string): Promise<Item | undefined> {
  const query = ros`/file print detail as-value proplist=name,type,size where name=${fileName(path)}`;
  return (await readItems(line, query)).find((item) => imagePathOf(String(item["name"])) === path);
}

/**
 * Adds a disk.
 *
 * @throws {NoAnswer} when the router refuses
 */
export async function ensureDisk(line: Line, plan: DiskPlan): Promise<void> {
  const ran = await addDisk(line, plan);
  if (!ran.done) throw new NoAnswer(`no scratch disk can be made: ${ran.words}`);
}

/** Adds a disk, if the router lets it. */
export async function addDisk(line: Line, plan: DiskPlan): Promise<Ran> {
  return await line.run([addStatement(plan)], [countQuery(plan.path)]);
}

/** Changes a disk, if the router lets it. */
export async function changeDisk(
  line: Line,
  { slot, path }: ScratchDisk,
  change: Fragment,
  mostBytes?: number,
): Promise<Ran> {
  return await line.run([ros`/disk set [find where slot=${slot}] ${change}`], [countQuery(path)], mostBytes);
}

/** Makes a file with contents, if the router lets it. */
export async function addFile(line: Line, path: string, contents: string, mostBytes?: number): Promise<Ran> {
  const name = fileName(path);
  const query = ros`:len [/file find where name=${name}]`;
  return await line.run([ros`/file add name=${name} contents=${contents}`], [query], mostBytes);
}

/** Removes a disk's entry and leaves its file, if the router lets it. */
export async function detachDisk(line: Line, { path }: Pick<ScratchDisk, "path">): Promise<Ran> {
  return await line.run([ros`/disk remove [find where file-path=${path}]`], [countQuery(path)]);
}

/**
 * Removes a disk and its file, as far as the router lets it: what is left falls to the clean-up at the end.
 */
export async function discard(line: Line, ...paths: readonly string[]): Promise<void> {
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
