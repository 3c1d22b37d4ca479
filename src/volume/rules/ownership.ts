import { VolumeError } from "../errors.ts";
import { isLegacyId } from "../model/ids/ids.ts";
import { filePrefixOf, isImageOf } from "../model/image_names.ts";
import type { ForeignDisk, StoredVolume } from "../model/inventory.ts";
import { type OwnedVolume, parseComment } from "../model/record.ts";

/** The owner of a disk. */
export type Ownership =
  | { readonly state: "owned"; readonly volume: OwnedVolume }
  | { readonly state: "other-cluster"; readonly cluster: string }
  | { readonly state: "no-record" }
  /** No record, and in everything else a volume of the legacy Go driver. */
  | { readonly state: "earlier-driver" }
  | { readonly state: "damaged"; readonly reason: string }
  /** The router's row of the disk cannot be read. It is in use, by whom it may be; `source` is what its record names. */
  | { readonly state: "unreadable"; readonly reason: string; readonly source: string | undefined };

/** Judges by the record alone; similar slots and paths do not count. */
export function judgeOwnership(stored: StoredVolume, cluster: string): Ownership {
  const parsed = parseComment(stored.comment);
  const record = parsed.state === "record" ? parsed.comment.record : undefined;
  if (record !== undefined && record.cluster !== cluster) {
    return { state: "other-cluster", cluster: record.cluster };
  }
  if (stored.unreadable !== undefined) {
    return { state: "unreadable", reason: stored.unreadable, source: record?.source };
  }
  if (parsed.state === "none") return { state: isOfLegacyDriver(stored) ? "earlier-driver" : "no-record" };
  if (parsed.state === "damaged") return { state: "damaged", reason: parsed.reason };
  return { state: "owned", volume: { stored, comment: parsed.comment, record: parsed.comment.record } };
}

/** The legacy driver left its mark in slot, path and NQN; a disk with all three is not a coincidence. */
function isOfLegacyDriver({ id, imagePath, exported, exportNqn }: StoredVolume): boolean {
  const named = exportNqn.endsWith(`:${id}`) || (!exported && exportNqn === "");
  return isLegacyId(id) && imagePath.endsWith(`/${id}.img`) && named;
}

/**
 * Returns the volume, for a call that is about to change it.
 *
 * @throws {VolumeError} precondition when it has no complete record of this cluster, or one that a newer version wrote
 */
export function assertOwned(stored: StoredVolume, cluster: string, verb: string): OwnedVolume {
  const volume = getOwned(stored, cluster, verb);
  const { newerFields } = volume.record;
  if (newerFields === undefined) return volume;
  throw new VolumeError(
    "precondition",
    `Cannot ${verb} the volume because a newer version of this driver wrote its record: ` +
      `volume=${stored.id} fields=${newerFields.map((field) => field.charAt(0)).join(", ")}; ` +
      "until that version runs again the volume can only be read and unpublished",
  );
}

/**
 * Returns the volume, for a call that reads it or takes it from its nodes. Its record may be a newer version's, so that
 * a node can give it up after a rollback.
 *
 * @throws {VolumeError} precondition when it has no complete record of this cluster; unavailable when the router's row
 * of its disk cannot be read
 */
export function getOwned(stored: StoredVolume, cluster: string, verb: string): OwnedVolume {
  assertReadable(stored, verb);
  const ownership = judgeOwnership(stored, cluster);
  switch (ownership.state) {
    case "owned":
      return ownership.volume;
    case "no-record":
      throw new VolumeError(
        "precondition",
        `Cannot ${verb} the volume because its disk carries no record of this driver: volume=${stored.id} ` +
          `path=${stored.imagePath}; the driver leaves it alone, unless "rds-csi import ${stored.id}", or ` +
          'static: "true" among the volumeAttributes of its PersistentVolume, makes it a volume',
      );
    case "earlier-driver":
      throw new VolumeError(
        "precondition",
        `Cannot ${verb} the volume because the legacy driver made it and this driver has not taken it over: ` +
          `volume=${stored.id} path=${stored.imagePath}; it is left alone until publishing it takes it over, where the ` +
          `cluster says who has it, or "rds-csi adopt ${stored.id}" does`,
      );
    case "other-cluster":
      throw new VolumeError(
        "precondition",
        `Cannot ${verb} the volume because it belongs to another cluster: volume=${stored.id} ` +
          `cluster=${ownership.cluster} this=${cluster}; check --cluster-id`,
      );
    case "unreadable":
    case "damaged":
      throw new VolumeError(
        "precondition",
        `Cannot ${verb} the volume because the record in its disk's comment is damaged: volume=${stored.id}: ` +
          `${ownership.reason}; restore the comment on the router from a backup or an export of its configuration`,
      );
  }
}

/**
 * Refuses a volume of which the router's row cannot be read: nothing may be concluded from the rest.
 *
 * @throws {VolumeError} unavailable
 */
export function assertReadable(stored: StoredVolume | undefined, verb: string): void {
  if (stored?.unreadable === undefined) return;
  throw new VolumeError(
    "unavailable",
    `Cannot ${verb} the volume because the router's row of its disk cannot be read: volume=${stored.id}: ` +
      `${stored.unreadable}; see /disk print detail on the router`,
  );
}

/** Whether an image has a name that only this cluster gives, in an allowed folder. */
export function isNamedAsOwn(
  { id, imagePath }: StoredVolume,
  cluster: string,
  basePaths: readonly string[],
): boolean {
  const inBase = basePaths.some((base) => imagePath.startsWith(`${base}/`));
  return inBase && isImageOf(imagePath, filePrefixOf(id, cluster));
}

/**
 * Refuses a slot that holds something other than a file-backed disk.
 *
 * @throws {VolumeError} precondition when there is such a disk
 */
export function assertNotForeign(foreign: ForeignDisk | undefined, verb: string): void {
  if (foreign === undefined) return;
  throw new VolumeError(
    "precondition",
    `Cannot ${verb} the volume because the router has something else in that slot: volume=${foreign.id} type=${foreign.kind}`,
  );
}
