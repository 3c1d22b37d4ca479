import { Refusal } from "../refusal.ts";

/** A Btrfs subvolume. A snapshot is one that has a parent. */
export interface Subvolume {
  readonly id: number;
  /** Label of the file system that it lies on. */
  readonly filesystem: string;
  readonly name: string;
  readonly parent: string;
  readonly readOnly: boolean;
}

/** The items of `/disk/btrfs/subvolume`. */
export class SubvolumeTable {
  readonly #subvolumes = new Map<number, Subvolume>();
  #nextId = 1;

  list(): readonly Subvolume[] {
    return [...this.#subvolumes.values()];
  }

  get(id: number): Subvolume | undefined {
    return this.#subvolumes.get(id);
  }

  find(filesystem: string, name: string): Subvolume | undefined {
    return this.list().find((other) => other.filesystem === filesystem && other.name === name);
  }

  /** @throws {Refusal} when the name is taken, or the parent is not there. */
  add(subvolume: Omit<Subvolume, "id">): Subvolume {
    const { filesystem, name, parent } = subvolume;
    if (this.find(filesystem, name) !== undefined) throw Refusal.alreadyHave("subvolume");
    if (parent !== "" && this.find(filesystem, parent) === undefined) throw Refusal.noMatch("parent");
    const added = { ...subvolume, id: this.#nextId++ };
    this.#subvolumes.set(added.id, added);
    return added;
  }

  remove(id: number): void {
    this.#subvolumes.delete(id);
  }
}
