import type { Clock } from "../../volume/ports/system.ts";
import { type Disk, servedNqn } from "./disk.ts";
import { addTo, removeFrom, WordIndex } from "./word_index.ts";

/** Called with every change: a disk before and after it; undefined where it does not exist. */
export type DiskListener = (before: Disk | undefined, after: Disk | undefined) => void;

interface Change {
  readonly atMs: number;
  readonly id: number;
  readonly before: Disk | undefined;
}

const rememberedChanges = 10_000;

/**
 * The items of `/disk`: by id, by slot, by backing file and by served NQN. Its history allows the last few seconds to
 * be lost again. No read or change of one disk reads all.
 */
export class DiskTable {
  readonly #clock: Clock;
  readonly #listener: DiskListener;
  #disks = new Map<number, Disk>();
  /** All ids, ascending. */
  #ids: number[] = [];
  readonly #slots = new Map<string, number>();
  readonly #paths = new Map<string, Set<number>>();
  readonly #pathWords = new WordIndex<number>();
  readonly #served = new Map<string, Set<number>>();
  /** Those with a file system, and those with properties of their own. */
  readonly #special = new Set<number>();
  #changes: Change[] = [];
  #list: readonly Disk[] | undefined;
  #nextId = 1;
  readonly #whyHidden = new Set<string>();
  readonly #hiddenMounts = new Set<string>();

  constructor(clock: Clock, listener: DiskListener) {
    this.#clock = clock;
    this.#listener = listener;
  }

  /** Every visible disk, by ascending id. */
  list(): readonly Disk[] {
    this.#list ??= [...this.#disks.values()].filter((disk) => this.#shows(disk));
    return this.#list;
  }

  /** The number of a visible disk: how many visible ones are before it. */
  numberOf(id: number): number {
    if (this.#whyHidden.size > 0 || this.#hiddenMounts.size > 0) {
      return this.list().findIndex((disk) => disk.id === id);
    }
    return this.#rank(id);
  }

  /** How many ids are smaller. */
  #rank(id: number): number {
    let [low, high] = [0, this.#ids.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#ids[middle]! < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  get(id: number): Disk | undefined {
    return this.#visible(this.#disks.get(id));
  }

  findBySlot(slot: string): Disk | undefined {
    return this.#visible(this.#disks.get(this.#slots.get(slot) ?? -1));
  }

  findByPath(filePath: string): readonly Disk[] {
    return this.#of(this.#paths.get(filePath));
  }

  /** Those whose file's path a pattern can match, and maybe others; undefined without such an index. */
  findByPathPattern(pattern: string): readonly Disk[] | undefined {
    const ids = this.#pathWords.among(pattern);
    return ids === undefined ? undefined : this.#of([...ids, ...this.#special]);
  }

  /** Those whose file is at a path or below it, including hidden ones. */
  listUsing(path: string): readonly Disk[] {
    const below = this.#pathWords.among(`^${path.replaceAll(".", "[.]")}/`) ?? this.#disks.keys();
    const ids = new Set([...this.#paths.get(path) ?? [], ...below]);
    return [...ids].map((id) => this.#disks.get(id)!)
      .filter(({ filePath }) => filePath === path || filePath.startsWith(`${path}/`));
  }

  /** Those that are served under an NQN. */
  findServed(nqn: string): readonly Disk[] {
    return this.#of(this.#served.get(nqn));
  }

  /** Those that can be mounted: the only ones with a file system, or with properties of their own. */
  special(): readonly Disk[] {
    return this.#of([...this.#special].toSorted((a, b) => a - b));
  }

  /** Whether a slot is taken, also by a hidden disk. */
  isTaken(slot: string): boolean {
    return this.#slots.has(slot);
  }

  /** Adds a disk under the next id. */
  add(disk: Omit<Disk, "id">): Disk {
    const added = { ...disk, id: this.#nextId++ };
    this.#put(added.id, added);
    return added;
  }

  /** Replaces the disk of that id. */
  replace(disk: Disk): void {
    this.#put(disk.id, disk);
  }

  remove(id: number): void {
    this.#put(id, undefined);
  }

  /** Marks the present state as saved: no power cut undoes it. */
  save(): void {
    this.#changes = [];
  }

  /** Undoes every change since a time, newest first, as a power cut does with unsaved configuration. */
  forgetSince(sinceMs: number): void {
    const lost = this.#changes.filter((change) => change.atMs > sinceMs).reverse();
    for (const { id, before } of lost) this.#put(id, before);
    this.#changes = [];
  }

  /** Gives every disk a new id, in the order of `rank`. */
  renumber(rank: (disk: Disk) => number): void {
    const before = [...this.#disks.values()];
    const ordered = before.toSorted((a, b) => rank(a) - rank(b) || a.id - b.id);
    this.#disks = new Map(ordered.map((disk, index) => [index + 1, { ...disk, id: index + 1 }]));
    this.#ids = [...this.#disks.keys()];
    this.#nextId = ordered.length + 1;
    this.#changes = [];
    for (const disk of before) this.#unindex(disk);
    for (const disk of this.#disks.values()) this.#index(disk);
    this.#list = undefined;
  }

  /** Hides the file disks for a reason, or shows them again if there is no other reason. */
  hideFiles(reason: "late" | "without package", hidden: boolean): void {
    this.#rehide(() => hidden ? this.#whyHidden.add(reason) : this.#whyHidden.delete(reason));
  }

  /** Hides the disks whose files lie on a pool, or shows them again. */
  hideOn(mountPoint: string, hidden: boolean): void {
    this.#rehide(() => hidden ? this.#hiddenMounts.add(mountPoint) : this.#hiddenMounts.delete(mountPoint));
  }

  #rehide(change: () => void): void {
    const before = new Set(this.list());
    change();
    this.#list = undefined;
    for (const disk of this.#disks.values()) {
      const [was, is] = [before.has(disk), this.#shows(disk)];
      if (was !== is) this.#listener(was ? disk : undefined, is ? disk : undefined);
    }
  }

  #put(id: number, after: Disk | undefined): void {
    const before = this.#disks.get(id);
    this.#changes.push({ atMs: this.#clock.now(), id, before });
    if (this.#changes.length > 2 * rememberedChanges) this.#changes = this.#changes.slice(-rememberedChanges);
    if (before !== undefined) this.#unindex(before);
    if (after === undefined) this.#disks.delete(id);
    else this.#disks.set(id, after);
    if (before === undefined && after !== undefined) this.#ids.splice(this.#rank(id), 0, id);
    if (before !== undefined && after === undefined) this.#ids.splice(this.#rank(id), 1);
    if (after !== undefined) this.#index(after);
    if (after !== undefined && before === undefined) this.#sort(id);
    this.#list = undefined;
    this.#listener(this.#visible(before), this.#visible(after));
  }

  /** A disk that comes back returns to the position of its id. */
  #sort(id: number): void {
    if (id === this.#nextId - 1) return;
    this.#disks = new Map([...this.#disks].toSorted(([a], [b]) => a - b));
  }

  #index(disk: Disk): void {
    this.#slots.set(disk.slot, disk.id);
    if (disk.pool !== undefined || Object.keys(disk.extra).length > 0) this.#special.add(disk.id);
    const nqn = servedNqn(disk);
    if (nqn !== undefined) addTo(this.#served, nqn, disk.id);
    if (disk.filePath === "") return;
    addTo(this.#paths, disk.filePath, disk.id);
    this.#pathWords.add(disk.id, disk.filePath);
  }

  #unindex(disk: Disk): void {
    if (this.#slots.get(disk.slot) === disk.id) this.#slots.delete(disk.slot);
    this.#special.delete(disk.id);
    removeFrom(this.#served, servedNqn(disk) ?? "", disk.id);
    if (disk.filePath === "") return;
    removeFrom(this.#paths, disk.filePath, disk.id);
    this.#pathWords.remove(disk.id, disk.filePath);
  }

  #of(ids: Iterable<number> = []): readonly Disk[] {
    return [...ids].flatMap((id) => this.get(id) ?? []);
  }

  #shows(disk: Disk): boolean {
    if (disk.filePath === "") return true;
    if (this.#whyHidden.size > 0) return false;
    return this.#hiddenMounts.size === 0 || !this.#hiddenMounts.has(disk.filePath.split("/")[1]!);
  }

  #visible(disk: Disk | undefined): Disk | undefined {
    return disk !== undefined && this.#shows(disk) ? disk : undefined;
  }
}
