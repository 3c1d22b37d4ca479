import type { Clock } from "../../volume/ports.ts";
import { Refusal } from "../refusal.ts";
import type { Backing } from "./backing.ts";

/** An item of `/file`. */
export interface FileEntry {
  readonly id: number;
  /** Without leading slash. */
  readonly path: string;
  /** A "disk" is the root of a mounted pool. */
  readonly kind: "file" | "directory" | "disk";
  readonly sizeBytes: bigint;
  readonly modifiedAtMs: number;
  /** What small files carry into an unguarded `/file print`. */
  readonly contents: string;
}

/** The files of the router, by path; the entry and the bytes behind it always change together. */
export class FileTable {
  readonly #clock: Clock;
  readonly #backing: Backing;
  readonly #files = new Map<string, FileEntry>();
  readonly #paths = new Map<number, string>();
  #list: readonly FileEntry[] | undefined;
  #nextId = 1;

  constructor(clock: Clock, backing: Backing) {
    this.#clock = clock;
    this.#backing = backing;
    for (const { path, directory, sizeBytes } of backing.scan()) {
      this.#put(path, directory ? "directory" : "file", sizeBytes);
    }
  }

  /** Every file, nested ones too, ordered by path. */
  list(): readonly FileEntry[] {
    this.#list ??= [...this.#files.values()].toSorted((a, b) => a.path < b.path ? -1 : 1);
    return this.#list;
  }

  find(path: string): FileEntry | undefined {
    return this.#files.get(path);
  }

  byId(id: number): FileEntry | undefined {
    return this.#files.get(this.#paths.get(id) ?? "");
  }

  isDirectory(path: string): boolean {
    const file = this.find(path);
    return file !== undefined && file.kind !== "file";
  }

  /** Makes a directory, together with those above it that are missing. */
  makeDirectories(path: string): void {
    const segments = path.split("/");
    segments.forEach((_, index) => {
      const directory = segments.slice(0, index + 1).join("/");
      if (!this.#files.has(directory)) this.makeDirectory(directory);
    });
  }

  /** Makes a directory; as a "disk" it is the root of a pool. */
  makeDirectory(path: string, kind: "directory" | "disk" = "directory"): FileEntry {
    this.#backing.makeDirectory(path);
    return this.#put(path, kind, 0n);
  }

  /** Makes a file that holds nothing, or the text given. */
  create(path: string, sizeBytes: bigint, contents = ""): FileEntry {
    this.#backing.create(path, sizeBytes);
    return this.#put(path, "file", sizeBytes, contents);
  }

  /** @throws {Refusal} when it would become smaller. */
  grow(path: string, sizeBytes: bigint): void {
    const file = this.find(path);
    if (file === undefined) throw Refusal.noSuchItem();
    if (sizeBytes < file.sizeBytes) throw Refusal.cannotShrink();
    this.#backing.resize(path, sizeBytes);
    this.#files.set(path, { ...file, sizeBytes, modifiedAtMs: this.#clock.now() });
    this.#list = undefined;
  }

  /** Removes a file, or a directory with everything in it. */
  remove(path: string): void {
    this.#backing.remove(path);
    for (const inner of this.#within(path)) {
      this.#files.delete(inner.path);
      this.#paths.delete(inner.id);
    }
    this.#list = undefined;
  }

  /** Renames a file, or a directory with everything in it. */
  rename(from: string, to: string): void {
    this.#backing.rename(from, to);
    for (const inner of this.#within(from)) {
      const path = to + inner.path.slice(from.length);
      this.#files.delete(inner.path);
      this.#files.set(path, { ...inner, path });
      this.#paths.set(inner.id, path);
    }
    this.#list = undefined;
  }

  copy(from: string, to: string): void {
    const file = this.find(from);
    if (file === undefined) throw Refusal.noSuchItem();
    this.#backing.copy(from, to);
    this.#put(to, "file", file.sizeBytes, file.contents);
  }

  /** Bytes taken on a pool: what was written, or the full sizes. */
  usedBytes(mountPoint: string, allocation: "sparse" | "full"): bigint {
    let used = 0n;
    for (const file of this.#files.values()) {
      if (file.kind !== "file" || !file.path.startsWith(`${mountPoint}/`)) continue;
      used += allocation === "full" ? file.sizeBytes : this.#backing.allocatedBytes(file.path);
    }
    return used;
  }

  #within(path: string): FileEntry[] {
    const file = this.find(path);
    if (file?.kind === "file") return [file];
    return [...this.#files.values()].filter((f) => f.path === path || f.path.startsWith(`${path}/`));
  }

  #put(path: string, kind: FileEntry["kind"], sizeBytes: bigint, contents = ""): FileEntry {
    const modifiedAtMs = this.#clock.now();
    const file = { id: this.#nextId++, path, kind, sizeBytes, modifiedAtMs, contents };
    this.#files.set(path, file);
    this.#paths.set(file.id, path);
    this.#list = undefined;
    return file;
  }
}
