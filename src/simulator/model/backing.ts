/** A file that existed in a backing folder at the start. */
export interface FoundFile {
  /** Without leading slash. */
  readonly path: string;
  readonly directory: boolean;
  readonly sizeBytes: bigint;
  /** The information about a subvolume, for its root. */
  readonly subvolume?: FoundSubvolume;
}

/** A subvolume that existed in a backing folder at the start. */
export interface FoundSubvolume {
  readonly uuid: string;
  /** UUID of the subvolume of which it is a snapshot. */
  readonly sourceUuid: string | undefined;
  readonly readOnly: boolean;
}

/** Something inside a subvolume. */
export interface SnapshotPart {
  /** Below the subvolume, without leading slash. */
  readonly path: string;
  readonly kind: "file" | "directory";
}

/** A copy that is not complete yet. */
export interface PendingCopy {
  /** Completes it, wherever it is now; `path` is undefined when it was removed. */
  finish(path: string | undefined): void;
  /** Leaves it incomplete. */
  abandon(): void;
}

/** Stores the content of the router's files. Paths are those of the router, without leading slash. */
export interface Backing {
  makeDirectory(path: string): void;
  /** Makes an empty (sparse) file of that size. */
  create(path: string, sizeBytes: bigint): void;
  resize(path: string, sizeBytes: bigint): void;
  /** Removes a file, or a directory with everything in it. */
  remove(path: string): void;
  rename(from: string, to: string): void;
  /** Starts copying a file, sharing its blocks if `share` is set and it is possible. The copy exists at once. */
  startCopy(from: string, to: string, share: boolean): PendingCopy;
  /** Makes a subvolume, or a directory if that is not possible. */
  makeSubvolume(path: string): void;
  /**
   * Makes a snapshot: a subvolume with the present content of `from`.
   *
   * @param parts everything in it, directories before their content
   */
  makeSnapshot(from: string, to: string, readOnly: boolean, parts: readonly SnapshotPart[]): void;
  /** Removes a subvolume with everything in it. */
  removeSubvolume(path: string): void;
  /** Makes a subvolume read-only, or writable. */
  setReadOnly(path: string, readOnly: boolean): void;
  /** How much space a file takes. */
  allocatedBytes(path: string): bigint;
  /** The paths of all files that take space, and maybe others; undefined where that needs a read of each file. */
  writtenPaths?(): Iterable<string>;
  /** Notes that so much of a file was written, without writing. */
  pretendWritten?(path: string, bytes: bigint): void;
  /** The path of the file on this machine; undefined when it has none. */
  locate(path: string): string | undefined;
  /** The files that are there, of a folder or of all; directories before their content. */
  scan(folder?: string): readonly FoundFile[];
}

/** A backing without content: files have a size, and a test may set how much of it is written. */
export class MemoryBacking implements Backing {
  readonly #written = new Map<string, bigint>();

  makeDirectory(): void {}

  create(path: string): void {
    this.#written.delete(path);
  }

  resize(): void {}

  remove(path: string): void {
    this.#written.delete(path);
  }

  rename(from: string, to: string): void {
    this.#copy(from, to);
    this.#written.delete(from);
  }

  startCopy(from: string, to: string): PendingCopy {
    const bytes = this.allocatedBytes(from);
    this.create(to);
    return {
      finish: (path) => {
        if (path !== undefined && bytes > 0n) this.#written.set(path, bytes);
      },
      abandon() {},
    };
  }

  makeSubvolume(): void {}

  makeSnapshot(from: string, to: string, _readOnly: boolean, parts: readonly SnapshotPart[]): void {
    for (const { path, kind } of parts) {
      if (kind === "file") this.#copy(`${from}/${path}`, `${to}/${path}`);
    }
  }

  removeSubvolume(path: string): void {
    for (const inner of [...this.#written.keys()]) {
      if (inner.startsWith(`${path}/`)) this.#written.delete(inner);
    }
  }

  setReadOnly(): void {}

  allocatedBytes(path: string): bigint {
    return this.#written.get(path) ?? 0n;
  }

  writtenPaths(): Iterable<string> {
    return this.#written.keys();
  }

  #copy(from: string, to: string): void {
    const bytes = this.#written.get(from);
    if (bytes === undefined) this.#written.delete(to);
    else this.#written.set(to, bytes);
  }

  pretendWritten(path: string, bytes: bigint): void {
    this.#written.set(path, bytes);
  }

  locate(): undefined {
    return undefined;
  }

  scan(): readonly FoundFile[] {
    return [];
  }
}
