import { filePrefixOf } from "../../volume/model/image_names.ts";
import type { ImageLocation, VolumeView } from "../../volume/model/inventory.ts";
import type { VolumeError } from "../../volume/errors.ts";
import type { OwnedVolume } from "../../volume/model/record.ts";
import { ifSent, sent } from "../../volume/ports/not_sent.ts";
import type { ControllerCall } from "../deps.ts";
import { failMutation } from "../not_done.ts";
import { commit } from "./commit.ts";
import { premisesOf } from "./premises.ts";
import type { Change } from "./steps.ts";

/** A disk that is to go, with its image. */
export interface Removal {
  readonly volume: OwnedVolume;
  readonly location: ImageLocation;
  /** Thrown where the disk is still there after a read. @default {busy or unavailable, saying that} */
  readonly otherwise?: VolumeError;
}

/** A disk that goes with its image. What is left of the volume then gives the answer. */
export function removing<Answer>(removal: Removal, answer: (left: VolumeView) => Answer): Change<Answer> {
  const { volume } = removal;
  return {
    kind: "remove",
    volume,
    send: async (call, verb, { id, isAssumed }) => {
      if (!isAssumed) return { answer: answer(await removed(call, verb, removal)) };
      const after = await removedUnread(call, removal);
      if (after === undefined) return {};
      return after.volume === undefined
        ? { answer: answer(after) }
        : { view: { ...after, id, isAssumed: false } };
    },
  };
}

/**
 * Removes the disk of a volume as it was read, with its image, and returns what is left of the volume. One command.
 *
 * @throws {VolumeError} busy or unavailable when the disk is still there
 */
async function removed(call: ControllerCall, verb: string, removal: Removal): Promise<VolumeView> {
  const { volume: { stored }, location: remove, otherwise } = removal;
  const { id, comment } = stored;
  const write = { id, remove, filePrefix: filePrefixOf(id, call.settings.cluster) };
  const { after, refusal } = sent(await commit(call, stored, write));
  if (after.volume === undefined) return forgotten(call, id, after);
  if (otherwise !== undefined) throw otherwise;
  return failMutation(verb, id, comment, after.volume, refusal);
}

/**
 * The same of a volume as it is remembered, if the router confirms what that claims. One command, or none: then undefined. The
 * disk may still be there; what is returned is all that a read shows.
 *
 * @throws {VolumeError} unavailable when what came of the command cannot be read
 */
async function removedUnread(
  call: ControllerCall,
  { volume: { stored: disk }, location }: Removal,
): Promise<VolumeView | undefined> {
  const { cluster, settleMs } = call.settings;
  const filePrefix = filePrefixOf(disk.id, cluster);
  const premises = premisesOf("remove", { disk, filePrefix, settleMs, location });
  if (premises === undefined) return undefined;
  const write = { id: disk.id, remove: location, filePrefix };
  const after = ifSent(await commit(call, disk, write, premises))?.after;
  return after?.volume === undefined ? after && forgotten(call, disk.id, after) : after;
}

/** What is left of a volume without its disk. Another one of its name may be smaller, and is not withdrawn. */
function forgotten({ memory }: ControllerCall, id: string, left: VolumeView): VolumeView {
  memory.forget(id);
  return left;
}
