import type { Clock, Random } from "../../volume/ports/system.ts";
import { formatUuid } from "../bytes.ts";
import type { FoundSubvolume } from "./backing.ts";
import { parentOf } from "./paths.ts";
import { addTo, removeFrom } from "./word_index.ts";

/** A Btrfs subvolume. */
export interface Subvolume {
  readonly id: number;
  /** Its path among the files: `<mount point>/<fullname>`; the mount point alone for the root of a file system. */
  readonly path: string;
  readonly readOnly: boolean;
  readonly uuid: string;
  /** UUID of the subvolume of which it is a snapshot, which may be gone; undefined when it is none. */
  readonly sourceUuid: string | undefined;
  /** The file system's own number of it. */
  readonly subvolumeId: number;
  readonly generation: number;
  readonly createdAtMs: number;
  /** Whether it is removed, and only its entry is still listed. */
  readonly dead: boolean;
}

/** The name of the root of a file system. */
export const rootName = "<FS_ROOT>";
const rootSubvolumeId = 5;

/** Whether it is the root of its file system, which always exists. */
export function isRoot({ path }: Subvolume): boolean {
  return !path.includes("/");
}

/** The last component of its path. */
export function nameOf(subvolume: Subvolume): string {
  return isRoot(subvolume) ? rootName : subvolume.path.slice(subvolume.path.lastIndexOf("/") + 1);
}

/** Its path within its file system. */
export function fullNameOf(subvolume: Subvolume): string {
  return isRoot(subvolume) ? rootName : subvolume.path.slice(subvolume.path.indexOf("/") + 1);
}

/** The subvolumes of all file systems: by path, by name and by the sources of snapshots. */
export class SubvolumeTable {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #subvolumes = new Map<number, Subvolume>();
  readonly #paths = new Map<string, number>();
  /** How many subvolumes lie below each path. */
  readonly #inside = new Map<string, number>();
  readonly #names = new Map<string, Set<number>>();
  readonly #snapshots = new Map<string, Set<number>>();
  readonly #uuids = new Map<string, number>();
  readonly #dead = new Map<number, Subvolume>();
  #nextId = 1;
  #nextSubvolumeId = 256;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Every subvolume, including the roots of file systems, by ascending id. */
  list(): readonly Subvolume[] {
    return [...this.#subvolumes.values()];
  }

  /** Those that are removed, but still listed. */
  get dead(): readonly Subvolume[] {
    return [...this.#dead.values()];
  }

  get(id: number): Subvolume | undefined {
    return this.#subvolumes.get(id);
  }

  find(path: string): Subvolume | undefined {
    return this.#subvolumes.get(this.#paths.get(path) ?? -1);
  }

  /** Those whose last component is `name`. */
  findByName(name: string): readonly Subvolume[] {
    return this.#of(this.#names.get(name));
  }

  findByUuid(uuid: string | undefined): Subvolume | undefined {
    return uuid === undefined ? undefined : this.#subvolumes.get(this.#uuids.get(uuid) ?? -1);
  }

  snapshotsOf(subvolume: Subvolume): readonly Subvolume[] {
    return this.#of(this.#snapshots.get(subvolume.uuid));
  }

  /** The innermost subvolume that contains a path; a subvolume does not contain itself. */
  containing(path: string): Subvolume | undefined {
    for (let outer = parentOf(path); outer !== ""; outer = parentOf(outer)) {
      const found = this.find(outer);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Whether some subvolume lies below a path. */
  isAbove(path: string): boolean {
    return this.#inside.has(path);
  }

  /** Adds the root of a file system, unless it exists. */
  ensureRoot(mountPoint: string): void {
    if (this.find(mountPoint) === undefined) this.#put(mountPoint, false, undefined, rootSubvolumeId);
  }

  /** @param source the subvolume of which it is a snapshot */
  add(path: string, readOnly: boolean, source: Subvolume | undefined): Subvolume {
    return this.#put(path, readOnly, source?.uuid, this.#nextSubvolumeId++);
  }

  /** Adds a subvolume from before the simulator's start. */
  adopt(path: string, { uuid, sourceUuid, readOnly }: FoundSubvolume): void {
    this.#put(path, readOnly, sourceUuid, this.#nextSubvolumeId++, uuid);
  }

  /** Makes a subvolume read-only, or writable. */
  setReadOnly(id: number, readOnly: boolean): void {
    const subvolume = this.#subvolumes.get(id);
    if (subvolume !== undefined) this.#subvolumes.set(id, { ...subvolume, readOnly });
  }

  /** @param deadMs for how long it is still listed, as a dead one */
  remove(id: number, deadMs = 0): void {
    const subvolume = this.#subvolumes.get(id);
    if (subvolume === undefined) return;
    this.#subvolumes.delete(id);
    if (deadMs > 0) {
      this.#dead.set(id, { ...subvolume, dead: true });
      this.#clock.timer(deadMs, () => this.#dead.delete(id));
    }
    this.#paths.delete(subvolume.path);
    this.#countInside(subvolume.path, -1);
    this.#uuids.delete(subvolume.uuid);
    removeFrom(this.#names, nameOf(subvolume), id);
    removeFrom(this.#snapshots, subvolume.sourceUuid ?? "", id);
  }

  #put(
    path: string,
    readOnly: boolean,
    sourceUuid: string | undefined,
    subvolumeId: number,
    uuid = formatUuid(this.#random.bytes(16)),
  ): Subvolume {
    const id = this.#nextId++;
    const createdAtMs = this.#clock.now();
    const generation = 10 + id;
    const subvolume: Subvolume = {
      id,
      path,
      readOnly,
      uuid,
      sourceUuid,
      subvolumeId,
      generation,
      createdAtMs,
      dead: false,
    };
    this.#subvolumes.set(id, subvolume);
    this.#paths.set(path, id);
    this.#countInside(path, 1);
    this.#uuids.set(uuid, id);
    addTo(this.#names, nameOf(subvolume), id);
    if (sourceUuid !== undefined) addTo(this.#snapshots, sourceUuid, id);
    return subvolume;
  }

  #countInside(path: string, more: 1 | -1): void {
    for (let outer = parentOf(path); outer !== ""; outer = parentOf(outer)) {
      const count = (this.#inside.get(outer) ?? 0) + more;
      if (count === 0) this.#inside.delete(outer);
      else this.#inside.set(outer, count);
    }
  }

  #of(ids: Iterable<number> | undefined): readonly Subvolume[] {
    return [...ids ?? []].flatMap((id) => this.#subvolumes.get(id) ?? []);
  }
}
