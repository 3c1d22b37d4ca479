import { VolumeError } from "../volume/errors.ts";
import { parseEpoch } from "../volume/model/epoch.ts";
import { isLegacyId, nameDigest } from "../volume/model/ids/ids.ts";
import { volumeOfImage } from "../volume/model/image_names.ts";
import type { StoredVolume } from "../volume/model/inventory.ts";
import { clusterOfComment } from "../volume/model/record.ts";
import { importedSource, isImported } from "../volume/model/sources.ts";
import { assertSettled } from "../volume/rules/absence.ts";
import { assertReadable, judgeOwnership } from "../volume/rules/ownership.ts";
import type { ControllerCall } from "./deps.ts";
import { changedMeanwhile } from "./not_done.ts";
import type { View } from "./records/view.ts";

/**
 * Refuses to call a volume gone whose disk a person has given another slot: its data is there, and its export on as before. The
 * image of one that this driver made would be found by its name; that of an imported one has any name. One command.
 *
 * @param isNothing whether such a disk says nothing against that
 * @throws {VolumeError} precondition when there is such a disk; unavailable while it may come back late; busy when it got its slot
 * back meanwhile
 */
export async function assertInNoOtherSlot(
  call: ControllerCall,
  { id, volume }: View,
  verb: string,
  isNothing: (stored: StoredVolume) => boolean = () => false,
): Promise<void> {
  const inventory = await call.store.inventory(call.context);
  const { cluster, settleMs } = call.settings;
  assertSettled(inventory, settleMs);
  for (const stored of inventory.volumes) {
    if (stored.id === id && volume === undefined) throw changedMeanwhile(verb, id);
    if (stored.id === id) continue;
    const isIts = stored.exported ? isDiskOf(stored, id, cluster) : isImportedAs(stored, id, cluster);
    // It may be its disk, as far as anybody can tell.
    if (isIts === undefined) assertReadable(stored, verb);
    if (isIts !== true) continue;
    // The record may be lost or damaged. It still counts while it does not name another cluster, whose ids may be the same.
    if ((clusterOfComment(stored.comment) ?? cluster) !== cluster || isNothing(stored)) continue;
    const exported = stored.exported ? ` and is still exported: nqn=${stored.exportNqn}` : ":";
    throw new VolumeError(
      "precondition",
      `Cannot ${verb} the volume because its disk was given another slot${exported} volume=${id} slot=${stored.id}; ` +
        "give it its slot back",
    );
  }
}

/**
 * Whether a disk in any slot is that volume's, by the name of its export. Where that tells no volume, its image or its
 * record may. Undefined when neither does.
 */
export function isDiskOf(stored: StoredVolume, id: string, cluster: string): boolean | undefined {
  const named = volumeOfName(stored.exportNqn) ?? volumeOfImage(stored.imagePath, cluster);
  if (named !== undefined) return named === id;
  const ownership = judgeOwnership(stored, cluster);
  if (ownership.state !== "owned" || !isImported(ownership.volume.record)) return undefined;
  return ownership.volume.record.name === nameDigest(id);
}

/** Whether a disk was imported as that volume. Nothing else is sure of one that is off: a copy on another file has the same names. */
function isImportedAs(stored: StoredVolume, id: string, cluster: string): boolean {
  const ownership = judgeOwnership(stored, cluster);
  return ownership.state === "owned" &&
    ownership.volume.record.source === importedSource(id, stored.imagePath);
}

/**
 * The volume that is exported under that name in some epoch, or by the legacy driver, which had no epochs; undefined for
 * any other name.
 */
function volumeOfName(nqn: string): string | undefined {
  const [id, last = ""] = nqn.split(":").slice(-2);
  if (isLegacyId(last)) return last;
  return parseEpoch(last) === undefined ? undefined : id;
}
