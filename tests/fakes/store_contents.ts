import { poolOf } from "../../src/volume/model/ids/ids.ts";
import { locationOf } from "../../src/volume/model/layout.ts";
import type { Pool, StoredFile, StoredVolume, UnreadablePool } from "../../src/volume/model/inventory.ts";
import { FakeFiles, type FakeSubvolume } from "./store_files.ts";

/** What a router in memory holds, and how somebody else changes it. */
export class StoreContents {
  /** The file-backed disks by slot. */
  readonly disks = new Map<string, StoredVolume>();
  /** What else is in a slot: its kind. */
  readonly hardware = new Map<string, string>();
  /** Slots whose disks the router does not show (yet). */
  readonly hidden = new Set<string>();
  /** Files, subvolumes and pools. */
  readonly tree = new FakeFiles();

  /** Every file and folder by path, also those of pools that are not mounted. */
  get allFiles(): Map<string, StoredFile> {
    return this.tree.files;
  }

  /** Mounted disks whose rows cannot be read. */
  unreadablePools: readonly UnreadablePool[] = [];

  /** The mounted pools. */
  get pools(): Pool[] {
    return this.tree.pools;
  }

  set pools(pools: Pool[]) {
    this.tree.pools = pools;
  }

  /** Puts a disk and its image there, as if made by somebody else; with the subvolume that its path tells of. */
  put(disk: StoredVolume): void {
    this.disks.set(disk.id, disk);
    this.putImage(disk.imagePath, disk.sizeBytes);
  }

  /** Puts an image there, with the subvolume that its path tells of. */
  putImage(path: string, sizeBytes: bigint, subvolume: Partial<FakeSubvolume> = {}): void {
    const location = locationOf(path, this.pools).subvolume;
    if (location !== undefined) {
      this.tree.putSubvolume({ ...location, readOnly: false, parent: undefined, ...subvolume });
    }
    this.putFile(path, sizeBytes);
  }

  /** Puts a file there. */
  putFile(path: string, sizeBytes = 0n, directory = false): void {
    this.tree.putFile(path, sizeBytes, directory);
  }

  /** What is wrong with a file of that size which is new at the path. */
  overfilled(path: string, sizeBytes: bigint): readonly string[] {
    const freeBytes = this.pools.find(({ mountPoint }) => mountPoint === poolOf(path))?.freeBytes ?? 0n;
    return sizeBytes <= freeBytes ? [] : [`${path} needs ${sizeBytes} B, and ${freeBytes} B are free`];
  }

  /** Changes a disk behind everybody's back. */
  edit(id: string, change: Partial<StoredVolume>): void {
    const disk = this.disks.get(id);
    if (disk === undefined) throw new Error(`the test's router has no disk ${id}`);
    this.disks.set(id, { ...disk, ...change });
  }

  /** Everything that a changing call could have touched, to be compared. */
  snapshot(): unknown {
    return {
      disks: [...this.disks],
      files: [...this.allFiles],
      subvolumes: [...this.tree.subvolumes],
      hardware: [...this.hardware],
    };
  }
}
