import { join, relative } from "node:path";
import type { Backing, FoundFile } from "./backing.ts";

const blockBytes = 512n;
const copyChunkBytes = 1 << 20;

/** A backing of real sparse files below one folder. Paths were checked before: they never leave it. */
export class DirectoryBacking implements Backing {
  readonly #root: string;

  /** @param root is made if it is missing. */
  constructor(root: string) {
    this.#root = root;
    Deno.mkdirSync(root, { recursive: true });
  }

  makeDirectory(path: string): void {
    Deno.mkdirSync(this.locate(path), { recursive: true });
  }

  create(path: string, sizeBytes: bigint): void {
    using file = Deno.openSync(this.locate(path), { write: true, createNew: true });
    file.truncateSync(Number(sizeBytes));
  }

  resize(path: string, sizeBytes: bigint): void {
    Deno.truncateSync(this.locate(path), Number(sizeBytes));
  }

  remove(path: string): void {
    try {
      Deno.removeSync(this.locate(path), { recursive: true });
    } catch (error) {
      // Someone may have taken it away behind our back; then it is as gone as it should be.
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }

  rename(from: string, to: string): void {
    Deno.renameSync(this.locate(from), this.locate(to));
  }

  /** Copies what is not zero, so that holes stay holes. */
  copy(from: string, to: string): void {
    using source = Deno.openSync(this.locate(from), { read: true });
    using target = Deno.openSync(this.locate(to), { write: true, createNew: true });
    target.truncateSync(source.statSync().size);
    const chunk = new Uint8Array(copyChunkBytes);
    for (let offset = 0;;) {
      const count = source.readSync(chunk);
      if (count === null) return;
      const data = chunk.subarray(0, count);
      if (data.some((byte) => byte !== 0)) writeAt(target, offset, data);
      offset += count;
    }
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

  scan(): readonly FoundFile[] {
    return this.#scan(this.#root);
  }

  #scan(folder: string): FoundFile[] {
    return [...Deno.readDirSync(folder)].toSorted((a, b) => a.name < b.name ? -1 : 1).flatMap((entry) => {
      const path = join(folder, entry.name);
      const found = {
        path: relative(this.#root, path),
        directory: entry.isDirectory,
        sizeBytes: entry.isDirectory ? 0n : BigInt(Deno.statSync(path).size),
      };
      return entry.isDirectory ? [found, ...this.#scan(path)] : [found];
    });
  }
}

function writeAt(file: Deno.FsFile, offset: number, data: Uint8Array): void {
  file.seekSync(offset, Deno.SeekMode.Start);
  for (let written = 0; written < data.length;) written += file.writeSync(data.subarray(written));
}
