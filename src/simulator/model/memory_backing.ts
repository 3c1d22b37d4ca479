import type { Backing, FoundFile } from "./backing.ts";

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

  copy(from: string, to: string): void {
    this.#written.set(to, this.allocatedBytes(from));
  }

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
