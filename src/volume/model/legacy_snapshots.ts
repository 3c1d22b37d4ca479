import { VolumeError } from "../errors.ts";
import { isLegacyId } from "./ids.ts";
import type { StoredFile, StoredVolume, VolumeView } from "./inventory.ts";
import { parseComment } from "./record.ts";

/**
 * Snapshots of the legacy Go driver: disks that it had the router add with the properties of a volume's disk. Its data is
 * not copied with them, as far as the router's manual tells: there is nothing in them to restore.
 *
 * @module
 */

/** Where a person reads on. */
export const legacySnapshotsPage = "docs/guides/from-the-go-driver.md";

/** `snap-<uuid>`, and behind it in newer versions `-at-` and decimal or hexadecimal digits. */
const idForm =
  /^snap-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:-at-([0-9a-f]{1,32}))?$/;

/** The legacy driver is no older: 2025-01-01, in seconds since the Unix epoch. */
const firstSeconds = 1_735_689_600;

/** Whether it has the form of the legacy driver's snapshot ids. No id of this driver has. */
export function isLegacySnapshotId(id: string): boolean {
  return idForm.test(id);
}

/**
 * When a snapshot of the legacy driver was made, in seconds since the Unix epoch, where its id tells: one of its versions
 * put the time there. Others put the first digits of the uuid there once more, which follow from a name.
 */
export function legacySnapshotTime(id: string, nowMs: number): number | undefined {
  const [, uuid = "", suffix = ""] = idForm.exec(id) ?? [];
  if (!/^[0-9]{10}$/.test(suffix) || uuid.replaceAll("-", "").startsWith(suffix)) return undefined;
  const seconds = Number(suffix);
  return seconds >= firstSeconds && seconds * 1000 <= nowMs ? seconds : undefined;
}

/**
 * Whether a disk is a snapshot of the legacy driver: by slot, image and name of its export together, and without a record.
 * Whatever deviates is somebody's.
 */
export function isLegacySnapshot(stored: StoredVolume, basePaths: readonly string[]): boolean {
  const { id, imagePath, comment } = stored;
  return isLegacySnapshotId(id) && basePaths.some((base) => imagePath === legacySnapshotImage(base, id)) &&
    parseComment(comment).state === "none" && isNamedAsLeft(stored);
}

/** It asked for no export: what there is of one came with the properties of the volume, or is called after the slot. */
function isNamedAsLeft({ id, exported, exportNqn }: StoredVolume): boolean {
  if (exportNqn === "") return !exported;
  return exportNqn.endsWith(`:${id}`) || isLegacyId(exportNqn.slice(exportNqn.lastIndexOf(":") + 1));
}

function legacySnapshotImage(base: string, id: string): string {
  return `${base}/${id}.img`;
}

/** What it is and what there is to know about it, for people. */
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
 * Refuses a call about a snapshot of the legacy driver of which anything is left: a disk in its slot, of whatever kind, or
 * a file where its image was.
 *
 * @param view a look at the slot and at everything that is called like it
 * @throws {VolumeError} precondition saying what it is, and what a person does with it
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
    `Cannot ${verb} the snapshot because the legacy driver made it, with a copy of a disk's properties and not of its data: ` +
      `snapshot=${id} disk=${volume?.id ?? "none"} path=${path}; nothing can be restored from it; ${
        howToRemove(sharers)
      }`,
  );
}

function isImage({ path, directory }: StoredFile, id: string, basePaths: readonly string[]): boolean {
  return !directory && basePaths.some((base) => path === legacySnapshotImage(base, id));
}

/** The error for a volume that is to be made from a snapshot of the legacy driver, whether that is there or not. */
export function noData(id: string): VolumeError {
  return new VolumeError(
    "precondition",
    "Cannot restore the snapshot because the legacy driver made it, with a copy of a disk's properties and not of its data: " +
      `snapshot=${id}; a volume made from it would hold nothing of what is missed; restore from a backup: ` +
      legacySnapshotsPage,
  );
}
