import type { StoredVolume } from "../../volume/model/inventory.ts";
import type { Clock } from "../../volume/ports/system.ts";
import type { PromisedRoom } from "../volumes/promised_room.ts";
import { ChangesInDoubt } from "./in_doubt.ts";
import { KnownVolumes } from "./known_volumes.ts";
import { ExportsOff } from "./off_since.ts";

/**
 * What a controller remembers of the volumes of one router, by their ids. None of it is believed: it only says what need not be
 * read, what must be awaited, and what may still come. docs/internals/architecture.md has the reasons.
 */
export class VolumeMemory {
  /** The changes that were sent, and that may still come. */
  readonly inDoubt: ChangesInDoubt;
  /** The volumes as this process has read them back, and the latest epochs that the cluster knew. */
  readonly known: KnownVolumes;
  /** Since when exports are off. */
  readonly off: ExportsOff;

  /** @param alone whether no other controller changes volumes of this router while this one does */
  constructor(clock: Clock, alone: boolean) {
    this.inDoubt = new ChangesInDoubt(clock);
    this.known = new KnownVolumes(alone);
    this.off = new ExportsOff(clock);
  }

  /**
   * This process has written the record of a volume, and read it back: nothing that was sent earlier expects it.
   *
   * @param before the comment that it has changed; undefined for a volume that was added
   */
  wrote(stored: StoredVolume, before?: string): void {
    this.inDoubt.wrote(stored.id, stored.comment);
    this.known.remember(stored, before);
  }

  /** The volume is deleted. */
  forget(id: string): void {
    this.off.forget(id);
    this.known.forgetDeleted(id);
  }
}

/** What a lead uses of a controller's memory. */
interface Remembering {
  readonly memory: VolumeMemory;
  readonly promised: PromisedRoom;
}

/**
 * At the begin of a lead that another controller may have had before: commands that it has sent may still run, and its
 * promises and changes are unknown.
 */
export function distrust(deps: Remembering): void {
  deps.memory.inDoubt.suspectOthers();
  forget(deps);
}

/** When a lead that ran out goes on: nobody else has sent anything, but what is known may have aged meanwhile. */
export function forget({ memory, promised }: Remembering): void {
  promised.forget();
  memory.known.forgetAll();
}
