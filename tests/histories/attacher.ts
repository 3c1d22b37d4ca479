import { listVolumes } from "../../src/controller/volumes/read.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import type { VolumeStore } from "../../src/volume/ports/store.ts";
import { publishedNodeIds } from "../../src/volume/rules/publish.ts";
import type { FakeClock } from "../fakes/clock.ts";
import type { FakeVolumeStore } from "../fakes/volume_store.ts";
import type { AttacherCall, ClusterObjects, Wish } from "./cluster_objects.ts";
import type { Controller } from "./controllers.ts";
import type { HistoryEvent } from "./events.ts";
import type { Process } from "./process.ts";
import { type CallStep, smooth, volumeNames } from "./schedule.ts";

/** How often an attacher compares its attachments with the list of volumes, in milliseconds. */
const intervalMs = 60_000;

/** What an attacher works with. */
interface AttacherParts {
  readonly clock: FakeClock;
  readonly store: FakeVolumeStore;
  readonly objects: ClusterObjects;
  readonly leader: () => Controller;
  readonly routerOf: (process: Process, signal: AbortSignal) => VolumeStore;
  readonly volumeIds: readonly string[];
  readonly record: (event: HistoryEvent) => void;
  /** Begins a call of the controller. */
  readonly asks: (call: CallStep) => void;
}

/** Asks again for what has failed, and for what the list of volumes does not confirm. */
export class Attacher {
  readonly #parts: AttacherParts;
  /** The attachments that a call is under way for, as `volume node`. */
  readonly #going = new Set<string>();
  #isOver = false;

  constructor(parts: AttacherParts) {
    this.#parts = parts;
  }

  /** It asks again every minute from now on, while other calls go on. */
  begin(): void {
    const { clock, objects, asks } = this.#parts;
    const again = async () => {
      const failed = objects.incomplete().map((wish) => this.#callFor(wish));
      const calls = [...await this.unconfirmed(), ...failed];
      for (const call of calls) if (!this.#isGoing(call)) asks(call);
    };
    const tick = () => {
      if (this.#isOver) return;
      if (!objects.isAway) void again();
      clock.timer(intervalMs, tick);
    };
    clock.timer(intervalMs, tick);
  }

  /** It asks for nothing more by itself. */
  end(): void {
    this.#isOver = true;
  }

  began({ verb, of, node }: AttacherCall): void {
    if (verb.endsWith("publish")) this.#going.add(`${of} ${node}`);
  }

  ended({ of, node }: AttacherCall): void {
    this.#going.delete(`${of} ${node}`);
  }

  #isGoing({ volume, node }: CallStep): boolean {
    return this.#going.has(`${this.#parts.volumeIds[volumeNames.indexOf(volume)]} ${node}`);
  }

  /**
   * Lists the volumes. Returns what an attacher asks again for: what is not listed on its node, and what is that was to leave
   * it; nothing when there is no list.
   */
  async unconfirmed(): Promise<readonly CallStep[]> {
    const { store, objects, leader, volumeIds, record } = this.#parts;
    const { process } = leader();
    if (process.isFrozen) return [];
    const isOff = (id: string) => store.disks.get(id)?.exported !== true;
    const off = new Set(volumeIds.filter(isOff));
    const death = new Promise<undefined>((resolve) => process.onDeath(() => resolve(undefined)));
    const nodesOf = await Promise.race([this.#list(), death]);
    if (nodesOf === undefined) return [];
    for (const of of off) {
      if (isOff(of) && nodesOf.get(of)?.length) {
        record({ kind: "router", line: `${of} was listed as published, and is not exported` });
      }
    }
    return objects.complete()
      .filter(({ volumeId, nodeName, verb }) =>
        (nodesOf.get(volumeId)?.includes(nodeName) ?? false) === (verb === "unpublish")
      ).map((wish) => this.#callFor(wish));
  }

  /** The nodes that each volume is listed on. */
  async #list(): Promise<ReadonlyMap<string, readonly string[]> | undefined> {
    const { leader, routerOf } = this.#parts;
    const { process, deps } = leader();
    const { signal } = new AbortController();
    const context = { requestId: "resync", signal, deadlineMs: process.clock.now() + smooth.timeoutMs };
    try {
      const volumes = await listVolumes({ ...deps, store: routerOf(process, signal) }, context);
      return new Map(volumes.map((volume) => [volume.stored.id, publishedNodeIds(volume)]));
    } catch (error) {
      if (VolumeError.is(error)) return undefined;
      throw error;
    }
  }

  #callFor({ volumeId, nodeName, verb }: Wish): CallStep {
    const volume = volumeNames[this.#parts.volumeIds.indexOf(volumeId)]!;
    return { ...smooth, step: verb, volume, node: nodeName };
  }
}
