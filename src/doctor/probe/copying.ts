import { Buffer } from "node:buffer";
import { maxCommandBytes, ros } from "../../routeros/console/command.ts";
import { parseJson } from "../../routeros/console/json.ts";
import { fileName } from "../../routeros/store/queries.ts";
import { longestCommand } from "./command_length.ts";
import type { Ran } from "./session.ts";
import { NoAnswer, type Probe } from "./question.ts";
import { addFile, discard } from "./scratch.ts";

/** The longest file that is made with contents, in bytes; a router keeps the contents of small files only. */
const mostContents = 30_000;
const aroundBytes = 300;

/**
 * Whether the router can copy a file at all.
 *
 * @throws {NoAnswer} when no file can be made to copy
 */
export async function canCopy({ line, names }: Pick<Probe, "line" | "names">): Promise<boolean> {
  const [from, to] = [names.path("copy-from.txt"), names.path("copy-to.txt")];
  const made = await addFile(line, from, names.tag);
  if (!made.done) throw new NoAnswer(`no file with contents can be made: ${made.words}`);
  const { done } = await copyFile({ line }, from, to);
  await discard(line, from, to);
  return done;
}

/** Makes a file that really holds something, as much as a command can carry, and gives its contents. */
export async function makeWritten(probe: Probe, path: string): Promise<string> {
  const { line, random, known } = probe;
  const mostBytes = Math.min(longestCommand(probe), known.maxPut ?? Infinity);
  const length = Math.min(mostContents, mostBytes - aroundBytes);
  // By chance, so that no compression makes it small.
  const contents = Buffer.from(random.bytes(length)).toString("base64").slice(0, length);
  const made = await addFile(line, path, contents, length + aroundBytes);
  if (made.done) return contents;
  const short = contents.slice(0, maxCommandBytes - aroundBytes);
  const { done, words } = await addFile(line, path, short);
  if (!done) throw new NoAnswer(`no file with contents can be made: ${words}`);
  return short;
}

/**
 * Copies a file.
 *
 * @throws {NoAnswer} when the router refuses
 */
export async function assertCopied({ line }: Probe, from: string, to: string): Promise<void> {
  const { done, words } = await copyFile({ line }, from, to);
  if (!done) throw new NoAnswer(`the file cannot be copied: ${words}`);
}

/** The contents of a small file; undefined when the router does not give them. */
export async function readContents({ line }: Pick<Probe, "line">, path: string): Promise<string | undefined> {
  const query = ros`/file get [find where name=${fileName(path)}] contents`;
  const { done, frames } = await line.run([], [query]);
  const value = done ? parseJson(frames[0]!, "contents") : undefined;
  return typeof value === "string" ? value : undefined;
}

async function copyFile({ line }: Pick<Probe, "line">, from: string, to: string): Promise<Ran> {
  const [source, target] = [fileName(from), fileName(to)];
  const query = ros`:len [/file find where name=${target}]`;
  return await line.run([ros`/file copy ${source} name=${target}`], [query]);
}
