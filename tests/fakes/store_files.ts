import { parentFolder, poolOf } from "../../src/volume/model/ids/ids.ts";
import { withinPool } from "../../src/volume/model/layout.ts";
import type {
  ImageLocation,
  Pool,
  StoredFile,
  SubvolumeRef,
  Wanted,
} from "../../src/volume/model/inventory.ts";
import type { NewSubvolume } from "../../src/volume/ports/store.ts";
import { aPool } from "./records.ts";

/** A Btrfs subvolume. Its files are among all others, below its folder. */
export interface FakeSubvolume {
  readonly label: string;
  readonly path: string;
  readonly readOnly: boolean;
  /** Its parent if it is a snapshot; else undefined. */
  readonly parent: string | undefined;
}

/** The files and subvolumes of a router in memory. */
export class FakeFiles {
  readonly files = new Map<string, StoredFile>();
  /** By label, a colon and path. */
  readonly subvolumes = new Map<string, FakeSubvolume>();
  /** The data in a file, as a text of the test that writes it; missing for files without data. */
  readonly contents = new Map<string, string>();
  /** Files that a person has put where the router does not look, with their data. */
  readonly #aside = new Map<string, { readonly file: StoredFile; readonly content: string | undefined }>();
  pools: Pool[] = [aPool()];
  /** Whether the router lists its files: it may have mounted its pools a moment before. */
  showsFiles = true;
  /** Whether a subvolume cannot be removed while there are snapshots of it. */
  holdsParents = false;

  /** The visible files: none of a pool that is not mounted. */
  shown(): StoredFile[] {
    if (!this.showsFiles) return [];
    return [...this.files.values()].filter((file) => this.isMounted(file.path));
  }

  /** The visible files with the text in their path. */
  holding(part: string): StoredFile[] {
    return this.shown().filter((file) => file.path.includes(part));
  }

  /** The visible files of a volume, with its folder and other files with the text in their path. */
  about(wanted: Wanted | undefined, part: string | undefined): StoredFile[] {
    const isWanted = (path: string) =>
      wanted !== undefined && (path.includes(wanted.filePrefix) || path === wanted.folder);
    return this.shown().filter(({ path }) => isWanted(path) || part !== undefined && path.includes(part));
  }

  isMounted(path: string): boolean {
    return this.pools.some((pool) => pool.mountPoint === poolOf(path));
  }

  /** Whether something can be made at the path. */
  hasFolderFor(path: string): boolean {
    const folder = parentFolder(path);
    return this.isMounted(path) &&
      (folder === `/${poolOf(path)}` || this.files.get(folder)?.directory === true);
  }

  putFile(path: string, sizeBytes = 0n, directory = false): void {
    this.files.set(path, { path, sizeBytes, directory });
  }

  putSubvolume(subvolume: FakeSubvolume): void {
    this.subvolumes.set(keyOf(subvolume), subvolume);
    this.putFile(this.folderOf(subvolume), 0n, true);
  }

  find(subvolume: SubvolumeRef): FakeSubvolume | undefined {
    return this.subvolumes.get(keyOf(subvolume));
  }

  /** The folder of a subvolume; a file system that is not mounted has none. */
  folderOf({ label, path }: SubvolumeRef): string {
    const pool = this.pools.find((pool) => pool.subvolumeLabel === label);
    return `/${pool?.mountPoint ?? `${label} is not mounted`}/${path}`;
  }

  /** The innermost subvolume that contains the file. */
  subvolumeOf(path: string): FakeSubvolume | undefined {
    return [...this.subvolumes.values()].filter((subvolume) =>
      path.startsWith(`${this.folderOf(subvolume)}/`)
    )
      .toSorted((a, b) => b.path.length - a.path.length)[0];
  }

  /** Makes a subvolume, or returns why not. */
  addSubvolume(subvolume: NewSubvolume): string | undefined {
    const { label, path, parent, readOnly } = subvolume;
    const folder = this.folderOf(subvolume);
    const pool = this.pools.find((pool) => pool.subvolumeLabel === label);
    if (pool === undefined) return "failure: no such file system";
    if (pool.labelTakenBy !== undefined) return "failure: a volume has this fs-label";
    if (this.files.has(folder)) return "failure: already have such subvolume";
    if (!this.hasFolderFor(folder)) return "failure: no such directory";
    const source = parent === undefined ? undefined : this.find(parent);
    if (parent !== undefined && source === undefined) return "failure: no such parent";
    this.putSubvolume({ label, path, readOnly, parent: parent?.path });
    if (source !== undefined) this.#copyWithin(source, folder);
    return undefined;
  }

  #copyWithin(source: FakeSubvolume, folder: string): void {
    const from = this.folderOf(source);
    for (const file of [...this.files.values()]) {
      if (!file.path.startsWith(`${from}/`) || this.subvolumeOf(file.path) !== source) continue;
      this.copy(file.path, folder + file.path.slice(from.length));
    }
  }

  copy(from: string, to: string): void {
    const file = this.files.get(from)!;
    this.putFile(to, file.sizeBytes, file.directory);
    const content = this.contents.get(from);
    if (content !== undefined) this.contents.set(to, content);
  }

  /** Renames a file to a free path; false when it cannot. */
  rename(from: string, to: string): boolean {
    if (!this.files.has(from) || this.files.has(to) || !this.isMounted(from)) return false;
    this.copy(from, to);
    this.#forget(from);
    return true;
  }

  /** A person puts a file aside. */
  putAside(path: string): void {
    this.#aside.set(path, { file: this.files.get(path)!, content: this.contents.get(path) });
    this.#forget(path);
  }

  isAside(path: string): boolean {
    return this.#aside.has(path);
  }

  /** The data of a file that is put aside. */
  contentAside(path: string): string | undefined {
    return this.#aside.get(path)?.content;
  }

  /** The file is where it was, or is thrown away. */
  takeBack(path: string, isKept: boolean): void {
    const { file, content } = this.#aside.get(path) ?? {};
    this.#aside.delete(path);
    if (file === undefined || !isKept || this.files.has(path)) return;
    this.files.set(path, file);
    if (content !== undefined) this.contents.set(path, content);
  }

  /** Removes an image, or the subvolume with it, or returns why not. */
  remove(location: ImageLocation): string | undefined {
    if (!this.isMounted(location.path)) return undefined;
    if (location.subvolume === undefined) {
      if (this.files.get(location.path)?.directory === false) this.#forget(location.path);
      return undefined;
    }
    const subvolume = this.find(location.subvolume);
    if (subvolume === undefined) return undefined;
    const { labelTakenBy } = this.pools.find((pool) => pool.subvolumeLabel === subvolume.label) ?? {};
    if (labelTakenBy !== undefined) return "failure: a volume has this fs-label";
    const snapshots = [...this.subvolumes.values()].some((other) => other.parent === subvolume.path);
    if (this.holdsParents && snapshots) return "failure: it has snapshots";
    const folder = this.folderOf(subvolume);
    this.subvolumes.delete(keyOf(subvolume));
    for (const path of [...this.files.keys()]) {
      if (path === folder || path.startsWith(`${folder}/`)) this.#forget(path);
    }
    return undefined;
  }

  /** Removes an empty folder that is no subvolume; false when there is none. */
  removeFolder(path: string): boolean {
    if (this.files.get(path)?.directory !== true) return false;
    this.#forget(path);
    return true;
  }

  /** Makes a folder, on a Btrfs pool as a subvolume; an existing one stays. Nothing is made on a pool that is not mounted. */
  ensureFolder({ path, label }: { readonly path: string; readonly label: string | undefined }): void {
    if (this.files.has(path) || !this.isMounted(path)) return;
    if (label === undefined) this.putFile(path, 0n, true);
    else this.putSubvolume({ label, path: withinPool(path), readOnly: false, parent: undefined });
  }

  #forget(path: string): void {
    this.files.delete(path);
    this.contents.delete(path);
  }
}

function keyOf({ label, path }: SubvolumeRef): string {
  return `${label}:${path}`;
}
