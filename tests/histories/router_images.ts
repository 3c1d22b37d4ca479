import { VolumeError } from "../../src/volume/errors.ts";
import { isLegacyId } from "../../src/volume/model/ids/ids.ts";
import type { StoredVolume } from "../../src/volume/model/inventory.ts";
import type { FakeVolumeStore } from "../fakes/volume_store.ts";
import type { HistoryEvent } from "./events.ts";

/** The router's images as the nodes' kernels reach them, by NQN. */
export class RouterImages {
  readonly #store: FakeVolumeStore;
  readonly #record: (event: HistoryEvent) => void;
  /** Called after every action that may have changed something. */
  readonly observe: () => void;
  #formats = 0;
  /** The sizes of file systems by their image's path, where they are known. */
  readonly #filesystems = new Map<string, bigint>();
  /** The NQNs under which file systems were begun and not finished, by their image's path. */
  readonly #unfinished = new Map<string, string>();

  constructor(store: FakeVolumeStore, record: (event: HistoryEvent) => void, observe: () => void) {
    this.#store = store;
    this.#record = record;
    this.observe = observe;
  }

  /** The NQNs that the router offers. */
  exported(): string[] {
    return [...this.#store.disks.values()]
      .filter(({ id, exported }) => exported && !this.#store.hidden.has(id))
      .map(({ exportNqn }) => exportNqn);
  }

  /** Returns the NQNs under which an image can be written now. */
  open(path: string): string[] {
    return this.#store.reachable(path).filter((nqn) => !this.#isShut(nqn));
  }

  /** Whether a device connected under the NQN reaches an image. */
  isReachable(nqn: string): boolean {
    return this.#pathOf(nqn) !== undefined;
  }

  sizeOf(nqn: string): bigint | undefined {
    return this.#store.allFiles.get(this.#pathOf(nqn) ?? "")?.sizeBytes;
  }

  /** The size of the file system on the image; that of the image where nothing is known of it. */
  filesystemBytes(nqn: string): bigint | undefined {
    return this.#filesystems.get(this.#pathOf(nqn) ?? "") ?? this.sizeOf(nqn);
  }

  /** Disks that were smaller are so again, where that can be read. */
  shrinkTo(before: ReadonlyMap<string, StoredVolume>): void {
    for (const [id, { sizeBytes }] of before) {
      const now = this.#store.disks.get(id);
      if (now === undefined || now.unreadable !== undefined || sizeBytes >= now.sizeBytes) continue;
      this.#store.edit(id, { sizeBytes });
    }
  }

  /** Whether the file system on the image was made completely. */
  isComplete(nqn: string): boolean {
    return !this.#unfinished.has(this.#pathOf(nqn) ?? "");
  }

  /**
   * A node has made the file system completely: mkfs ends with what it wrote on the device.
   *
   * @throws {VolumeError} unavailable when the image cannot be reached
   */
  finished(nqn: string): void {
    this.#unfinished.delete(this.#reached(nqn));
  }

  /**
   * A node mounts the image.
   *
   * @throws {VolumeError} precondition when its file system was never finished
   */
  mounted(nqn: string): void {
    const beganAs = this.#unfinished.get(this.#pathOf(nqn) ?? "");
    if (beganAs === undefined) return;
    if (beganAs === nqn) {
      this.#record({ kind: "router", line: `${nqn} was mounted, and its file system is unfinished` });
    }
    throw new VolumeError("precondition", "Cannot mount it: bad superblock");
  }

  /** A node lets the file system fill the image. */
  grow(nqn: string): void {
    const path = this.#reached(nqn);
    this.#filesystems.set(path, this.#store.allFiles.get(path)!.sizeBytes);
    this.observe();
  }

  /** @throws {VolumeError} unavailable when the image cannot be reached */
  valueOf(nqn: string): string | undefined {
    return this.#store.tree.contents.get(this.#reached(nqn));
  }

  /** @throws {VolumeError} unavailable when the image cannot be reached */
  set(nqn: string, value: string | undefined): void {
    const path = this.#reached(nqn);
    if (value === undefined) this.#store.tree.contents.delete(path);
    else this.#store.tree.contents.set(path, value);
    this.observe();
  }

  /** Records a write of a workload. An unacknowledged write reaches the image later, or never. */
  wrote(node: string, nqn: string, value: string, acknowledged: boolean): void {
    this.#record({ kind: "write", node, of: volumeOf(nqn), value, acknowledged });
  }

  /** A node makes a file system, or wipes one. */
  format(node: string, nqn: string, wipes: boolean): void {
    const value = wipes ? undefined : `ext4-${++this.#formats}`;
    const path = this.#reached(nqn);
    this.#record({ kind: "format", node, of: volumeOf(nqn), value });
    this.set(nqn, value);
    this.grow(nqn);
    if (wipes) this.#unfinished.delete(path);
    else this.#unfinished.set(path, nqn);
  }

  /** Whether the disk that is exported as that does not show. */
  #isShut(nqn: string): boolean {
    return this.#store.hidden.size > 0 &&
      this.#store.disks.values().some(({ id, exportNqn }) => exportNqn === nqn && this.#store.hidden.has(id));
  }

  #reached(nqn: string): string {
    const path = this.#pathOf(nqn);
    if (path === undefined) throw new VolumeError("unavailable", `Cannot use ${nqn}: it does not answer`);
    return path;
  }

  #pathOf(nqn: string): string | undefined {
    if (this.#isShut(nqn)) return undefined;
    return this.#store.allFiles.keys().find((path) => this.#store.reachable(path).includes(nqn));
  }
}

/** Returns the volume of an NQN: `<prefix>:<volume>:<epoch>`; the legacy driver's has no epoch. */
function volumeOf(nqn: string): string {
  const [id, last] = nqn.split(":").slice(-2) as [string, string];
  return isLegacyId(last) ? last : id;
}
