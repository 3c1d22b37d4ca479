import type { StoredVolume } from "../../src/volume/model/inventory.ts";

/** Exports of a router in memory that can still be written to after they were withdrawn. */
export class LingeringExports {
  #exports: { readonly imagePath: string; readonly nqn: string; readonly untilMs: number }[] = [];

  /** Lets the export of a disk linger. */
  add({ imagePath, exportNqn: nqn }: StoredVolume, untilMs: number): void {
    this.#exports.push({ imagePath, nqn, untilMs });
  }

  /** Ends all of them. */
  clear(): void {
    this.#exports = [];
  }

  /** The NQNs by which an image can still be written. */
  nqnsOf(imagePath: string, nowMs: number): string[] {
    return this.#exports.filter((one) => one.imagePath === imagePath && one.untilMs > nowMs)
      .map(({ nqn }) => nqn);
  }
}
