import { clipBytes } from "../../src/simulator/bytes.ts";
import { filePrefixOf } from "../../src/volume/model/image_names.ts";
import { promisedBytes } from "../../src/volume/rules/capacity.ts";
import type { Pool, StoredVolume } from "../../src/volume/model/inventory.ts";
import { parseComment } from "../../src/volume/model/record.ts";
import { gibibyte } from "../fakes/controller_deps.ts";
import { testBase, testCluster } from "../fakes/records.ts";
import type { FakeVolumeStore } from "../fakes/volume_store.ts";
import type { HandStep } from "./schedule.ts";

/** A note that a person wrote around a record. */
interface Note {
  readonly before: string;
  readonly after: string;
}

/** The slot of a disk that a person makes of a volume's image. */
const secondSlot = "by-hand";
/** The file that a person gives to a volume's disk. */
const othersImage = `${testBase}/${secondSlot}.img`;
/** What is done also to a disk that is exported: to its record, its row, its pool, or its slot. */
const everywhere: readonly HandStep["what"][] = [
  "filled",
  "scarce",
  "cut-record",
  "unreadable",
  "odd-row",
  "renamed",
];
/** What takes a disk away from its slot, or its image from the disk. */
const away: readonly HandStep["what"][] = ["renamed", "image-aside"];
/** What the router says of a disk that it has mounted. */
const mounted = "its file system is mounted";

/**
 * What people do to the router's disks, and what has to come of that: their notes stay, and no volume is given to a node while
 * something else uses its image.
 */
export class Hands {
  readonly #store: FakeVolumeStore;
  readonly #own: string | undefined;
  readonly #notes = new Map<string, Note>();
  /** The last note that was taken away, by volume: it does not come back. */
  readonly #takenAway = new Map<string, Note>();
  /** What takes a person's change back, by its kind and volume. */
  readonly #undo = new Map<string, () => void>();
  /** The same of all changes that were ever made. */
  readonly #undoAgain: (() => void)[] = [];
  /** The NQNs that nodes were given. An epoch that goes on keeps the size that it has. */
  readonly #given = new Set<string>();
  /** The same, but for epochs of which no node knows. */
  readonly #told = new Set<string>();
  #isScarce = false;
  /** How many subvolumes there were when the label was last free. */
  #subvolumes = 0;

  /** @param own the image of a volume that was there before, whatever its name */
  constructor(store: FakeVolumeStore, own?: string) {
    this.#store = store;
    this.#own = own;
  }

  /** Writes a note around the comment of a volume, or takes it away. Returns whether that was done. */
  note(id: string, note: Note): boolean {
    const disk = this.#store.disks.get(id);
    const isTakenAway = note.before === "" && note.after === "";
    const there = this.#notes.get(id);
    if (disk === undefined || isTakenAway !== (there !== undefined)) return false;
    if (this.#undo.has(`cut-record ${id}`) || !this.#isRecorded(disk)) return false;
    if (there === undefined) {
      const comment = note.before + disk.comment + note.after;
      if (clipBytes(comment, this.#store.maxComment) !== comment) return false;
      this.#store.edit(id, { comment });
      this.#notes.set(id, note);
      return true;
    }
    const { before, after } = there;
    this.#store.edit(id, { comment: disk.comment.slice(before.length, disk.comment.length - after.length) });
    this.#notes.delete(id);
    this.#takenAway.set(id, there);
    return true;
  }

  /** Changes a volume's disk, mostly unless it is exported. Returns what takes the change back. */
  change(id: string, what: HandStep["what"], leftMib = 0): (() => void) | undefined {
    const disk = this.#store.disks.get(id);
    const key = `${what} ${id}`;
    // A disk that nobody has imported yet is a person's anyway, whatever its file.
    const isOwn = disk !== undefined && this.#isRecorded(disk);
    if (!isOwn && what !== "odd-row" && what !== "unreadable") return;
    if (
      disk === undefined || disk.exported && !everywhere.includes(what) || this.#undo.has(key) ||
      this.#store.hidden.has(id)
    ) return;
    if (away.includes(what) && !this.#mayGoAway(disk, what)) return;
    if (this.#undo.has(`image-aside ${id}`)) return;
    const undo = this.#changed(disk, what, leftMib);
    const used = usedByHand(what, disk);
    const once = () => {
      if (!this.#undo.delete(key)) return;
      const isLost = used !== undefined && !this.#store.allFiles.has(used);
      if (isLost) this.#store.violations.push(`${used} went, and a person's disk used it`);
      undo();
    };
    this.#undo.set(key, once);
    this.#undoAgain.push(undo);
    return once;
  }

  /** Whether a disk can go to another slot, or, while no node has it, its image away: nothing else was done to it. */
  #mayGoAway({ id, imagePath, comment }: StoredVolume, what: HandStep["what"]): boolean {
    const { disks, allFiles } = this.#store;
    if (this.isAt(id)) return false;
    if (what === "image-aside") {
      const parsed = parseComment(comment);
      const isHeld = parsed.state === "record" && parsed.comment.record.holders.length > 0;
      return !isHeld && allFiles.has(imagePath);
    }
    return !disks.has(secondSlot);
  }

  /** Whether the driver has its record at the disk: one that was there before may have none. */
  #isRecorded({ comment }: StoredVolume): boolean {
    return this.#own === undefined || parseComment(comment).state === "record";
  }

  /** Whether the router has kept only the beginning of a volume's record. */
  isCut(id: string): boolean {
    const { disks, maxComment } = this.#store;
    const comment = disks.get(id)?.comment ?? "";
    return clipBytes(comment, maxComment - 1) !== comment && parseComment(comment).state === "damaged";
  }

  /** A call ended without trouble: a record of its that the router has cut is put back. */
  ended(id: string): void {
    if (this.isCut(id) && !this.isAt(id)) {
      this.#store.violations.push(`${id} was left with a record that the router cut`);
    }
  }

  /** Whether something that was done to the volume is not taken back yet. */
  isAt(id: string): boolean {
    return this.#undo.keys().some((key) => key.endsWith(` ${id}`));
  }

  #changed(disk: StoredVolume, what: HandStep["what"], leftMib: number): () => void {
    const store = this.#store;
    const { id, comment, imagePath, sizeBytes } = disk;
    const putBack = (was: Partial<StoredVolume>, back: Partial<StoredVolume>) => () => {
      const now = store.disks.get(id);
      const isSame = Object.entries(was).every(([key, value]) => now?.[key as keyof StoredVolume] === value);
      if (isSame) store.edit(id, back);
    };
    switch (what) {
      case "cut-record": {
        const cut = { comment: comment.slice(0, Math.floor(comment.length / 2)) };
        this.#notes.delete(id);
        store.edit(id, cut);
        return putBack(cut, { comment });
      }
      case "other-file": {
        const other = { imagePath: othersImage };
        store.putFile(other.imagePath, sizeBytes);
        store.edit(id, other);
        return () => {
          putBack(other, { imagePath })();
          store.allFiles.delete(other.imagePath);
        };
      }
      case "second-disk":
      case "copied":
        store.disks.set(secondSlot, { ...disk, id: secondSlot, comment: what === "copied" ? comment : "" });
        return () => store.disks.delete(secondSlot);
      case "renamed":
        return this.#rename(disk);
      case "image-aside":
        store.tree.putAside(imagePath);
        return () => store.tree.takeBack(imagePath, store.disks.get(id)?.imagePath === imagePath);
      case "mounted": {
        const use = { routerUses: [mounted] };
        store.edit(id, use);
        return () => {
          const { routerUses: _, ...now } = store.disks.get(id) ?? disk;
          if (store.disks.has(id)) store.disks.set(id, now);
        };
      }
      case "grown":
        return this.#grow(disk);
      case "unreadable":
        return this.#spoilRow(disk, { unreadable: "it has no size", sizeBytes: 0n, sizeUnknown: true });
      case "odd-row":
        return this.#spoilRow(disk, { unreadable: "its port is no number" });
      case "scarce":
        return this.#makeScarce(BigInt(leftMib) << 20n);
      case "filled":
      case "label-taken":
        return this.#changePools(what);
    }
  }

  #grow({ id, imagePath, sizeBytes }: StoredVolume): () => void {
    const store = this.#store;
    store.edit(id, { sizeBytes: 2n * sizeBytes });
    if (store.allFiles.has(imagePath)) store.putFile(imagePath, 2n * sizeBytes);
    const given = this.#given.size;
    // Where the router has forgotten it before a node got the volume, nothing needs the room.
    return () => {
      const isOfOldSize = store.disks.get(id)?.sizeBytes === sizeBytes && store.allFiles.has(imagePath);
      if (isOfOldSize && this.#given.size === given) store.putFile(imagePath, sizeBytes);
    };
  }

  #rename(disk: StoredVolume): () => void {
    const { disks } = this.#store;
    disks.delete(disk.id);
    disks.set(secondSlot, { ...disk, id: secondSlot });
    return () => {
      const renamed = disks.get(secondSlot);
      if (renamed?.imagePath !== disk.imagePath || disks.has(disk.id)) return;
      disks.delete(secondSlot);
      disks.set(disk.id, { ...renamed, id: disk.id });
    };
  }

  #spoilRow({ id, sizeBytes }: StoredVolume, odd: Partial<StoredVolume>): () => void {
    const store = this.#store;
    store.edit(id, odd);
    return () => {
      const there = store.disks.get(id);
      // It is spoiled in another way by now.
      if (there === undefined || there.unreadable !== odd.unreadable) return;
      const { unreadable: _, sizeUnknown: __, ...now } = there;
      store.disks.set(id, { ...now, sizeBytes: now.sizeBytes || sizeBytes });
    };
  }

  #changePools(what: "filled" | "label-taken"): () => void {
    const store = this.#store;
    const free = store.pools.map(({ freeBytes }) => freeBytes);
    if (what === "filled") {
      store.pools = store.pools.map((pool) => ({ ...pool, freeBytes: gibibyte / 2n }));
      return () => store.pools = store.pools.map((pool, index) => ({ ...pool, freeBytes: free[index]! }));
    }
    this.#subvolumes = store.tree.subvolumes.size;
    store.pools = store.pools.map((pool) =>
      pool.subvolumeLabel === undefined ? pool : { ...pool, labelTakenBy: secondSlot }
    );
    return () => store.pools = store.pools.map(({ labelTakenBy: _, ...pool }) => pool);
  }

  /** Lets so much more be promised on the pools. */
  #makeScarce(leftBytes: bigint): () => void {
    const store = this.#store;
    const sizes = store.pools.map(({ sizeBytes }) => sizeBytes);
    store.pools = store.pools.map((pool) => ({ ...pool, sizeBytes: this.#promised(pool) + leftBytes }));
    this.#isScarce = true;
    return () => {
      this.#isScarce = false;
      store.pools = store.pools.map((pool, index) => ({ ...pool, sizeBytes: sizes[index]! }));
    };
  }

  /** What is promised on a pool, but to the disks that a person makes of an image. */
  #promised(pool: Pool): bigint {
    const { disks, allFiles } = this.#store;
    const volumes = disks.values().filter(({ id }) => id !== secondSlot).toArray();
    return promisedBytes(pool, { volumes, files: [...allFiles.values()] });
  }

  /** A volume was made that was not there when that was asked for. */
  made(id: string): void {
    const { pools, violations } = this.#store;
    const isOver = this.#isScarce && pools.some((pool) => this.#promised(pool) > pool.sizeBytes);
    if (isOver) violations.push(`${id} was made, and the pool has no room for it`);
  }

  /** Takes back all changes but notes. */
  undo(): void {
    for (const once of this.#undo.values()) once();
  }

  /** Disks are smaller again. An epoch that has begun goes on, whether or not a node has got it yet. */
  shrunken(): void {
    for (const { exported, exportNqn } of this.#store.disks.values()) {
      if (exported) this.#given.add(exportNqn);
    }
  }

  /** The router has an earlier configuration: people take back what of their changes is in it. */
  forgotten(): void {
    this.#undo.clear();
    for (const undo of this.#undoAgain) undo();
    this.shrunken();
    this.#notes.clear();
    this.#takenAway.clear();
  }

  /** Reports what may not have happened since the last check. */
  observe(): void {
    const { disks, violations, pools, tree, maxComment } = this.#store;
    for (const [id, { before, after }] of this.#notes) {
      const comment = disks.get(id)?.comment;
      if (comment === undefined) this.#notes.delete(id);
      // A router that has kept its beginning may get back the comment of before.
      else if (clipBytes(comment, maxComment - 3) !== comment) continue;
      else if (!comment.startsWith(before) || !comment.endsWith(after)) {
        violations.push(`a person's note at ${id} is lost: ${comment}`);
      }
    }
    for (const [id, { before, after }] of this.#takenAway) {
      const comment = disks.get(id)?.comment;
      if (comment === undefined || this.#notes.has(id)) this.#takenAway.delete(id);
      // What is around it may be a longer note, which an earlier configuration has brought back.
      else if (
        before + after !== "" && comment.startsWith(`${before}{`) && comment.endsWith(`}${after}`)
      ) {
        violations.push(`a person's note at ${id} is back: ${comment}`);
      }
    }
    if (pools.some(({ labelTakenBy }) => labelTakenBy !== undefined)) {
      if (tree.subvolumes.size !== this.#subvolumes) {
        violations.push("subvolumes changed below a taken label");
      }
    }
  }

  /** A person's disk was imported. */
  imported(id: string): void {
    const { disks, violations } = this.#store;
    if (disks.get(id)?.unreadable !== undefined) {
      violations.push(`${id} was imported, and its row cannot be read`);
    }
  }

  /** Whether any node was told of that NQN, or has had it from the beginning. */
  isTold(nqn: string): boolean {
    return this.#own !== undefined || this.#told.has(nqn);
  }

  /** A node was given the volume under that NQN. */
  published(id: string, nqn: string): void {
    const { disks, violations, allFiles } = this.#store;
    this.#told.add(nqn);
    const disk = disks.get(id);
    if (disk?.exportNqn !== nqn) return;
    const isNew = !this.#given.has(nqn);
    this.#given.add(nqn);
    const { imagePath, sizeBytes } = disk;
    const others = disks.values().filter((one) => one.id !== id && one.imagePath === imagePath).toArray();
    if (others.length > 0) violations.push(`${id} was published, and ${others[0]!.id} has its image`);
    if (disk.routerUses !== undefined) violations.push(`${id} was published, and the router has it mounted`);
    if (isNew && imagePath !== this.#own && !allFiles.has(imagePath)) {
      violations.push(`${id} was published without its image`);
    }
    if (disk.unreadable !== undefined) {
      violations.push(`${id} was published, and its row cannot be read`);
    } else if (isNew && imagePath !== this.#own && sizeBytes < (allFiles.get(imagePath)?.sizeBytes ?? 0n)) {
      violations.push(`${id} was published smaller than its image`);
    }
    if (imagePath !== this.#own && !imagePath.includes(filePrefixOf(id, testCluster))) {
      violations.push(`${id} was published on ${imagePath}`);
    }
  }
}

/** The file that a person uses by a change until that is taken back; undefined for none. */
function usedByHand(what: HandStep["what"], { imagePath }: StoredVolume): string | undefined {
  if (what === "other-file") return othersImage;
  // The first file goes when its own change is taken back.
  const isSecond = what === "second-disk" || what === "copied";
  return isSecond && imagePath !== othersImage ? imagePath : undefined;
}
