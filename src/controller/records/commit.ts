import type { StoredVolume } from "../../volume/model/inventory.ts";
import type { Premise } from "../../volume/ports/premise.ts";
import type { NotSent } from "../../volume/ports/not_sent.ts";
import type { Commit, Write } from "../../volume/ports/store.ts";
import type { ControllerCall } from "../deps.ts";

/**
 * Sends a write of a volume, once: only this changes disks on the router. From here on nothing is known of the volume, until it
 * is read back as wanted.
 *
 * A write that may still come is remembered with the comment that it expects. What the router said decides nothing: only a whole
 * answer is an end, or another comment, which the write no longer finds.
 *
 * @param before the disk whose comment the write expects; undefined for one that is added
 * @param premises all that the router compares, the comment too
 */
export async function commit(
  call: ControllerCall,
  before: StoredVolume | undefined,
  write: Write,
  premises: readonly Premise[] = before === undefined ? [] : [{ is: "comment", text: before.comment }],
): Promise<Commit | NotSent> {
  const { memory, store, context } = call;
  // An addition changes nothing of a volume that is there already.
  if (before === undefined) return await store.commit(write, premises, context);
  const { id, comment } = before;
  memory.known.forget(id);
  try {
    const outcome = await store.commit(write, premises, context);
    if ("notSent" in outcome || outcome.ended) return outcome;
    const found = outcome.after.volume?.comment ?? comment;
    if (found === comment) memory.inDoubt.remember(id, comment);
    return outcome;
  } catch (error) {
    memory.inDoubt.remember(id, comment);
    throw error;
  }
}
