import { assertRoom } from "../volume/capacity.ts";
import { assertGone } from "../volume/absence.ts";
import { assertNotForeign, assertOwned } from "../volume/ownership.ts";
import type { CallContext, StoredVolume } from "../volume/ports.ts";
import { formatComment, rewritten } from "../volume/record.ts";
import { assertSizeRange, chooseGrownSize, type SizeRange } from "../volume/sizes.ts";
import { assertOwnImage, imagePaths, notFound } from "./look.ts";
import { changeVolume } from "./outcome.ts";
import type { ControllerWorld } from "./world.ts";

/**
 * Grows a volume and returns its size as read back, in bytes; its present size when that is enough. Two commands; one
 * when there is nothing to do.
 *
 * @throws {VolumeError} not-found, out-of-range, exhausted, precondition, unavailable
 */
export async function expandVolume(
  world: ControllerWorld,
  id: string,
  range: SizeRange,
  context: CallContext,
): Promise<bigint> {
  assertSizeRange(range);
  const { settings, store } = world;
  const view = await store.createView(id, imagePaths(world, id), context);
  assertNotForeign(view.foreign, "expand");
  const found = view.volumes.find((volume) => volume.id === id);
  if (found === undefined) {
    assertGone(id, view, settings.basePaths, settings.settleMs);
    throw notFound("expand", id);
  }
  const { stored, comment, record } = assertOwned(found, settings.cluster, "expand");
  assertOwnImage(world, stored, "expand");
  const sizeBytes = chooseGrownSize(range, stored.sizeBytes);
  if (sizeBytes === stored.sizeBytes) return sizeBytes;
  assertRoom(view, stored.imagePath, sizeBytes - stored.sizeBytes, settings.overcommit);
  // The record changes too: a command that the router runs late, after a larger growth, must find nothing to shrink.
  const written = formatComment({ ...comment, record: rewritten(record) });
  const grown = (after: StoredVolume) => after.sizeBytes >= sizeBytes;
  const change = { sizeBytes, comment: written };
  return (await changeVolume(world, "expand", stored, change, grown, context)).sizeBytes;
}
