import { poolOf } from "../../volume/model/ids/ids.ts";
import type { FileView, ImageLocation } from "../../volume/model/inventory.ts";
import { snapshotPart } from "../../volume/model/snapshots/snapshots.ts";
import type { MutationOutcome } from "../../volume/ports/store.ts";
import type { ControllerCall } from "../deps.ts";

/**
 * Removes the image of a snapshot. A removal whose end stays unknown is remembered: the router may still run it, and take
 * away what a later call answers.
 */
export async function removeSnapshotImage(
  call: ControllerCall,
  id: string,
  location: ImageLocation,
): Promise<MutationOutcome<FileView>> {
  let isOver = false;
  try {
    const outcome = await call.store.removeImage(location, snapshotPart(id), call.context);
    const { pools, files } = outcome.after;
    const isMounted = pools.some((pool) => pool.mountPoint === poolOf(location.path));
    isOver = outcome.ended && isMounted && !files.some((file) => file.path === location.path);
    return outcome;
  } finally {
    if (!isOver) call.memory.inDoubt.remember(id, location.path);
  }
}
