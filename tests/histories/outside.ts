import type { Pool, StoredVolume } from "../../src/volume/model/inventory.ts";
import type { FakeClock } from "../fakes/clock.ts";
import type { FakeVolumeStore } from "../fakes/volume_store.ts";
import type { Controllers } from "./controllers.ts";
import type { HistoryEvent } from "./events.ts";
import type { Hands } from "./hands.ts";
import type { HistoryNode } from "./node.ts";
import type { RouterImages } from "./router_images.ts";
import type { SharedVolumes } from "./shared_volumes.ts";
import {
  type BlankStep,
  type HandStep,
  maxForgets,
  type NoteStep,
  type OutsideStep,
  type RebootStep,
} from "./schedule.ts";

/** The parts that these steps change. */
export interface OutsideParts {
  readonly clock: FakeClock;
  readonly store: FakeVolumeStore;
  readonly images: RouterImages;
  readonly hands: Hands;
  readonly nodes: readonly HistoryNode[];
  readonly controllers: Controllers;
  readonly shared: SharedVolumes | undefined;
  readonly record: (event: HistoryEvent) => void;
  readonly advance: (ms: number) => Promise<void>;
  /** Whether a command that follows from a read may be under way for long. */
  readonly isSlow: () => boolean;
  /** Whether the volume is to be deleted. */
  readonly isUnwanted: (id: string) => boolean;
  /** Whether any node has an attachment of the volume, or waits for one. */
  readonly isWanted: (id: string) => boolean;
  readonly idOf: (volume: string) => string;
  /** Lets the cluster show no node id of a host, or show it again. */
  readonly name: (node: string, isNamed: boolean) => void;
  /** Lets two objects of the cluster name a volume, or one. */
  readonly nameTwice: (id: string, isTwice: boolean) => void;
}

/** What people and the router do by themselves. */
export class Outside {
  readonly #parts: OutsideParts;
  readonly #store: FakeVolumeStore;
  readonly #pools: readonly Pool[];
  /** The router's configuration before each of the last steps. */
  #configurations: ReadonlyMap<string, StoredVolume>[] = [];
  /** NQNs whose exports a person has turned on. */
  readonly #turnedOn = new Set<string>();

  constructor(parts: OutsideParts) {
    this.#parts = parts;
    this.#store = parts.store;
    this.#pools = parts.store.pools;
  }

  /** A step begins: a later one may bring the configuration of now back. */
  begins(): void {
    this.#configurations = [new Map(this.#store.disks), ...this.#configurations].slice(0, maxForgets + 1);
  }

  /** The router's configuration of some steps ago, or of the beginning. */
  #before(forgets: number): ReadonlyMap<string, StoredVolume> {
    return this.#configurations[forgets] ?? this.#configurations.at(-1)!;
  }

  async take(step: Exclude<OutsideStep, { readonly step: "resync" | "restore-cluster" }>): Promise<void> {
    const { advance, shared, controllers, clock, name, nameTwice, idOf } = this.#parts;
    if (step.step === "cut-router") return controllers.cutRouter(step.forMs);
    if (step.step === "forget-sizes") return await this.#forgetSizes(step.forgets);
    await advance(0);
    if (step.step === "unnamed") {
      name(step.node, false);
      clock.timer(step.forMs, () => name(step.node, true));
      return;
    }
    const id = idOf(step.volume);
    if (step.step === "named-twice") {
      nameTwice(id, true);
      clock.timer(step.forMs, () => nameTwice(id, false));
    } else if (step.step === "pod") shared?.pod(id, step);
    else if (step.step === "note") this.#note(id, step);
    else if (step.step === "hand") this.#hand(id, step);
    else this.#edit(id, step.exported);
  }

  #note(id: string, note: NoteStep): void {
    if (this.#parts.hands.note(id, note)) {
      this.#parts.record({ kind: "noted", of: id, isThere: note.before + note.after !== "" });
    }
  }

  /**
   * No controller can see two actions of a person (reference/limits.md), so they are left out. One is to turn an export
   * on between a read and a slow command that follows from it. The other is to turn it on and off again. An export of a
   * volume that is to be deleted is not turned on either.
   */
  #edit(id: string, exported: boolean): void {
    const { isSlow, isUnwanted, isWanted, hands, record } = this.#parts;
    const nqn = this.#store.disks.get(id)?.exportNqn ?? "";
    const isUnseen = exported ? isSlow() || isUnwanted(id) || hands.isAt(id) : this.#turnedOn.has(nqn);
    if (nqn === "" || isUnseen || this.#store.disks.get(id)?.exported === exported) return;
    if (exported) {
      // What a call has sent and given up comes before.
      this.#store.runLate();
      this.#turnedOn.add(nqn);
    }
    record({ kind: "edited", of: id, exported: exported ? nqn : undefined, wanted: isWanted(id) });
    this.#store.edit(id, { exported });
  }

  /**
   * What is done to a disk while a slow command is under way that follows from a read is not seen either, but that it is on
   * another file.
   */
  #hand(id: string, { what, forMs, leftMib }: HandStep): void {
    const { isSlow, controllers } = this.#parts;
    if (controllers.isCopying || isSlow() && what !== "other-file") return;
    const undo = this.#parts.hands.change(id, what, leftMib);
    if (undo !== undefined) this.#parts.clock.timer(forMs, undo);
  }

  /** The router restarts with some disks as large as they were. */
  async #forgetSizes(forgets: number): Promise<void> {
    const { store, images, hands, record, advance } = this.#parts;
    store.runLate();
    record({ kind: "rebooted", forgets: false });
    images.shrinkTo(this.#before(forgets));
    hands.shrunken();
    store.reboot();
    await advance(1_000);
  }

  /** The router makes the image of a volume anew. */
  blank({ volume }: BlankStep): void {
    const id = this.#parts.idOf(volume);
    const { nodes, isSlow, record, controllers } = this.#parts;
    const path = this.#store.disks.get(id)?.imagePath ?? "";
    const isHere = nodes.map((node) => node.state(id)).some(({ connected, staged }) =>
      staged || connected.length > 0
    );
    // A copy that is being made may have read it before.
    if (isHere || isSlow() || controllers.isCopying || !this.#store.tree.contents.has(path)) return;
    record({ kind: "blanked", of: id });
    this.#store.tree.contents.delete(path);
  }

  /** A command ends with the session that sent it. */
  async reboot({ forgets, disksAfterMs, poolsFirst }: RebootStep): Promise<void> {
    const { store, hands, clock, record, advance } = this.#parts;
    store.runLate();
    record({ kind: "rebooted", forgets: forgets > 0 });
    const before = this.#before(forgets);
    if (forgets > 0) {
      // An image that is aside goes back to its disk while that is there.
      hands.undo();
      store.disks.clear();
      for (const [id, disk] of before) store.disks.set(id, disk);
      hands.forgotten();
    }
    store.reboot();
    if (disksAfterMs > 0) {
      for (const id of store.disks.keys()) store.hidden.add(id);
      if (poolsFirst) store.tree.showsFiles = false;
      else store.pools = [];
      clock.timer(disksAfterMs, () => {
        store.hidden.clear();
        store.tree.showsFiles = true;
        store.pools = [...this.#pools];
      });
    }
    await advance(1_000);
  }
}
