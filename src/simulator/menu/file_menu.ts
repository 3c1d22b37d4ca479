import { parseId } from "../model/disk.ts";
import type { FileEntry } from "../model/files.ts";
import { normalisePath, parentOf } from "../model/paths.ts";
import type { Router } from "../model/router.ts";
import { Refusal } from "../refusal.ts";
import { toText } from "../value.ts";
import { type Span, spanOf } from "../timing.ts";
import { formatTime } from "./inputs.ts";
import type { Menu, Property, Row, Values, Verb } from "./menu.ts";
import { byName, ItemRow, type ReadableProperty, readOnlyOf } from "./rows.ts";

const properties: readonly ReadableProperty<FileEntry>[] = [
  { name: "name", read: (file) => file.path },
  { name: "type", read: shownType },
  { name: "size", read: (file) => file.kind === "file" ? file.sizeBytes : undefined },
  { name: "last-modified", read: (file) => formatTime(file.modifiedAtMs) },
  { name: "contents", read: (file) => file.contents === "" ? undefined : file.contents },
];
const propertiesByName = byName(properties);

/** `/file`. */
export class FileMenu implements Menu {
  readonly path = "file";
  readonly single = false;
  readonly columns = ["name", "type", "size", "last-modified"];
  readonly #router: Router;

  constructor(router: Router) {
    this.#router = router;
  }

  verbs(): readonly Verb[] {
    const verbs: readonly Verb[] = ["add", "set", "remove", "print", "find", "get"];
    return this.#router.profile.vocabulary.fileCopy ? [...verbs, "copy"] : verbs;
  }

  texts(verb: Verb): readonly string[] {
    return verb === "add" ? ["name", "type", "contents"] : verb === "set" ? ["name", "contents"] : ["name"];
  }

  properties(): readonly Property[] {
    return properties;
  }

  rows(): readonly Row[] {
    this.#router.readShares();
    return this.#rows(this.#router.files.list());
  }

  lookup(property: string, text: string): readonly Row[] | undefined {
    if (property !== "name") return undefined;
    this.#router.readShares();
    const file = this.#router.files.find(text);
    return file === undefined ? [] : this.#rows([file]);
  }

  search(property: string, pattern: string): readonly Row[] | undefined {
    this.#router.readShares();
    const files = property === "name" ? this.#router.files.findByPattern(pattern) : undefined;
    return files === undefined ? undefined : this.#rows(files);
  }

  compare(a: Row, b: Row): number {
    return pathOf(a) < pathOf(b) ? -1 : 1;
  }

  byId(id: string): Row | undefined {
    const file = this.#router.files.byId(parseId(id) ?? -1);
    return file === undefined ? undefined : this.#rows([file])[0];
  }

  byName(name: string): Row | undefined {
    return this.lookup("name", name)?.[0];
  }

  span(verb: Verb): Span {
    return spanOf(this.path, verb);
  }

  /** Makes a directory, or a small file with the given contents. */
  add(values: Values): void {
    const path = this.#newPath(values.get("name"));
    const type = values.get("type") ?? "file";
    this.#router.assertSpace(path, BigInt(values.get("contents")?.length ?? 0));
    if (type === "directory") this.#router.files.makeDirectory(path);
    else if (type === "file") {
      const contents = values.get("contents") ?? "";
      this.#router.files.create(path, BigInt(contents.length), contents);
    } else throw Refusal.noMatch("type");
  }

  /** Renames. */
  set(row: Row, values: Values): void {
    const name = values.get("name");
    if (values.has("contents")) throw Refusal.actionCancelled();
    if (name !== undefined && name !== row.value("name")) this.#rename(this.#file(row), this.#newPath(name));
  }

  #rename({ path, kind }: FileEntry, to: string): void {
    const { files, subvolumes } = this.#router;
    if (kind === "disk" || subvolumes.find(path) !== undefined || subvolumes.isAbove(path)) {
      throw Refusal.notRemovable(path);
    }
    this.#router.assertWritable(path);
    if (subvolumes.containing(path) !== subvolumes.containing(to)) throw Refusal.otherFilesystem(path);
    files.rename(path, to);
  }

  remove(row: Row): void {
    const file = this.#file(row);
    const { subvolumes } = this.#router;
    const kept = file.kind === "disk" || file.kind === "subvolume" || subvolumes.isAbove(file.path);
    if (kept) throw Refusal.notRemovable(file.path);
    this.#router.assertWritable(file.path);
    const { behaviours, files } = this.#router;
    const isFull = file.kind === "directory" && files.within(file.path).length > 1;
    if (isFull && behaviours.directoryRemoval === "must-be-empty") throw Refusal.notEmpty(file.path);
    files.remove(file.path);
  }

  copy(row: Row, values: Values): number {
    const file = this.#file(row);
    if (file.kind !== "file") throw Refusal.noMatch("numbers");
    return copyFile(this.#router, file, this.#newPath(values.get("name")));
  }

  /** A path at which something may be made: free, in an existing directory. */
  #newPath(name: string | undefined): string {
    if (name === undefined) throw Refusal.missingValue("name");
    const path = normalisePath(name);
    const { files } = this.#router;
    if (files.find(path) !== undefined) throw Refusal.alreadyHave("file");
    const parent = parentOf(path);
    if (parent !== "" && !files.isDirectory(parent)) throw Refusal.noSuchDirectory(parent);
    this.#router.assertWritable(path);
    return path;
  }

  #file(row: Row): FileEntry {
    const file = this.#router.files.byId(row.order);
    if (file === undefined) throw Refusal.noSuchItemId();
    return file;
  }

  #rows(files: readonly FileEntry[]): readonly Row[] {
    const reported = readOnlyOf<FileEntry>(this.#router.behaviours);
    return files.map((file) => new ItemRow(file, propertiesByName, reported));
  }
}

function pathOf(row: Row): string {
  return toText(row.value("name") ?? null);
}

/** A file's type is the ending of its name: `.img file`. */
function shownType({ kind, path }: FileEntry): string {
  if (kind === "subvolume") return "directory";
  const ending = /\.[A-Za-z0-9]+$/.exec(path)?.[0];
  return kind === "file" && ending !== undefined ? `${ending} file` : kind;
}

const gibibyte = 1n << 30n;
/** How long a router takes to copy a written gibibyte, in milliseconds. */
const msPerGibibyte = 1000n;

/**
 * `/file copy`: the copy appears at once in its full size, and is complete after a time, unless a reboot comes first.
 *
 * @throws {Refusal} when there is no space for it.
 * @returns how long the command itself takes, in milliseconds: no time, or as long as the copy, depending on the
 *   behaviour `copyReturns`.
 */
function copyFile(router: Router, { path, sizeBytes }: FileEntry, to: string): number {
  const { clock, delays, files, behaviours, timing } = router;
  const pool = router.poolOf(path);
  const share = pool === undefined || router.allocationOf(pool) === "sparse";
  const bytes = share ? 0n : sizeBytes;
  const defaultMs = Number(bytes * msPerGibibyte / gibibyte);
  const ms = Math.max(delays.copyMs, timing.draw([defaultMs, defaultMs]));
  router.assertSpace(to, bytes);
  const finish = files.startCopy(path, to, share);
  if (ms === 0) finish();
  else clock.timer(ms, () => leaveWhenFull(finish));
  return behaviours.copyReturns === "at-once" ? 0 : ms;
}

/** The command has returned already, so a lack of space is not reported: the copy stays as it is. */
function leaveWhenFull(finish: () => void): void {
  try {
    finish();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
}
