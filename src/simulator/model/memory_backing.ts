import type { Backing, FoundFile, PendingCopy, SnapshotPart } from "./backing.ts";

/** A backing that keeps no bytes: files have a size, and someone may say how much of it is written. */
export class MemoryBacking implements Backing {
  readonly #written = new Map<string, bigint>();

  makeDirectory(): void {}

  create(path: string): void {
    this.#written.set(path, 0n);
  }

  resize(): void {}

  remove(path: string): void {
    this.#written.delete(path);
  }

  rename(from: string, to: string): void {
    this.#written.set(to, this.allocatedBytes(from));
    this.#written.delete(from);
  }

  startCopy(from: string, to: string): PendingCopy {
    const bytes = this.allocatedBytes(from);
    this.create(to);
    return {
      finish: (path) => {
        if (path !== undefined) this.#written.set(path, bytes);
      },
      abandon() {},
    };
  }

  makeSubvolume(): void {}

  makeSnapshot(from: string, to: string, _readOnly: boolean, parts: readonly SnapshotPart[]): void {
    for (const { path, kind } of parts) {
      if (kind === "file") this.#written.set(`${to}/${path}`, this.allocatedBytes(`${from}/${path}`));
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
