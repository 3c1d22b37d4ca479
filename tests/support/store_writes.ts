import { VolumeError } from "../../src/volume/errors.ts";
import { locationOf } from "../../src/volume/model/layout.ts";
import type { ImageLocation, Inventory, VolumeView } from "../../src/volume/model/inventory.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import type { Premise } from "../../src/volume/ports/premise.ts";
import type {
  DiskGuard,
  KnownDisk,
  MutationOutcome,
  NewVolume,
  Unseen,
  VolumeChange,
  VolumeStore,
} from "../../src/volume/ports/store.ts";
import { ifSent, sent } from "../../src/volume/ports/not_sent.ts";
import {
  premisesToAdd,
  premisesToExport,
  premisesToGrow,
  premisesToRemove,
} from "../../src/controller/records/premises.ts";

type Outcome = MutationOutcome<VolumeView>;

/** Each kind of write that the controller commits, by name. The unseen ones return undefined where they were not sent. */
export interface StoreWrites {
  add(volume: NewVolume, context: CallContext): Promise<MutationOutcome<Inventory>>;
  addAlone(volume: NewVolume, context: CallContext): Promise<Outcome>;
  addUnseen(volume: NewVolume, unseen: Unseen, context: CallContext): Promise<Outcome | undefined>;
  change(id: string, comment: string, set: VolumeChange, context: CallContext): Promise<Outcome>;
  withdrawUnseen(
    disk: Pick<KnownDisk, "id" | "comment" | "imagePath">,
    set: VolumeChange,
    context: CallContext,
  ): Promise<Outcome | undefined>;
  exportUnseen(
    disk: Pick<KnownDisk, "id" | "comment" | "imagePath">,
    set: VolumeChange,
    filePrefix: string,
    context: CallContext,
  ): Promise<Outcome | undefined>;
  growUnseen(disk: KnownDisk, set: VolumeChange, context: CallContext): Promise<Outcome | undefined>;
  remove(
    disk: DiskGuard,
    location: ImageLocation,
    filePrefix: string,
    context: CallContext,
  ): Promise<Outcome>;
  removeUnseen(
    disk: DiskGuard,
    imagePath: string,
    unseen: Unseen,
    context: CallContext,
  ): Promise<Outcome | undefined>;
}

/** Gives a store its writes by name. */
export function withWrites<Store extends Pick<VolumeStore, "commit" | "lastPools">>(
  store: Store,
): Store & StoreWrites {
  const compared = ({ comment }: Pick<DiskGuard, "comment">): Premise[] => [{ is: "comment", text: comment }];
  const writes: StoreWrites = {
    async add(add, context) {
      const { after, ...end } = sent(await store.commit({ add, readsAll: true }, [], context));
      const { pools, upMs, all } = after;
      return { after: { volumes: all!, pools, upMs }, ...end };
    },
    addAlone: async (add, context) => sent(await store.commit({ add }, [], context)),
    async addUnseen(add, unseen, context) {
      const { filePrefix } = unseen;
      return ifSent(await store.commit({ add, filePrefix }, premisesToAdd(add.location, unseen), context));
    },
    change: async (id, comment, set, context) =>
      sent(await store.commit({ id, set }, compared({ comment }), context)),
    async withdrawUnseen(disk, set, context) {
      const premises: Premise[] = [...compared(disk), { is: "path-holds", text: disk.imagePath }];
      return ifSent(await store.commit({ id: disk.id, set }, premises, context));
    },
    async exportUnseen(disk, set, filePrefix, context) {
      const premises = premisesToExport(disk, filePrefix);
      return ifSent(await store.commit({ id: disk.id, set, filePrefix }, premises, context));
    },
    growUnseen: async (disk, set, context) =>
      ifSent(await store.commit({ id: disk.id, set }, premisesToGrow(disk), context)),
    remove: async (disk, remove, filePrefix, context) =>
      sent(await store.commit({ id: disk.id, remove, filePrefix }, compared(disk), context)),
    async removeUnseen(disk, imagePath, unseen, context) {
      const remove = locationIn(store, imagePath);
      if (remove === undefined) return undefined;
      const write = { id: disk.id, remove, filePrefix: unseen.filePrefix };
      return ifSent(await store.commit(write, premisesToRemove(disk, remove, unseen), context));
    },
  };
  return Object.assign(store, writes);
}

function locationIn(
  { lastPools }: Pick<VolumeStore, "lastPools">,
  imagePath: string,
): ImageLocation | undefined {
  try {
    return locationOf(imagePath, lastPools);
  } catch (error) {
    if (VolumeError.is(error, "unavailable")) return undefined;
    throw error;
  }
}
