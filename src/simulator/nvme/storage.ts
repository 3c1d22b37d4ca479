import { punchHole } from "../host/holes.ts";
import { Refused, statuses } from "./command.ts";

/**
 * The bytes behind an export. Reading and writing are done when they return: whatever ends an export between two of them
 * ends it for good, and not one more block is written.
 */
export interface Storage {
  /** What is beyond the end of the file reads as zeros. */
  read(offset: number, length: number): Uint8Array;
  /** @throws {Refused} when it cannot be written. */
  write(offset: number, bytes: Uint8Array): void;
  /** Gives the room of what is discarded back, as far as its file system can: what is left reads as zeros, or as it was. */
  discard(offset: number, length: number): void;
  flush(): Promise<void>;
  close(): void;
}

/**
 * Opens the file of an export. Without one everything is zero and cannot be written, as nothing would keep it; what lies
 * on a read-only snapshot cannot be written either. A file that cannot be opened is no reason not to export its disk.
 */
export function openStorage(path: string | undefined): Storage {
  if (path === undefined) return zeros;
  try {
    return openFile(path);
  } catch (error) {
    return unreadable(String(error));
  }
}

function openFile(path: string): Storage {
  try {
    return new FileStorage(Deno.openSync(path, { read: true, write: true }), path, true);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) throw error;
    return new FileStorage(Deno.openSync(path, { read: true }), path, false);
  }
}

class FileStorage implements Storage {
  readonly #file: Deno.FsFile;
  readonly #path: string;
  readonly #writable: boolean;

  constructor(file: Deno.FsFile, path: string, writable: boolean) {
    this.#file = file;
    this.#path = path;
    this.#writable = writable;
  }

  read(offset: number, length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    try {
      this.#file.seekSync(offset, Deno.SeekMode.Start);
      for (let at = 0; at < length;) {
        const count = this.#file.readSync(bytes.subarray(at));
        if (count === null) break;
        at += count;
      }
      return bytes;
    } catch (error) {
      throw new Refused(statuses.readError, String(error));
    }
  }

  write(offset: number, bytes: Uint8Array): void {
    if (!this.#writable) throw new Refused(statuses.writeProtected, "The file of the disk is read-only.");
    try {
      this.#file.seekSync(offset, Deno.SeekMode.Start);
      for (let at = 0; at < bytes.length;) at += this.#file.writeSync(bytes.subarray(at));
    } catch (error) {
      throw new Refused(statuses.writeFault, String(error));
    }
  }

  discard(offset: number, length: number): void {
    if (!this.#writable) throw new Refused(statuses.writeProtected, "The file of the disk is read-only.");
    const { ino, dev } = this.#file.statSync();
    punchHole(this.#path, { ino, dev }, offset, length);
  }

  async flush(): Promise<void> {
    try {
      await this.#file.syncData();
    } catch (error) {
      throw new Refused(statuses.writeFault, String(error));
    }
  }

  close(): void {
    this.#file.close();
  }
}

const zeros: Storage = {
  read: (_offset, length) => new Uint8Array(length),
  discard() {},
  write() {
    throw new Refused(
      statuses.writeProtected,
      "The simulator keeps disks in memory, where there is no room.",
    );
  },
  flush: () => Promise.resolve(),
  close() {},
};

function unreadable(reason: string): Storage {
  return {
    read() {
      throw new Refused(statuses.readError, reason);
    },
    write() {
      throw new Refused(statuses.writeFault, reason);
    },
    discard() {
      throw new Refused(statuses.writeFault, reason);
    },
    flush: () => Promise.resolve(),
    close() {},
  };
}
