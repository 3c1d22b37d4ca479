import { Buffer } from "node:buffer";

const chunkBytes = 1 << 20;

/** A sparse copy that is not whole yet. It needs no path any more. */
export interface SparseCopy {
  finish(): void;
  abandon(): void;
}

/**
 * Begins to copy a file: the copy is there in its full size, and later gets what is not zero, so that holes stay holes.
 * Both files are held open: neither renaming nor removing one makes a difference.
 *
 * What was written through a loop device is on the file when the copying begins; what is written while it runs may be
 * in the copy or not, so that a copy of a file in use is only as good as its luck.
 */
export function startSparseCopy(from: string, to: string): SparseCopy {
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
