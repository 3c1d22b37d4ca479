import type { Clock } from "../../volume/ports/system.ts";
import { Refusal } from "../refusal.ts";
import type { Backing, FoundSubvolume, PendingCopy, SnapshotPart } from "./backing.ts";
import { parentOf } from "./paths.ts";
import { WordIndex } from "./word_index.ts";

/** An item of `/file`. */
export interface FileEntry {
  readonly id: number;
  /** Without leading slash. */
  readonly path: string;
  /** A "disk" is the root of a mounted pool; a "subvolume" is shown as a directory. */
  readonly kind: "file" | "directory" | "subvolume" | "disk";
  readonly sizeBytes: bigint;
  readonly modifiedAtMs: number;
  /** The content of small files in an unguarded `/file print`. */
  readonly contents: string;
  /** The extents that it shares with others. */
  readonly extents: readonly Extent[];
}

/**
 * The files of the router, by path, by the words in it and by directory; the entry and its content always change
 * together. No read or change of one file reads all.
 */
export class FileTable {
  readonly #clock: Clock;
  readonly #backing: Backing;
  readonly #files = new Map<string, FileEntry>();
  readonly #paths = new Map<number, string>();
  readonly #words = new WordIndex<string>();
  readonly #inside = new Map<string, Set<string>>();
  /** The total size of the files of each pool. */
  readonly #sizes = new Map<string, bigint>();
  readonly #hidden = new Set<string>();
  readonly #copying = new Map<number, PendingCopy>();
  readonly #partial = new Set<number>();
  #list: readonly FileEntry[] | undefined;
  #nextId = 1;
  #version = 0;

  constructor(
    clock: Clock,
    backing: Backing,
    foundSubvolume: (path: string, subvolume: FoundSubvolume) => void = () => {},
  ) {
    this.#clock = clock;
    this.#backing = backing;
    for (const { path, directory, sizeBytes, subvolume } of backing.scan()) {
      this.#put(path, subvolume !== undefined ? "subvolume" : directory ? "directory" : "file", sizeBytes);
      if (subvolume !== undefined) foundSubvolume(path, subvolume);
    }
  }

  /** Counts changes. */
  get version(): number {
    return this.#version;
  }

  /** Every file, including nested ones, ordered by path. */
  list(): readonly FileEntry[] {
    this.#list ??= [...this.#files.values()].filter(({ path }) => this.#shows(path))
      .toSorted((a, b) => a.path < b.path ? -1 : 1);
    return this.#list;
  }

  find(path: string): FileEntry | undefined {
    return this.#shows(path) ? this.#files.get(path) : undefined;
  }

  /** Those whose path a pattern can match, and maybe others; undefined without such an index. */
  findByPattern(pattern: string): readonly FileEntry[] | undefined {
    const paths = this.#words.among(pattern);
    return paths === undefined ? undefined : [...paths].flatMap((path) => this.find(path) ?? []);
  }

  byId(id: number): FileEntry | undefined {
    return this.find(this.#paths.get(id) ?? "");
  }

  /** Hides the files of a pool that is not mounted, or shows them again. */
  hideOn(mountPoint: string, hidden: boolean): void {
    if (hidden) this.#hidden.add(mountPoint);
    else this.#hidden.delete(mountPoint);
    this.#touch();
  }

  isDirectory(path: string): boolean {
    const file = this.find(path);
    return file !== undefined && file.kind !== "file";
  }

  /** Reads what is below a mount point from the machine, if it is there: others may write to a share. */
  readAgain(mountPoint: string): void {
    if (this.#backing.locate(mountPoint) === undefined) return;
    const found = new Map(this.#backing.scan(mountPoint).map((file) => [file.path, file]));
    for (const { path, id } of this.#below(mountPoint)) {
      if (found.has(path)) continue;
      this.#forget(this.#files.get(path)!);
      this.#paths.delete(id);
      this.#touch();
    }
    for (const { path, directory, sizeBytes } of found.values()) {
      const known = this.#files.get(path);
      if (known === undefined) this.#put(path, directory ? "directory" : "file", sizeBytes);
      else if (!directory && known.sizeBytes !== sizeBytes) {
        this.#set({ ...known, sizeBytes });
        this.#touch();
      }
    }
  }

  /** Makes a directory, with its missing parents. */
  makeDirectories(path: string): void {
    const segments = path.split("/");
    segments.forEach((_, index) => {
      const directory = segments.slice(0, index + 1).join("/");
      if (!this.#files.has(directory)) this.makeDirectory(directory);
    });
  }

  makeDirectory(path: string): FileEntry {
    this.#backing.makeDirectory(path);
    return this.#put(path, "directory", 0n);
  }

  /** Makes sure that the root of a pool exists. */
  ensureDisk(mountPoint: string): void {
    if (this.find(mountPoint)?.kind === "disk") return;
    this.#backing.makeDirectory(mountPoint);
    this.#put(mountPoint, "disk", 0n);
  }

  makeSubvolume(path: string): FileEntry {
    this.#backing.makeSubvolume(path);
    return this.#put(path, "subvolume", 0n);
  }

  /**
   * Makes a snapshot of a subvolume, with all its files at once. A subvolume inside it becomes an empty directory, as
   * on every Btrfs.
   */
  makeSnapshot(from: string, to: string, readOnly: boolean): FileEntry {
    const inner = this.#withinSubvolume(from);
    const parts = inner.map(({ path, kind }): SnapshotPart => ({
      path: path.slice(from.length + 1),
      kind: kind === "file" ? "file" : "directory",
    }));
    this.#backing.makeSnapshot(from, to, readOnly, parts);
    const made = this.#put(to, "subvolume", 0n);
    for (const file of inner) {
      const path = to + file.path.slice(from.length);
      if (file.kind === "file") this.#share(file, path);
      else this.#put(path, "directory", 0n);
    }
    return made;
  }

  /** Makes an empty file, or one with the given text. */
  create(path: string, sizeBytes: bigint, contents = ""): FileEntry {
    this.#backing.create(path, sizeBytes);
    if (contents !== "") this.#backing.pretendWritten?.(path, BigInt(contents.length));
    return this.#put(path, "file", sizeBytes, contents);
  }

  /** Makes a file larger, or cuts it off. */
  resize(path: string, sizeBytes: bigint): void {
    const file = this.find(path);
    if (file === undefined) throw Refusal.noSuchItem();
    this.#backing.resize(path, sizeBytes);
    this.#set({ ...file, sizeBytes, modifiedAtMs: this.#clock.now() });
    this.#touch();
  }

  /** Removes a file, or a directory or a subvolume with everything in it. */
  remove(path: string): void {
    if (this.find(path)?.kind === "subvolume") this.#backing.removeSubvolume(path);
    else this.#backing.remove(path);
    for (const inner of this.within(path)) {
      this.#forget(inner);
      this.#paths.delete(inner.id);
    }
    this.#touch();
  }

  /** Renames a file, or a directory with everything in it. */
  rename(from: string, to: string): void {
    this.#backing.rename(from, to);
    for (const inner of this.within(from)) {
      const path = to + inner.path.slice(from.length);
      this.#forget(inner);
      this.#set({ ...inner, path });
      this.#paths.set(inner.id, path);
    }
    this.#touch();
  }

  /**
   * Starts a copy, which exists at once in its full size, and is complete when the returned function was called. As on
   * Linux, original and copy may be renamed or removed meanwhile.
   *
   * @param share whether the copy takes no space of its own until it is written to
   */
  startCopy(from: string, to: string, share: boolean): () => void {
    const file = this.find(from);
    if (file === undefined) throw Refusal.noSuchItem();
    const extents = share ? shareExtents(file.extents, this.#backing.allocatedBytes(from)) : [];
    const begun = this.#backing.startCopy(from, to, share);
    const { id } = this.#put(to, "file", file.sizeBytes);
    if (share) this.#set({ ...file, extents });
    this.#copying.set(id, begun);
    this.#partial.add(id);
    return () => {
      const pending = this.#copying.get(id);
      if (pending === undefined) return;
      this.#copying.delete(id);
      const copy = this.byId(id);
      pending.finish(copy?.path);
      if (copy !== undefined) this.#set({ ...copy, extents, contents: file.contents });
      this.#partial.delete(id);
      this.#touch();
    };
  }

  /** Whether a file is an incomplete copy. */
  isPartial({ id }: FileEntry): boolean {
    return this.#partial.has(id);
  }

  /** Leaves every copy under way incomplete. */
  abandonCopies(): void {
    for (const pending of this.#copying.values()) pending.abandon();
    this.#copying.clear();
  }

  /** Bytes taken on a pool: the written data, or the full sizes. */
  usedBytes(mountPoint: string, allocation: "sparse" | "full"): bigint {
    if (allocation === "full") return this.#sizes.get(mountPoint) ?? 0n;
    const paths = this.#backing.writtenPaths?.() ?? this.#files.keys();
    const files = [...paths].flatMap((path) => this.#entry(path))
      .filter(({ kind, path }) => kind === "file" && path.startsWith(`${mountPoint}/`));
    return usedBytes(files.map(({ path, extents }) => ({
      extents,
      allocatedBytes: this.#backing.allocatedBytes(path),
    })));
  }

  /** A file alone, or a directory and everything in it, directories before their content. */
  within(path: string): readonly FileEntry[] {
    const file = this.find(path);
    if (file?.kind === "file") return [file];
    const below = this.#shows(path) ? this.#below(path) : [];
    return file === undefined ? below : [file, ...below];
  }

  /** Everything below a path, ordered by path. */
  #below(path: string): FileEntry[] {
    const found: FileEntry[] = [];
    const todo = [path];
    for (let outer = todo.pop(); outer !== undefined; outer = todo.pop()) {
      for (const inner of this.#inside.get(outer) ?? []) {
        found.push(...this.#entry(inner));
        todo.push(inner);
      }
    }
    return found.sort((a, b) => a.path < b.path ? -1 : 1);
  }

  #entry(path: string): readonly FileEntry[] {
    const file = this.#files.get(path);
    return file === undefined ? [] : [file];
  }

  #set(file: FileEntry): void {
    const { path } = file;
    const before = this.#files.get(path);
    this.#files.set(path, file);
    this.#count(file, (before?.kind === "file" ? -before.sizeBytes : 0n) + file.sizeBytes);
    if (before !== undefined) return;
    this.#words.add(path, path);
    this.#link(path);
  }

  #forget(file: FileEntry): void {
    const { path } = file;
    if (!this.#files.delete(path)) return;
    this.#count(file, -file.sizeBytes);
    this.#words.remove(path, path);
    this.#unlink(path);
  }

  /** Links a path to its parents, so that it is found from above, even if a directory between has no entry. */
  #link(path: string): void {
    const outer = parentOf(path);
    const inside = this.#inside.get(outer) ?? new Set();
    this.#inside.set(outer, inside.add(path));
    if (inside.size === 1 && outer !== "") this.#link(outer);
  }

  #unlink(path: string): void {
    if (this.#files.has(path) || this.#inside.has(path)) return;
    const outer = parentOf(path);
    const inside = this.#inside.get(outer);
    inside?.delete(path);
    if (inside?.size !== 0) return;
    this.#inside.delete(outer);
    if (outer !== "") this.#unlink(outer);
  }

  #count({ kind, path }: FileEntry, moreBytes: bigint): void {
    if (kind !== "file") return;
    const mountPoint = path.split("/", 1)[0]!;
    this.#sizes.set(mountPoint, (this.#sizes.get(mountPoint) ?? 0n) + moreBytes);
  }

  /** The content of a subvolume; subvolumes in it appear as empty directories. */
  #withinSubvolume(root: string): readonly FileEntry[] {
    const inner = this.within(root).filter(({ path }) => path !== root);
    const nested = inner.filter(({ kind }) => kind === "subvolume").map(({ path }) => `${path}/`);
    return inner.filter(({ path }) => !nested.some((other) => path.startsWith(other)));
  }

  #touch(): void {
    this.#list = undefined;
    this.#version++;
  }

  #shows(path: string): boolean {
    return this.#hidden.size === 0 || !this.#hidden.has(path.split("/")[0]!);
  }

  #share(file: FileEntry, to: string): void {
    const extents = shareExtents(file.extents, this.#backing.allocatedBytes(file.path));
    this.#set({ ...file, extents });
    this.#put(to, "file", file.sizeBytes, file.contents, extents, file.modifiedAtMs);
  }

  #put(
    path: string,
    kind: FileEntry["kind"],
    sizeBytes: bigint,
    contents = "",
    extents: readonly Extent[] = [],
    modifiedAtMs = this.#clock.now(),
  ): FileEntry {
    const file = { id: this.#nextId++, path, kind, sizeBytes, modifiedAtMs, contents, extents };
    this.#set(file);
    this.#paths.set(file.id, path);
    this.#touch();
    return file;
  }
}

/** A part of a file that others may share. Two files share it when both hold this very object. */
interface Extent {
  readonly bytes: bigint;
}

/** The space of a file. */
interface Allocation {
  /** The extents that it shares, or has shared. */
  readonly extents: readonly Extent[];
  /** All written data of it, including shared extents. */
  readonly allocatedBytes: bigint;
}

/** The extents of a file and of its copy: the data that only the file had becomes one of them. */
function shareExtents(extents: readonly Extent[], allocatedBytes: bigint): readonly Extent[] {
  const own = allocatedBytes - sum(extents);
  return own > 0n ? [...extents, { bytes: own }] : extents;
}

/**
 * Bytes that files take together, with shared extents counted once. Overwriting a shared part does not add space here,
 * which is accurate enough for a pool that is not nearly full.
 */
function usedBytes(files: readonly Allocation[]): bigint {
  const shared = new Set(files.flatMap(({ extents }) => extents));
  return files.reduce((total, { extents, allocatedBytes }) => {
    const own = allocatedBytes - sum(extents);
    return own > 0n ? total + own : total;
  }, sum(shared));
}

function sum(extents: Iterable<Extent>): bigint {
  let total = 0n;
  for (const { bytes } of extents) total += bytes;
  return total;
}
