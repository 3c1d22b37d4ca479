import { join, relative } from "node:path";
import { Buffer } from "node:buffer";
import * as btrfs from "../host/btrfs.ts";
import { BtrfsError } from "../host/btrfs.ts";
import type { Backing, FoundFile, PendingCopy, SnapshotPart } from "./backing.ts";
import { Refusal } from "../refusal.ts";

const blockBytes = 512n;

/**
 * A backing of real sparse files below one folder. Paths were checked before: they never leave it. On Btrfs, subvolumes
 * and snapshots are real; elsewhere they are directories and copies.
 */
export class DirectoryBacking implements Backing {
  readonly #root: string;
  readonly #isBtrfs: boolean;

  /** @param root is made if it is missing. */
  constructor(root: string) {
    this.#root = root;
    Deno.mkdirSync(root, { recursive: true });
    this.#isBtrfs = btrfs.isOnBtrfs(root);
  }

  makeDirectory(path: string): void {
    Deno.mkdirSync(this.locate(path), { recursive: true });
  }

  create(path: string, sizeBytes: bigint): void {
    using file = withSpace(() => Deno.openSync(this.locate(path), { write: true, createNew: true }));
    file.truncateSync(Number(sizeBytes));
  }

  resize(path: string, sizeBytes: bigint): void {
    Deno.truncateSync(this.locate(path), Number(sizeBytes));
  }

  remove(path: string): void {
    try {
      Deno.removeSync(this.locate(path), { recursive: true });
    } catch (error) {
      // A test may have removed it already, which is fine.
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }

  rename(from: string, to: string): void {
    Deno.renameSync(this.locate(from), this.locate(to));
  }

  startCopy(from: string, to: string, share: boolean): PendingCopy {
    if (!share || !this.#isBtrfs) {
      const { finish, abandon } = withSpace(() => startSparseCopy(this.locate(from), this.locate(to)));
      return { finish: () => withSpace(finish), abandon };
    }
    // Sharing takes no time, so there is nothing left to do later.
    Deno.openSync(this.locate(to), { write: true, createNew: true }).close();
    withSpace(() => btrfs.shareContents(this.locate(from), this.locate(to)));
    return { finish() {}, abandon() {} };
  }

  makeSubvolume(path: string): void {
    if (this.#isBtrfs) withSpace(() => btrfs.makeSubvolume(this.locate(path)));
    else Deno.mkdirSync(this.locate(path));
  }

  makeSnapshot(from: string, to: string, readOnly: boolean, parts: readonly SnapshotPart[]): void {
    if (this.#isBtrfs) {
      return withSpace(() => btrfs.makeSnapshot(this.locate(from), this.locate(to), readOnly));
    }
    try {
      withSpace(() => this.#copyAll(from, to, parts));
    } catch (error) {
      this.remove(to);
      throw error;
    }
  }

  #copyAll(from: string, to: string, parts: readonly SnapshotPart[]): void {
    Deno.mkdirSync(this.locate(to));
    for (const { path, kind } of parts) {
      if (kind === "directory") Deno.mkdirSync(this.locate(`${to}/${path}`));
      else startSparseCopy(this.locate(`${from}/${path}`), this.locate(`${to}/${path}`)).finish();
    }
  }

  removeSubvolume(path: string): void {
    if (this.#isBtrfs) btrfs.removeSubvolume(this.locate(path));
    else this.remove(path);
  }

  setReadOnly(path: string, readOnly: boolean): void {
    if (this.#isBtrfs) btrfs.setSubvolumeReadOnly(this.locate(path), readOnly);
  }

  allocatedBytes(path: string): bigint {
    try {
      return BigInt(Deno.statSync(this.locate(path)).blocks ?? 0) * blockBytes;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return 0n;
      throw error;
    }
  }

  locate(path: string): string {
    return join(this.#root, path);
  }

  scan(folder = ""): readonly FoundFile[] {
    return this.#scan(this.locate(folder));
  }

  #scan(folder: string): FoundFile[] {
    return [...Deno.readDirSync(folder)].toSorted((a, b) => a.name < b.name ? -1 : 1).flatMap((entry) => {
      const path = join(folder, entry.name);
      if (!entry.isDirectory) {
        // A link of a share's client may lead nowhere.
        const sizeBytes = BigInt(Deno.lstatSync(path).size);
        return [{ path: relative(this.#root, path), directory: false, sizeBytes }];
      }
      const found = { path: relative(this.#root, path), directory: true, sizeBytes: 0n };
      const isSubvolume = this.#isBtrfs && Deno.statSync(path).ino === btrfs.subvolumeInode;
      const own = isSubvolume ? { ...found, subvolume: btrfs.subvolumeInfo(path) } : found;
      return [own, ...this.#scan(path)];
    });
  }
}

const ENOSPC = 28;

/**
 * Runs an operation on a real file system.
 *
 * @throws {Refusal} when that is full.
 */
function withSpace<Result>(act: () => Result): Result {
  try {
    return act();
  } catch (error) {
    throw isNoSpace(error) ? Refusal.noSpace() : error;
  }
}

function isNoSpace(error: unknown): boolean {
  if (error instanceof BtrfsError) return error.errno === ENOSPC;
  return error instanceof Error && error.message.includes(`(os error ${ENOSPC})`);
}

const chunkBytes = 1 << 20;

/** A sparse copy that is not complete yet. It does not need its path any more. */
interface SparseCopy {
  finish(): void;
  abandon(): void;
}

/**
 * Starts copying a file: the copy exists at once in its full size, and gets all data that is not zero later, so that
 * holes stay holes. Both files are held open, so renaming or removing them does not matter.
 *
 * Data written through a loop device is in the file when the copying begins. Data written during the copy may be in it
 * or not, so a copy of a file in use is not consistent.
 */
function startSparseCopy(from: string, to: string): SparseCopy {
  const source = Deno.openSync(from, { read: true });
  try {
    const target = Deno.openSync(to, { write: true, createNew: true });
    target.truncateSync(source.statSync().size);
    const abandon = () => {
      source.close();
      target.close();
    };
    const finish = () => {
      try {
        source.syncDataSync();
        copyContents(source, target);
      } finally {
        abandon();
      }
    };
    return { finish, abandon };
  } catch (error) {
    source.close();
    throw error;
  }
}

function copyContents(source: Deno.FsFile, target: Deno.FsFile): void {
  const chunk = Buffer.alloc(chunkBytes);
  const zeros = Buffer.alloc(chunkBytes);
  for (let offset = 0;;) {
    const count = source.readSync(chunk);
    if (count === null) return;
    const data = chunk.subarray(0, count);
    if (!data.equals(zeros.subarray(0, count))) writeAt(target, offset, data);
    offset += count;
  }
}

function writeAt(file: Deno.FsFile, offset: number, data: Uint8Array): void {
  file.seekSync(offset, Deno.SeekMode.Start);
  for (let written = 0; written < data.length;) written += file.writeSync(data.subarray(written));
}
