import { fitsOneExec } from "../../src/routeros/console/exchange.ts";
import type { Fragment } from "../../src/routeros/console/command.ts";
import { writeStatements } from "../../src/routeros/store/mutations.ts";
import type { ImageLocation } from "../../src/volume/model/inventory.ts";
import type { Premise } from "../../src/volume/ports/premise.ts";
import type { DiskGuard, KnownDisk, NewVolume, VolumeChange } from "../../src/volume/ports/store.ts";
import { premisesToExport, premisesToGrow, premisesToRemove } from "../../src/controller/records/premises.ts";

/** What the driver sends for each kind of write. */
export function addStatements(add: NewVolume): Fragment[] {
  return writeStatements({ add }, []);
}

/** Empty where there is no room for the condition on the image. */
export function changeStatements(
  id: string,
  comment: string,
  { onImage, ...set }: VolumeChange & { readonly onImage?: string },
): Fragment[] {
  const image: Premise[] = onImage === undefined ? [] : [{ is: "path-holds", text: onImage }];
  const premises: readonly Premise[] = [{ is: "comment", text: comment }, ...image];
  const statements = writeStatements({ id, set }, premises);
  return onImage === undefined || fitsOneExec(statements, []) ? statements : [];
}

/** After a read. */
export function removeStatements({ id, comment }: DiskGuard, remove: ImageLocation): Fragment[] {
  return writeStatements({ id, remove, filePrefix: "" }, [{ is: "comment", text: comment }]);
}

/** Without a read, as the three below. */
export function unseenExportStatement(
  disk: Pick<KnownDisk, "id" | "comment" | "imagePath">,
  set: VolumeChange,
  filePrefix: string,
): Fragment {
  return writeStatements({ id: disk.id, set }, premisesToExport(disk, filePrefix))[0]!;
}

/** Grows a disk. */
export function unseenGrowthStatement(disk: KnownDisk, set: VolumeChange): Fragment {
  return writeStatements({ id: disk.id, set }, premisesToGrow(disk))[0]!;
}

/** Removes a disk and its image. */
export function unseenRemovalStatements(
  disk: DiskGuard,
  remove: ImageLocation,
  filePrefix: string,
): Fragment[] {
  const premises = premisesToRemove(disk, remove, { filePrefix, settleMs: 0 });
  return writeStatements({ id: disk.id, remove, filePrefix }, premises);
}
