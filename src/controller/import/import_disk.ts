import { assertImportable, type ImportClaim, importedComment } from "../../volume/rules/import.ts";
import { VolumeError } from "../../volume/errors.ts";
import { judgeOwnership } from "../../volume/rules/ownership.ts";
import type { CreateView, StoredVolume } from "../../volume/model/inventory.ts";
import { formatComment } from "../../volume/model/record.ts";
import { changeByRule, type Decision } from "../records/loop.ts";
import { type Mark, marking } from "../records/mark.ts";
import { isExportedAs } from "../records/steps.ts";
import { readSlot, type View } from "../records/view.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/**
 * Imports a disk without a record for a call that is going to change it; undefined where there is a record, or the earlier
 * driver made it. No command then, else two.
 *
 * @returns the disk as it is now
 * @throws {VolumeError} precondition on any doubt, or when the record does not fit; busy or unavailable
 */
export async function importFirst(
  call: ControllerCall,
  first: View,
  stored: StoredVolume,
  claim: ImportClaim,
): Promise<StoredVolume | undefined> {
  const { id, imagePath } = stored;
  if (judgeOwnership(stored, call.settings.cluster).state !== "no-record") return undefined;
  // The disk of that name which was meant is on another router.
  call.misplaced?.assertNotSeen(call.settings.cluster, id, "import");
  assertMayBeImported(call, stored, claim, await readAround(call, id, imagePath));
  const rule = async (): Promise<Decision<StoredVolume>> => {
    return marking(call, await importing(call, stored, claim), (after) => after);
  };
  return await changeByRule(call, { id, verb: "import", first, read: () => readSlot(call, id) }, rule);
}

/** Everything that could use an image, and the image. One command. */
export async function readAround(call: ControllerCall, id: string, imagePath: string): Promise<CreateView> {
  return await call.store.createView({ id, filePrefix: imagePath, folder: "" }, call.context);
}

/** Refuses a disk that leaves a doubt, see {@linkcode assertImportable}. @throws {VolumeError} precondition, unavailable */
export function assertMayBeImported(
  { settings }: ControllerDeps,
  stored: StoredVolume,
  claim: ImportClaim,
  around: CreateView,
): void {
  assertImportable(stored, claim, { ...settings, ...around });
}

/**
 * The record of a disk that was found importable. Nothing else of the disk changes, but that the router mounts nothing in it any
 * more.
 *
 * @throws {VolumeError} precondition when the record does not fit beside the note; unavailable when the cluster does not answer
 */
export async function importing(
  call: ControllerCall,
  disk: StoredVolume,
  claim: ImportClaim,
): Promise<Mark> {
  const { id, imagePath, sizeBytes } = disk;
  const isAsSeen = isExportedAs(disk);
  return {
    kind: "mark",
    disk,
    comment: await firstComment(call, disk, claim),
    // Whoever makes a disk by hand gets one that the router mounts as soon as it knows what is in it.
    change: { neverMounted: true },
    isDone: (after) =>
      after.imagePath === imagePath && after.sizeBytes === sizeBytes && isAsSeen(after) &&
      after.routerUses === undefined,
    // With the record its next publish would take the disk from whoever began to use it just now.
    otherwise: new VolumeError(
      "busy",
      `Cannot import the disk because it was changed at the same time: volume=${id}; check it, and try again`,
    ),
  };
}

/**
 * The comment that makes a disk a volume, with the record beside the note. Its next epoch is later than the last one that a node
 * was given by a record which the router does not have any more.
 *
 * @throws {VolumeError} precondition when it does not fit; unavailable when the cluster does not answer
 */
export async function firstComment(
  { clock, random, clusterView, settings, context }: ControllerCall,
  disk: Pick<StoredVolume, "id" | "imagePath" | "comment">,
  claim: ImportClaim,
): Promise<string> {
  const forgotten = await clusterView?.latestEpoch(disk.id, context) ?? 0;
  const now = { nowMs: clock.now(), random };
  return formatComment(importedComment(disk, claim, settings.cluster, forgotten, now));
}
