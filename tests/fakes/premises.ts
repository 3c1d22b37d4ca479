import type { StoredVolume } from "../../src/volume/model/inventory.ts";
import type { Premise } from "../../src/volume/ports/premise.ts";
import type { Write } from "../../src/volume/ports/store.ts";
import type { StoreContents } from "./store_contents.ts";

/** What a router in memory is asked about a volume. */
export interface Asked {
  readonly id: string;
  readonly contents: StoreContents;
  /** How long it is up, in milliseconds. */
  readonly upMs: number;
}

/** Whether a premise of a write holds right now. */
export function holds(premise: Premise, { id, contents, upMs }: Asked): boolean {
  const { disks, hidden } = contents;
  const disk = hidden.has(id) ? undefined : disks.get(id);
  const onPath = (text: string) =>
    [...disks.values()].filter((disk) => !hidden.has(disk.id) && disk.imagePath.includes(text));
  const isOwn = (test: (disk: StoredVolume) => boolean) => disk !== undefined && test(disk);
  switch (premise.is) {
    case "comment":
      return isOwn(({ comment }) => comment === premise.text);
    case "path":
      return isOwn(({ imagePath }) => imagePath === premise.text);
    case "path-holds":
      return isOwn(({ imagePath }) => imagePath.includes(premise.text));
    case "size":
      return isOwn(({ sizeBytes }) => sizeBytes === premise.bytes);
    case "exported":
      return isOwn(({ exported }) => exported);
    case "not-exported":
      return isOwn(({ exported }) => !exported);
    case "not-mounted":
      return isOwn(({ routerUses = [] }) => !routerUses.includes("its file system is mounted"));
    case "slot-free":
      return !contents.disks.has(id) && !contents.hardware.has(id);
    case "unused":
      return ![...contents.disks.values()].some(({ imagePath }) => imagePath.includes(premise.text));
    case "alone":
      return onPath(premise.text).length === 1;
    case "no-files":
      return contents.tree.holding(premise.text).length === 0;
    case "image-there":
      return contents.tree.shown().some(({ path, sizeBytes }) =>
        path === premise.path && sizeBytes === (premise.bytes ?? sizeBytes)
      );
    case "pool-mounted":
      return contents.pools.some(({ mountPoint, subvolumeLabel }) =>
        mountPoint === premise.mountPoint && (premise.label === undefined || subvolumeLabel === premise.label)
      );
    case "label-free":
      return !contents.pools.some((pool) =>
        pool.subvolumeLabel === premise.label && pool.labelTakenBy !== undefined
      );
    case "up-for":
      return upMs >= premise.ms;
  }
}

/** @throws {Error} where a disk would be changed or removed whatever its comment is */
export function assertCompared(write: Write, premises: readonly Premise[]): void {
  if ("add" in write || premises.some(({ is }) => is === "comment")) return;
  throw new Error("a disk would be changed without comparing its comment");
}
