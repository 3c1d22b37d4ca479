/** A file found in a backing folder at start. */
export interface FoundFile {
  /** Without leading slash. */
  readonly path: string;
  readonly directory: boolean;
  readonly sizeBytes: bigint;
  /** For the root of a subvolume what is known of it. */
  readonly subvolume?: FoundSubvolume;
}

/** A subvolume found in a backing folder at start. */
export interface FoundSubvolume {
  readonly uuid: string;
  /** UUID of the subvolume that it is a snapshot of. */
  readonly sourceUuid: string | undefined;
  readonly readOnly: boolean;
}

/** Something inside a subvolume. */
export interface SnapshotPart {
  /** Below the subvolume, without leading slash. */
  readonly path: string;
  readonly kind: "file" | "directory";
}

/** A copy that is not whole yet. */
export interface PendingCopy {
  /** Makes it whole, wherever it has gone meanwhile; `path` is undefined when it was removed. */
  finish(path: string | undefined): void;
  /** Leaves it as it is. */
  abandon(): void;
}

/** Where the bytes of the router's files are. Paths are those of the router, without leading slash. */
export interface Backing {
  makeDirectory(path: string): void;
  /** Makes a file of that size that holds nothing. */
  create(path: string, sizeBytes: bigint): void;
  resize(path: string, sizeBytes: bigint): void;
  /** Removes a file, or a directory with everything in it. */
  remove(path: string): void;
  rename(from: string, to: string): void;
  /** Begins to copy a file, sharing its blocks where `share` is asked for and possible. The copy is there at once. */
  startCopy(from: string, to: string, share: boolean): PendingCopy;
  /** Makes a subvolume, or a directory where there is no such thing. */
  makeSubvolume(path: string): void;
  /**
   * Makes a snapshot: a subvolume that holds what `from` holds at this moment.
   *
   * @param parts all that is in it, directories before what they hold
   */
  makeSnapshot(from: string, to: string, readOnly: boolean, parts: readonly SnapshotPart[]): void;
  /** Removes a subvolume with everything in it. */
  removeSubvolume(path: string): void;
  /** Makes a subvolume read-only, or writable. */
  setReadOnly(path: string, readOnly: boolean): void;
  /** How much of a file takes space. */
  allocatedBytes(path: string): bigint;
  /** The paths of all files that take space, and maybe others; undefined where only a look at each file tells. */
  writtenPaths?(): Iterable<string>;
  /** Says that so much of a file was written, where nothing really is. */
  pretendWritten?(path: string, bytes: bigint): void;
  /** Where the file is on this machine; undefined when it is nowhere. */
  locate(path: string): string | undefined;
  /** What was there before the simulator was, directories before what they hold. */
  scan(): readonly FoundFile[];
}

/** A backing that keeps no bytes: files have a size, and someone may say how much of it is written. */
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
