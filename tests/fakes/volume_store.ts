import { timeLeftMs } from "../../src/async/deadline.ts";
import { clipBytes } from "../../src/simulator/bytes.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import { neverUsedMark } from "../../src/volume/model/layout.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import type {
  CreateView,
  FileView,
  ImageLocation,
  Inventory,
  Pool,
  RouterState,
  SourceQuery,
  SourceView,
  StoredVolume,
  VolumeView,
  Wanted,
} from "../../src/volume/model/inventory.ts";
import type { NotSent } from "../../src/volume/ports/not_sent.ts";
import type { Premise } from "../../src/volume/ports/premise.ts";
import {
  type Commit,
  type DiskGuard,
  type FolderChange,
  idOfWrite,
  type MutationOutcome,
  type NewFolder,
  type NewSubvolume,
  type NewVolume,
  type VolumeChange,
  type VolumeStore,
  type Write,
} from "../../src/volume/ports/store.ts";
import { anySnapshot } from "../../src/volume/model/snapshots/snapshots.ts";
import type { FakeClock } from "./clock.ts";
import { asListed, changedDisk, readable } from "./changed_disk.ts";
import { type Mishap, type StoreMethod, writeMethod } from "./mishap.ts";
import { assertCompared, holds } from "./premises.ts";
import { LingeringExports } from "./lingering.ts";
import { StoreContents } from "./store_contents.ts";

/** Whether a mutation took effect, or the router's message instead. */
type Effect = (half: boolean) => string | undefined;
/** What the router said of a command, and whether it has ended for certain. */
type End = Pick<MutationOutcome<unknown>, "refusal" | "ended">;

/**
 * A router in memory: disks, files and pools, with the faults of a real one on request. It does what must never happen,
 * like a real one, and records it in {@linkcode FakeVolumeStore.violations}.
 */
export class FakeVolumeStore extends StoreContents implements VolumeStore {
  /** Whether it refuses every new disk, after making its folder or subvolume. */
  refusesDisks = false;
  /** Whether it takes the size of a disk for what it was, and says nothing. */
  growsNothing = false;
  /** Whether it gives a disk that is exported a new size only while its export is turned off and on. */
  growsAfterToggle = false;
  /** How many bytes of a comment it keeps. */
  maxComment = Infinity;
  /** How long an export can still be written to after it was withdrawn, in milliseconds. */
  lingerMs = 0;
  /** Every command, in order. */
  readonly calls: { readonly method: StoreMethod; readonly id: string }[] = [];
  /**
   * Old data in a new disk, two paths to one image at once, disks made smaller, images removed while reachable, read-only
   * images exported or grown, incomplete copies used, more made than is free.
   */
  readonly violations: string[] = [];
  /** Whether any node was told of an NQN: nobody uses another one. */
  isTold: (nqn: string) => boolean = () => true;
  /** Called with the first answer after a reboot. */
  booted: () => void = () => {};
  /** Disks whose exports were toggled in one command. */
  readonly bounces: string[] = [];

  readonly #clock: FakeClock;
  readonly #mishaps = new Map<StoreMethod, Mishap[]>();
  #late: Effect[] = [];
  readonly #lingering = new LingeringExports();
  /** Copies during which the source changed or could, or that were not finished. */
  readonly #torn = new Set<string>();
  #bootedAtMs: number;
  #lastPools: readonly Pool[] | undefined;
  #hasBooted = false;

  constructor(clock: FakeClock, upMs = 1000 * 86_400_000) {
    super();
    this.#clock = clock;
    this.#bootedAtMs = clock.now() - upMs;
  }

  /** Lets the next command of that kind, or the one after those already given, go wrong. */
  mishap(method: StoreMethod, mishap: Mishap): void {
    this.#mishaps.set(method, [...this.#mishaps.get(method) ?? [], mishap]);
  }

  /** Forgets unused mishaps. */
  clearMishaps(): void {
    this.#mishaps.clear();
  }

  /** How many commands were sent since the last call. */
  takeCount(): number {
    return this.calls.splice(0).length;
  }

  /** Restarts the router: uptime begins anew and nothing lingers. */
  reboot(): void {
    this.#bootedAtMs = this.#clock.now();
    this.#hasBooted = true;
    this.#lingering.clear();
  }

  /** Runs the delayed commands. */
  runLate(): void {
    for (const run of this.#late.splice(0)) run(false);
  }

  /** NQNs under which an image can be written right now. */
  reachable(imagePath: string): readonly string[] {
    const exported = [...this.disks.values()].filter((disk) => disk.exported && disk.imagePath === imagePath);
    const lingering = this.#lingering.nqnsOf(imagePath, this.#clock.now());
    return [...new Set([...exported.map((disk) => disk.exportNqn), ...lingering])];
  }

  get lastPools(): readonly Pool[] {
    return this.#lastPools ?? this.pools;
  }

  async view(id: string, filePrefix: string, context: CallContext, folder = ""): Promise<VolumeView> {
    await this.#read("view", id, context);
    return { ...this.#check(id, filePrefix), files: this.tree.about({ id, filePrefix, folder }, undefined) };
  }

  async createView(wanted: Wanted | undefined, context: CallContext): Promise<CreateView> {
    await this.#read("createView", wanted?.id ?? "", context);
    return {
      ...this.#list(),
      foreign: wanted === undefined ? undefined : this.#foreign(wanted.id),
      files: this.tree.about(wanted, anySnapshot),
    };
  }

  async sourceView(wanted: Wanted, source: SourceQuery, context: CallContext): Promise<SourceView> {
    await this.#read("sourceView", wanted.id, context);
    return {
      ...this.#check(wanted.id, wanted.filePrefix),
      source: readable(this.#shown().find((disk) => "id" in source && disk.id === source.id)),
      files: this.tree.about(wanted, "part" in source ? source.part : undefined),
    };
  }

  async state(context: CallContext): Promise<RouterState> {
    await this.#read("state", "", context);
    return this.#state();
  }

  async poolHealth(context: CallContext): Promise<readonly Pool[]> {
    return (await this.inventory(context)).pools;
  }

  async inventory(context: CallContext): Promise<Inventory> {
    await this.#read("inventory", "", context);
    return this.#list();
  }

  async files(part: string, context: CallContext): Promise<FileView> {
    await this.#read("files", part, context);
    return this.#readFilesNow(part);
  }

  async filesAt(paths: readonly string[], context: CallContext): Promise<FileView> {
    await this.#read("filesAt", paths[0] ?? "", context);
    return { ...this.#state(), files: this.tree.shown().filter(({ path }) => paths.includes(path)) };
  }

  async probe(context: CallContext): Promise<void> {
    await this.#read("probe", "", context);
  }

  async commit(
    write: Write,
    premises: readonly Premise[],
    context: CallContext,
  ): Promise<Commit | NotSent> {
    const id = idOfWrite(write);
    assertCompared(write, premises);
    const isHeld = (premise: Premise) => holds(premise, { id, contents: this, upMs: this.#upMs });
    if (!premises.filter(({ is }) => is === "up-for").every(isHeld)) {
      return { notSent: new VolumeError("unavailable", "Cannot determine how long the router is up") };
    }
    const effect: Effect = (half) => this.#write(write, half, premises, isHeld);
    const method = writeMethod(write, premises);
    // One that was asked for any write becomes this one's.
    for (const mishap of this.#mishaps.get("commit")?.splice(0) ?? []) this.mishap(method, mishap);
    const end = await this.#mutate(method, id, context, effect);
    const after = this.#check(id, "remove" in write ? write.filePrefix : undefined);
    const all = "add" in write && write.readsAll ? { all: this.#list().volumes } : {};
    return { after: { ...after, ...all }, ...end };
  }

  #write(
    write: Write,
    half: boolean,
    premises: readonly Premise[],
    isHeld: (premise: Premise) => boolean,
  ): string | undefined {
    if ("remove" in write) {
      // The label is the image's alone, which goes after the disk.
      const areHeld = premises.filter(({ is }) => is !== "label-free").every(isHeld);
      const isAsked = premises.some(({ is }) => is === "alone");
      return areHeld || !isAsked ? this.#remove(write.id, write.remove, half, areHeld) : undefined;
    }
    if (!premises.every(isHeld)) return undefined;
    return "add" in write ? this.#add(write.add, half) : this.#change(write.id, write.set, half);
  }

  async removeImage(
    location: ImageLocation,
    part: string,
    context: CallContext,
  ): Promise<MutationOutcome<FileView>> {
    const end = await this.#mutate("removeImage", part, context, () => this.#removeImage(location));
    return { after: this.#readFilesNow(part), ...end };
  }

  async addSubvolume(
    subvolume: NewSubvolume,
    part: string,
    context: CallContext,
  ): Promise<MutationOutcome<Pick<FileView, "files">>> {
    const effect = () => this.tree.holding(part).length > 0 ? undefined : this.#addSubvolume(subvolume);
    const end = await this.#mutate("addSubvolume", part, context, effect);
    return { after: this.#readFilesNow(part), ...end };
  }

  async copyFile(
    from: string,
    to: string,
    context: CallContext,
    makeFolder?: NewFolder,
  ): Promise<{ readonly done: boolean; readonly refusal?: string }> {
    const before = this.tree.contents.get(from);
    const wasThere = this.allFiles.has(from);
    const isWritable = () =>
      this.disks.values().some((disk) =>
        disk.imagePath === from && (disk.exported || disk.routerUses !== undefined)
      );
    const wasWritable = isWritable();
    let done = false;
    const effect: Effect = (half) => {
      if (this.allFiles.has(to)) return;
      if (makeFolder !== undefined) this.tree.ensureFolder(makeFolder);
      if (!wasThere || this.allFiles.get(from)?.directory !== false) return "failure: no such item";
      if (!this.tree.hasFolderFor(to)) return "failure: no such directory";
      this.tree.copy(from, to);
      if (half || wasWritable || isWritable() || this.tree.contents.get(from) !== before) this.#torn.add(to);
      if (half) this.putFile(to, this.allFiles.get(to)!.sizeBytes / 2n);
      done = true;
    };
    try {
      const { refusal } = await this.#mutate("copyFile", to, context, effect);
      return refusal === undefined ? { done } : { done: false, refusal };
    } catch (error) {
      if (VolumeError.is(error, "unavailable")) return { done: false };
      throw error;
    }
  }

  async renameFile(
    from: string,
    to: string,
    guard: DiskGuard | undefined,
    part: string,
    context: CallContext,
  ): Promise<MutationOutcome<FileView>> {
    const end = await this.#mutate("renameFile", part, context, () => this.#rename(from, to, guard));
    return { after: this.#readFilesNow(part), ...end };
  }

  async changeFolders({ add, remove }: FolderChange, context: CallContext): Promise<string | undefined> {
    const effect: Effect = (half) => {
      let refusal: string | undefined;
      for (const path of add) {
        if (this.allFiles.has(path) || !this.tree.isMounted(path)) continue;
        if (this.tree.hasFolderFor(path)) this.putFile(path, 0n, true);
        else refusal ??= "failure: no such directory";
        if (half) return refusal;
      }
      for (const path of remove) {
        if (this.tree.holding(`${path}/`).length === 0) this.tree.removeFolder(path);
      }
      return refusal;
    };
    const { refusal, ended } = await this.#mutate("changeFolders", "", context, effect);
    return refusal ?? (ended ? undefined : "the router's answer was lost");
  }

  async #read(method: StoreMethod, id: string, context: CallContext): Promise<void> {
    await this.#mutate(method, id, context, () => undefined);
  }

  async #mutate(
    method: StoreMethod,
    id: string,
    context: CallContext,
    effect: Effect,
  ): Promise<End> {
    context.signal.throwIfAborted();
    this.calls.push({ method, id });
    const mishap = this.#mishaps.get(method)?.shift() ?? {};
    mishap.before?.();
    if (mishap.takesMs !== undefined) await this.#clock.sleep(mishap.takesMs, context.signal);
    const runs = mishap.runs ?? mishap.refusal === undefined;
    let refusal = mishap.refusal;
    if (mishap.late) this.#late.push(effect);
    else if (runs !== false) refusal = effect(runs === "half") ?? refusal;
    mishap.after?.();
    if (this.#hasBooted && !mishap.unreadable) {
      this.#hasBooted = false;
      this.booted();
    }
    if (timeLeftMs(context, this.#clock) < 0) throw new VolumeError("deadline", "Cannot wait any longer");
    if (mishap.unreadable) throw new VolumeError("unavailable", "Cannot read what became of the command");
    // Like the adapter: whatever the router said, nothing but a whole answer shows that the command is over.
    return { refusal, ended: refusal === undefined && runs === true && !mishap.late };
  }

  #add(volume: NewVolume, half: boolean): string | undefined {
    const { id, location, sizeBytes, comment, subvolume, copied } = volume;
    if (volume.makeFolder !== undefined) this.tree.ensureFolder(volume.makeFolder);
    const mark = subvolume?.parent === undefined ? undefined : neverUsedMark(location, comment);
    const refusal = subvolume === undefined ? undefined : this.#addSubvolume(subvolume, mark);
    if (refusal !== undefined || half) return refusal;
    // A disk that comes back late keeps its slot from nobody.
    const isLate = this.hidden.has(id) && this.tree.isMounted(location.path) &&
      this.allFiles.has(location.path);
    if (isLate && sizeBytes !== undefined) this.violations.push(`${id} adopted the data in ${location.path}`);
    if (this.disks.has(id) || this.hardware.has(id) || this.#isUsed(location)) return undefined;
    if (copied !== undefined && this.allFiles.has(location.path)) return undefined;
    if (copied !== undefined) this.#rename(copied.path, location.path, undefined);
    const there = this.allFiles.get(location.path);
    if (sizeBytes === undefined && there === undefined) return undefined;
    if (mark !== undefined && !this.tree.removeFolder(mark)) return undefined;
    if (this.refusesDisks) return "failure: no";
    if (!this.tree.hasFolderFor(location.path)) return "failure: no such directory";
    if (sizeBytes !== undefined && there !== undefined) {
      this.violations.push(`${id} adopted the data in ${location.path}`);
    }
    if (sizeBytes !== undefined) this.violations.push(...this.overfilled(location.path, sizeBytes));
    const image = { imagePath: location.path, sizeBytes: sizeBytes ?? there?.sizeBytes ?? 0n };
    this.disks.set(id, {
      id,
      ...image,
      comment: clipBytes(comment, this.maxComment),
      exported: false,
      exportNqn: "",
      exportPort: 0,
    });
    this.putFile(location.path, image.sizeBytes);
    return undefined;
  }

  #change(id: string, asked: VolumeChange, half: boolean): string | undefined {
    if (half && asked.bounce) {
      return this.#change(id, { export: false }, false) ?? "failure: not enough space";
    }
    const disk = this.disks.get(id)!;
    const { sizeBytes, ...rest } = asked;
    const isFixed = this.growsNothing || this.growsAfterToggle && disk.exported && !asked.bounce;
    const change: VolumeChange = isFixed || sizeBytes === undefined ? rest : asked;
    const changed = changedDisk(disk, change);
    const after = { ...changed, comment: clipBytes(changed.comment, this.maxComment) };
    const grows = after.sizeBytes > disk.sizeBytes;
    if (this.tree.subvolumeOf(disk.imagePath)?.readOnly && (after.exported || grows)) {
      this.violations.push(`${disk.imagePath} is read-only, and was ${grows ? "grown" : "exported"}`);
    }
    this.#resize(disk.imagePath, change.sizeBytes);
    if (after.sizeBytes < disk.sizeBytes) this.violations.push(`${id} was made smaller`);
    if (change.bounce) this.bounces.push(id);
    if (disk.exported && (!after.exported || after.exportNqn !== disk.exportNqn)) this.#linger(disk);
    this.disks.set(id, after);
    const ways = this.reachable(disk.imagePath).filter((nqn) => nqn === after.exportNqn || this.isTold(nqn));
    if (after.exported && ways.length > 1) {
      this.violations.push(`${disk.imagePath} through ${ways.join(" and ")}`);
    }
    return undefined;
  }

  /** The image gets the size that its disk is given, also where it was larger. */
  #resize(path: string, sizeBytes: bigint | undefined): void {
    const image = this.allFiles.get(path);
    if (sizeBytes === undefined || image === undefined) return;
    if (image.sizeBytes > sizeBytes) this.violations.push(`${path} was cut`);
    this.putFile(path, sizeBytes);
  }

  #remove(id: string, location: ImageLocation, half: boolean, isHeld: boolean): string | undefined {
    if (isHeld) {
      const disk = this.disks.get(id)!;
      if (disk.exported) this.#linger(disk);
      this.disks.delete(id);
    }
    return half || this.disks.has(id) ? undefined : this.#removeImage(location);
  }

  #removeImage(location: ImageLocation): string | undefined {
    if (this.#isUsed(location)) return undefined;
    const before = [...this.allFiles.keys()];
    const refusal = this.tree.remove(location);
    for (const path of before.filter((path) => !this.allFiles.has(path))) {
      if (this.reachable(path).some(this.isTold)) {
        this.violations.push(`${path} went while it could be reached`);
      }
      this.#torn.delete(path);
    }
    return refusal;
  }

  /** @param mark a folder to be made in it, if it is made */
  #addSubvolume(subvolume: NewSubvolume, mark?: string): string | undefined {
    if (!this.#holds(subvolume.guard)) return undefined;
    const refusal = this.tree.addSubvolume(subvolume);
    if (refusal === undefined && mark !== undefined) this.tree.putFile(mark, 0n, true);
    const folder = `${this.tree.folderOf(subvolume)}/`;
    const made = refusal !== undefined || subvolume.parent === undefined ? [] : this.tree.holding(folder);
    this.violations.push(...made.flatMap(({ path, sizeBytes }) => this.overfilled(path, sizeBytes)));
    return refusal;
  }

  #holds(guard: DiskGuard | undefined): boolean {
    return guard === undefined ||
      !this.hidden.has(guard.id) && this.disks.get(guard.id)?.comment === guard.comment;
  }

  #rename(from: string, to: string, guard: DiskGuard | undefined): undefined {
    if (!this.#holds(guard)) return;
    if (!this.tree.rename(from, to) || !this.#torn.delete(from)) return;
    if (this.#torn.add(to)) this.violations.push(`${to} is a copy that is not whole`);
  }

  /** Whether any disk is on the image, or in the subvolume. */
  #isUsed({ path, subvolume }: ImageLocation): boolean {
    const folder = subvolume === undefined ? undefined : `${this.tree.folderOf(subvolume)}/`;
    return [...this.disks.values()].some((disk) =>
      disk.imagePath === path || folder !== undefined && disk.imagePath.startsWith(folder)
    );
  }

  #linger(disk: StoredVolume): void {
    this.#lingering.add(disk, this.#clock.now() + this.lingerMs);
  }

  #check(id: string, filePrefix: string | undefined): VolumeView {
    const shown = this.#shown();
    return {
      ...this.#state(),
      volume: readable(shown.find((disk) => disk.id === id)),
      foreign: this.#foreign(id),
      sharers: shown.filter((disk) =>
        disk.id !== id && filePrefix !== undefined && disk.imagePath.includes(filePrefix)
      ),
      files: filePrefix === undefined ? [] : this.tree.holding(filePrefix),
    };
  }

  #list(): Inventory {
    return { ...this.#state(), volumes: this.#shown().map(asListed) };
  }

  #readFilesNow(part: string): FileView {
    return { ...this.#state(), files: this.tree.holding(part) };
  }

  #state(): RouterState {
    this.#lastPools = [...this.pools];
    const unreadable = this.unreadablePools;
    return {
      pools: this.#lastPools,
      ...unreadable.length === 0 ? {} : { unreadablePools: unreadable },
      upMs: this.#upMs,
    };
  }

  get #upMs(): number {
    return this.#clock.now() - this.#bootedAtMs;
  }

  #shown(): StoredVolume[] {
    return [...this.disks.values()].filter((disk) => !this.hidden.has(disk.id))
      .toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  #foreign(id: string): { id: string; kind: string } | undefined {
    return this.hardware.has(id) ? { id, kind: this.hardware.get(id)! } : undefined;
  }
}
