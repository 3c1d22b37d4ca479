import { VolumeError } from "../../src/volume/errors.ts";
import { parentFolder, poolOf } from "../../src/volume/ids.ts";
import type {
  CallContext,
  CreateView,
  Inventory,
  MutationOutcome,
  NewVolume,
  Pool,
  RouterState,
  StoredFile,
  StoredVolume,
  VolumeChange,
  VolumeStore,
  VolumeView,
} from "../../src/volume/ports.ts";
import type { FakeClock } from "./clock.ts";

/** The commands that a mishap can befall. */
export type StoreMethod = "view" | "createView" | "inventory" | "add" | "change" | "remove" | "probe";

/** How one command goes otherwise than well. */
export interface Mishap {
  /** What somebody else does just before the command runs. */
  readonly before?: () => void;
  /** What somebody else does between the command and the reading back. */
  readonly after?: () => void;
  /** Whether it takes effect; `half` removes the disk and leaves its image. @default {true without a refusal} */
  readonly runs?: boolean | "half";
  /** What the router says instead of running it. */
  readonly refusal?: string;
  /** Nothing can be read afterwards: the caller is not told whether it ran. */
  readonly unreadable?: boolean;
  /** How long it takes until it runs, in milliseconds; somebody has to move the clock. */
  readonly takesMs?: number;
  /** The router runs it only at {@linkcode FakeVolumeStore.runLate}. */
  readonly late?: boolean;
}

interface Reach {
  readonly imagePath: string;
  readonly nqn: string;
  readonly untilMs: number;
}

/** Whether a mutation took effect, or what the router said instead. */
type Effect = (half: boolean) => string | undefined;

/**
 * A router in memory: disks, files and pools, with the hazards of a real one on request. What must never happen it
 * does, as a real one would, and notes it in {@linkcode FakeVolumeStore.violations}.
 */
export class FakeVolumeStore implements VolumeStore {
  /** The file-backed disks by slot. */
  readonly disks = new Map<string, StoredVolume>();
  /** What else is in a slot: its kind. */
  readonly hardware = new Map<string, string>();
  /** Slots whose disks the router does not show (yet). */
  readonly hidden = new Set<string>();
  readonly files = new Map<string, StoredFile>();
  pools: Pool[] = [{
    mountPoint: "pool",
    filesystem: "btrfs",
    sizeBytes: 100n << 30n,
    freeBytes: 100n << 30n,
  }];
  /** How long an export can still be written through after it was withdrawn, in milliseconds. */
  lingerMs = 0;
  /** Every command, in order. */
  readonly calls: { readonly method: StoreMethod; readonly id: string }[] = [];
  /** Old data adopted, two ways to one image at once, disks made smaller, images gone while they could be reached. */
  readonly violations: string[] = [];

  readonly #clock: FakeClock;
  readonly #mishaps = new Map<StoreMethod, Mishap[]>();
  #late: (() => void)[] = [];
  #lingering: Reach[] = [];
  #bootedAtMs: number;

  constructor(clock: FakeClock, upMs = 86_400_000) {
    this.#clock = clock;
    this.#bootedAtMs = clock.now() - upMs;
  }

  /** Lets the next command of that kind, or the one after those already given, go wrong. */
  mishap(method: StoreMethod, mishap: Mishap): void {
    this.#mishaps.set(method, [...this.#mishaps.get(method) ?? [], mishap]);
  }

  /** Forgets the mishaps that have befallen nothing. */
  clearMishaps(): void {
    this.#mishaps.clear();
  }

  /** How many commands were sent since the last time this was asked. */
  takeCount(): number {
    return this.calls.splice(0).length;
  }

  /** Puts a disk and its image there, as if made by somebody else. */
  put(disk: StoredVolume): void {
    this.disks.set(disk.id, disk);
    this.putFile(disk.imagePath, disk.sizeBytes);
  }

  /** Puts a file there. */
  putFile(path: string, sizeBytes = 0n, directory = false): void {
    this.files.set(path, { path, sizeBytes, directory });
  }

  /** Changes a disk behind everybody's back. */
  edit(id: string, change: Partial<StoredVolume>): void {
    this.disks.set(id, { ...this.#disk(id), ...change });
  }

  /** Everything that a changing call could have touched, to be compared. */
  snapshot(): unknown {
    return { disks: [...this.disks], files: [...this.files], hardware: [...this.hardware] };
  }

  /** Restarts the router: uptime begins anew and nothing lingers. */
  reboot(): void {
    this.#bootedAtMs = this.#clock.now();
    this.#lingering = [];
  }

  /** Runs the commands that were held back. */
  runLate(): void {
    for (const run of this.#late.splice(0)) run();
  }

  /** NQNs under which somebody can write to an image right now. */
  reachable(imagePath: string): readonly string[] {
    const now = this.#clock.now();
    const exported = [...this.disks.values()].filter((disk) => disk.exported && disk.imagePath === imagePath);
    const lingering = this.#lingering.filter((reach) => reach.imagePath === imagePath && reach.untilMs > now);
    return [...new Set([...exported.map((disk) => disk.exportNqn), ...lingering.map((reach) => reach.nqn)])];
  }

  async view(id: string, imagePaths: readonly string[], context: CallContext): Promise<VolumeView> {
    await this.#read("view", id, context);
    return this.#look(id, imagePaths);
  }

  async createView(id: string, imagePaths: readonly string[], context: CallContext): Promise<CreateView> {
    await this.#read("createView", id, context);
    return this.#lookAtAll(id, imagePaths);
  }

  async inventory(context: CallContext): Promise<Inventory> {
    await this.#read("inventory", "", context);
    return { ...this.#state(), volumes: this.#shown() };
  }

  async probe(context: CallContext): Promise<void> {
    await this.#read("probe", "", context);
  }

  async add(volume: NewVolume, context: CallContext): Promise<MutationOutcome<CreateView>> {
    const refusal = await this.#mutate("add", volume.id, context, () => this.#add(volume));
    return { after: this.#lookAtAll(volume.id, [volume.imagePath, parentFolder(volume.imagePath)]), refusal };
  }

  async change(
    id: string,
    expectedComment: string,
    change: VolumeChange,
    context: CallContext,
  ): Promise<MutationOutcome<VolumeView>> {
    const refusal = await this.#mutate(
      "change",
      id,
      context,
      () => this.#change(id, expectedComment, change),
    );
    return { after: this.#look(id, this.disks.has(id) ? [this.#disk(id).imagePath] : []), refusal };
  }

  async remove(
    id: string,
    expectedComment: string | undefined,
    imagePath: string,
    context: CallContext,
  ): Promise<MutationOutcome<VolumeView>> {
    const effect: Effect = (half) => this.#remove(id, expectedComment, imagePath, half);
    const refusal = await this.#mutate("remove", id, context, effect);
    return { after: this.#look(id, [imagePath]), refusal };
  }

  async #read(method: StoreMethod, id: string, context: CallContext): Promise<void> {
    await this.#mutate(method, id, context, () => undefined);
  }

  async #mutate(
    method: StoreMethod,
    id: string,
    context: CallContext,
    effect: Effect,
  ): Promise<string | undefined> {
    context.signal.throwIfAborted();
    this.calls.push({ method, id });
    const mishap = this.#mishaps.get(method)?.shift() ?? {};
    mishap.before?.();
    if (mishap.takesMs !== undefined) await this.#clock.sleep(mishap.takesMs, context.signal);
    const runs = mishap.runs ?? mishap.refusal === undefined;
    let refusal = mishap.refusal;
    if (mishap.late) this.#late.push(() => effect(false));
    else if (runs !== false) refusal = effect(runs === "half") ?? refusal;
    mishap.after?.();
    if (this.#clock.now() > context.deadlineMs) throw new VolumeError("deadline", "Cannot wait any longer");
    if (mishap.unreadable) throw new VolumeError("unavailable", "Cannot read what became of the command");
    return refusal;
  }

  #add(volume: NewVolume): string | undefined {
    if (this.disks.has(volume.id) || this.hardware.has(volume.id)) return "failure: already have such disk";
    const folder = parentFolder(volume.imagePath);
    if (volume.makeFolder !== undefined) this.putFile(volume.makeFolder, 0n, true);
    const known = folder === `/${poolOf(folder)}` || this.files.get(folder)?.directory;
    if (!known) return "failure: no such directory";
    const { id, imagePath, sizeBytes, comment } = volume;
    if (this.files.has(imagePath)) this.violations.push(`${id} adopted the data in ${imagePath}`);
    this.put({ id, imagePath, sizeBytes, comment, exported: false, exportNqn: "", exportPort: 0 });
    return undefined;
  }

  #change(id: string, expectedComment: string, change: VolumeChange): undefined {
    const disk = this.disks.get(id);
    if (disk === undefined || this.hidden.has(id) || disk.comment !== expectedComment) return;
    const on = change.export
      ? { exported: true, exportNqn: change.export.nqn, exportPort: change.export.port }
      : {};
    const after = {
      ...disk,
      comment: change.comment ?? disk.comment,
      sizeBytes: change.sizeBytes ?? disk.sizeBytes,
      ...(change.export === false ? { exported: false } : on),
    };
    if (after.sizeBytes < disk.sizeBytes) this.violations.push(`${id} was made smaller`);
    if (disk.exported && (!after.exported || after.exportNqn !== disk.exportNqn)) this.#linger(disk);
    this.disks.set(id, after);
    const ways = this.reachable(disk.imagePath);
    if (after.exported && ways.length > 1) {
      this.violations.push(`${disk.imagePath} through ${ways.join(" and ")}`);
    }
  }

  #remove(id: string, expectedComment: string | undefined, imagePath: string, half: boolean): undefined {
    const disk = this.disks.get(id);
    const matches = disk !== undefined && !this.hidden.has(id) && disk.comment === expectedComment;
    if (matches) {
      if (disk.exported) this.#linger(disk);
      this.disks.delete(id);
    }
    const used = this.disks.has(id) ||
      [...this.disks.values()].some((other) => other.imagePath === imagePath);
    if (half || used || !this.files.has(imagePath)) return;
    if (this.reachable(imagePath).length > 0) {
      this.violations.push(`${imagePath} went while it could be reached`);
    }
    this.files.delete(imagePath);
  }

  #linger(disk: StoredVolume): void {
    const untilMs = this.#clock.now() + this.lingerMs;
    this.#lingering.push({ imagePath: disk.imagePath, nqn: disk.exportNqn, untilMs });
  }

  #look(id: string, imagePaths: readonly string[]): VolumeView {
    const shown = this.#shown();
    return {
      ...this.#state(),
      volume: shown.find((disk) => disk.id === id),
      foreign: this.#foreign(id),
      sharers: shown.filter((disk) => disk.id !== id && imagePaths.includes(disk.imagePath)),
      files: this.#shownFiles(imagePaths),
    };
  }

  #lookAtAll(id: string, imagePaths: readonly string[]): CreateView {
    return {
      ...this.#state(),
      volumes: this.#shown(),
      foreign: this.#foreign(id),
      files: this.#shownFiles(imagePaths),
    };
  }

  #state(): RouterState {
    return { pools: [...this.pools], upMs: this.#clock.now() - this.#bootedAtMs };
  }

  #shown(): StoredVolume[] {
    return [...this.disks.values()].filter((disk) => !this.hidden.has(disk.id))
      .toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  #shownFiles(imagePaths: readonly string[]): StoredFile[] {
    return [...this.files.values()].filter((file) =>
      imagePaths.includes(file.path) && this.pools.some((pool) => pool.mountPoint === poolOf(file.path))
    );
  }

  #foreign(id: string): { id: string; kind: string } | undefined {
    const kind = this.hardware.get(id);
    return kind === undefined ? undefined : { id, kind };
  }

  #disk(id: string): StoredVolume {
    const disk = this.disks.get(id);
    if (disk === undefined) throw new Error(`the test's router has no disk ${id}`);
    return disk;
  }
}
