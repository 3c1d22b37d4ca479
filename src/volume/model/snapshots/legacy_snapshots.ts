import { VolumeError } from "../../errors.ts";
import { isLegacyId } from "../ids/ids.ts";
import type { StoredFile, StoredVolume, VolumeView } from "../inventory.ts";
import { parseComment } from "../record.ts";

/**
 * Snapshots of the legacy Go driver: disks that it had the router add with the properties of a volume's disk. According
 * to the router's manual that copies no data: there is nothing in them to restore.
 *
 * @module
 */

/** The page that explains them. */
export const legacySnapshotsPage = "docs/guides/from-the-go-driver.md";

/** `snap-<uuid>`, followed in newer versions by `-at-` and decimal or hexadecimal digits. */
const idForm =
  /^snap-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:-at-([0-9a-f]{1,32}))?$/;

/** The legacy driver does not exist for longer than this: 2025-01-01, in seconds since the Unix epoch. */
const firstSeconds = 1_735_689_600;

/** Whether the text has the form of the legacy driver's snapshot ids. No id of this driver has it. */
export function isLegacySnapshotId(id: string): boolean {
  return idForm.test(id);
}

/**
 * When a snapshot of the legacy driver was made, in seconds since the Unix epoch, if its id contains the time. One of
 * its versions put the time there. Others repeated the first digits of the uuid, which follow from a name.
 */
export function legacySnapshotTime(id: string, nowMs: number): number | undefined {
  const [, uuid = "", suffix = ""] = idForm.exec(id) ?? [];
  if (!/^[0-9]{10}$/.test(suffix) || uuid.replaceAll("-", "").startsWith(suffix)) return undefined;
  const seconds = Number(suffix);
  return seconds >= firstSeconds && seconds * 1000 <= nowMs ? seconds : undefined;
}

/**
 * Whether a disk is a snapshot of the legacy driver: it has that driver's slot, image and export name, and no record. A
 * disk that deviates in any of these belongs to somebody else.
 */
export function isLegacySnapshot(stored: StoredVolume, basePaths: readonly string[]): boolean {
  const { id, imagePath, comment } = stored;
  return isLegacySnapshotId(id) && basePaths.some((base) => imagePath === legacySnapshotImage(base, id)) &&
    parseComment(comment).state === "none" && isNamedAsLeft(stored);
}

/**
 * The legacy driver did not export its snapshots. An export was copied with the volume's properties, or is named after
 * the slot.
 */
function isNamedAsLeft({ id, exported, exportNqn }: StoredVolume): boolean {
  if (exportNqn === "") return !exported;
  return exportNqn.endsWith(`:${id}`) || isLegacyId(exportNqn.slice(exportNqn.lastIndexOf(":") + 1));
}

function legacySnapshotImage(base: string, id: string): string {
  return `${base}/${id}.img`;
}

/** Describes a snapshot of the legacy driver for people. */
export function describeLegacySnapshot({ exported, exportNqn }: StoredVolume): string {
  const named = exportNqn === "" ? "" : ` nqn=${exportNqn}`;
  return "a snapshot of the legacy driver, which holds no copy of a volume's data according to the router's manual: " +
    `exported=${exported}${named}`;
}

/** Why it is kept, and how a person removes it. */
export function whyLegacySnapshotKept(sharers: readonly Pick<StoredVolume, "id">[]): string {
  return `the legacy driver made it; ${howToRemove(sharers)}`;
}

function howToRemove(sharers: readonly Pick<StoredVolume, "id">[]): string {
  const users = sharers.map(({ id }) => id).join(", ");
  const what = sharers.length === 0
    ? "remove its disk entry on the router, and then its image"
    : `remove its disk entry on the router, and not its image, which other disks use: disk=${users}`;
  return `${what}: ${legacySnapshotsPage}`;
}

/**
 * Refuses a call about a snapshot of the legacy driver of which anything exists: a disk of any type in its slot, or a
 * file at its image's path.
 *
 * @param view a read of the slot and of everything with that name
 * @throws {VolumeError} precondition saying what it is, and what a person can do with it
 */
export function assertNoLegacySnapshot(
  verb: string,
  id: string,
  view: VolumeView,
  basePaths: readonly string[],
): void {
  const { volume, foreign, files } = view;
  const image = files.find((file) => isImage(file, id, basePaths));
  if (volume === undefined && foreign === undefined && image === undefined) return;
  const isLeft = volume === undefined ? foreign === undefined : isLegacySnapshot(volume, basePaths);
  if (!isLeft) {
    const { imagePath = "none" } = volume ?? {};
    throw new VolumeError(
      "precondition",
      `Cannot ${verb} the snapshot because the disk in its slot is not as the legacy driver leaves one: snapshot=${id} ` +
        `path=${imagePath}; check it by hand`,
    );
  }
  const path = volume?.imagePath ?? image?.path ?? "";
  const sharers = view.sharers.filter(({ imagePath }) => imagePath === path);
  throw new VolumeError(
    "precondition",
    `Cannot ${verb} the snapshot because the legacy driver made it, ` +
      `with a copy of a disk's properties and not of its data: snapshot=${id} ` +
      `disk=${volume?.id ?? "none"} path=${path}; nothing can be restored from it; ${howToRemove(sharers)}`,
  );
}

function isImage({ path, directory }: StoredFile, id: string, basePaths: readonly string[]): boolean {
  return !directory && basePaths.some((base) => path === legacySnapshotImage(base, id));
}

/** The error for a volume to be made from a snapshot of the legacy driver, whether that exists or not. */
export function noData(id: string): VolumeError {
  return new VolumeError(
    "precondition",
    "Cannot restore the snapshot because the legacy driver made it, with a copy of a disk's properties and not of its data: " +
      `snapshot=${id}; a volume made from it would hold nothing of what is missed; restore from a backup: ` +
      legacySnapshotsPage,
  );
}
