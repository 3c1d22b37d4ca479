import { VolumeError } from "../../volume/errors.ts";
import { poolOf } from "../../volume/model/ids/ids.ts";
import { neverUsedMark, withinPool } from "../../volume/model/layout.ts";
import type { Premise } from "../../volume/ports/premise.ts";
import type {
  DiskGuard,
  NewFolder,
  NewSubvolume,
  NewVolume,
  VolumeChange,
  Write,
} from "../../volume/ports/store.ts";
import type { ImageLocation } from "../../volume/model/inventory.ts";
import { type Fragment, joined, onlyIf, ros, unless } from "../console/command.ts";
import { fitsOneExec } from "../console/exchange.ts";
import { conditionsOf, noFile, none, ofVolumes, one, oneFile, onePool } from "./premises.ts";
import { fileName, holding, imagePathOf, lastSegment } from "./queries.ts";

/** What the router is let say where a volume has the label of a pool. */
const sharedLabel = "a volume has this fs-label";

/** What it is let say where files are left of a volume that was to be removed without a read. */
const filesLeft = "left";

/**
 * The statements of a write, which the router runs only if the premises hold. No change is no statement.
 *
 * @throws {VolumeError} internal when a disk would be changed or removed whatever its comment is
 */
export function writeStatements(write: Write, premises: readonly Premise[]): Fragment[] {
  if ("add" in write) {
    return premises.length === 0 ? addStatements(write.add) : [addIf(write.add, premises)];
  }
  if (!premises.some(({ is }) => is === "comment")) {
    throw new VolumeError(
      "internal",
      `Cannot change a disk without comparing its comment: volume=${write.id}`,
    );
  }
  return "set" in write
    ? changeStatements(write.id, write.set, premises)
    : removeStatements(write.id, write.remove, premises);
}

/** Adds a disk, after what has to be made for it. Each statement is right by itself, whatever came of the others. */
function addStatements(volume: NewVolume): Fragment[] {
  const { makeFolder, subvolume, copied } = volume;
  const folder = makeFolder === undefined ? [] : [folderStatement(makeFolder)];
  if (subvolume?.parent !== undefined) return [...folder, ...cloneStatements(volume, subvolume)];
  return [
    ...folder,
    ...subvolume === undefined ? [] : [newSubvolumeStatement(subvolume, makeFolder === undefined)],
    copied === undefined ? diskStatement(volume) : copiedDiskStatement(volume, copied.path),
  ];
}

/**
 * Adds a blank disk that nobody has looked for. For its folder the router need not look: without it the router refuses the
 * subvolume, and either refuses a plain disk or makes the folder, as the driver would.
 */
function addIf(volume: NewVolume, premises: readonly Premise[]): Fragment {
  const { subvolume } = volume;
  const make = subvolume === undefined ? [] : [makeSubvolume(subvolume)];
  return onlyIf(conditionsOf(premises, volume.id).before, ...make, plainAdd(volume));
}

/**
 * A clone and its disk in one statement. Where that is too long for a command, whoever makes the clone marks it, after it
 * was made, and it loses the mark before it gets its disk: no clone with the mark was ever used, whatever came in between.
 * The mark is this attempt's own, so that what comes late adds no disk on the clone of another attempt.
 */
function cloneStatements(volume: NewVolume, subvolume: NewSubvolume): Fragment[] {
  const { id, location, comment } = volume;
  const whole = wholeCloneStatement(volume, subvolume);
  if (fitsOneExec([whole], [])) return [whole];
  const mark = neverUsedMark(location, comment);
  return [
    onlyIf(cloneConditions(subvolume), makeSubvolume(subvolume), folderAt(mark)),
    onlyIf([noDisk(id, endOf(location)), oneFile(mark)], removeFile(mark), plainAdd(volume)),
  ];
}

/** Makes a clone and its disk, however long that is. */
export function wholeCloneStatement(volume: NewVolume, subvolume: NewSubvolume): Fragment {
  const unused = noDisk(volume.id, endOf(volume.location));
  return onlyIf([unused, ...cloneConditions(subvolume)], makeSubvolume(subvolume), plainAdd(volume));
}

/** Whether the label is the pool's alone is a condition here: for its own text there is no room. */
function cloneConditions(subvolume: NewSubvolume): Fragment[] {
  return [ownLabel(subvolume.label), ...subvolumeConditions(subvolume)];
}

/**
 * Makes a folder. The router looks again whether it is there: of several first volumes at once only one makes it, and none
 * fails.
 */
export function folderStatement({ path, label }: NewFolder): Fragment {
  const make = label === undefined
    ? folderAt(path)
    : ros`/disk/btrfs/subvolume/add fs=${label} name=${withinPool(path)}`;
  return onlyIf([noFile(path)], make);
}

/** Makes a folder on a pool: without that the path is one on the router's own storage, or below a mount point. */
export function poolFolderStatement(path: string): Fragment {
  return onlyIf([onePool({ mountPoint: poolOf(path), label: undefined }), noFile(path)], folderAt(path));
}

/** Removes a folder if nothing is in it: there are routers that remove it with everything. */
export function removeFolderStatement(path: string): Fragment {
  const inside = ros`/file find where name~${holding(`${path}/`)}`;
  return onlyIf(
    [none(inside)],
    ros`/file remove [find where name=${fileName(path)} and type=${"directory"}]`,
  );
}

function folderAt(path: string): Fragment {
  return ros`/file add type=${"directory"} name=${fileName(path)}`;
}

/**
 * Never exported, and never mounted by the router: it mounts any file system that it recognises in a disk unless told
 * not to, also one that a node has just made. The router itself looks for a disk in the slot or on the image, as there
 * are some that choose another slot in silence, and whether the image is there when, and only when, it should be: it
 * would adopt whatever lies there.
 */
function diskStatement(volume: NewVolume): Fragment {
  const { id, location, imported } = volume;
  // Of somebody's file the last name alone may be that of many others.
  const image = imported ? location.path : endOf(location);
  return onlyIf([noDisk(id, image), ...imageConditions(volume)], plainAdd(volume));
}

function imageConditions({ location, sizeBytes, subvolume }: NewVolume): Fragment[] {
  // In an empty subvolume that was made right before is nothing.
  if (subvolume !== undefined) return [];
  return [sizeBytes === undefined ? oneFile(location.path) : noFile(location.path)];
}

/**
 * In one statement with the renaming, so that nobody ever finds an image of which only a disk could tell what it is. Where
 * the copy is not there any more, nothing is at the image's path, and without a size the router makes nothing there.
 */
function copiedDiskStatement(volume: NewVolume, from: string): Fragment {
  const { id, location } = volume;
  const rename = ros`/file set [find where name=${fileName(from)}] name=${fileName(location.path)}`;
  return onlyIf([noDisk(id, endOf(location)), noFile(location.path)], rename, plainAdd(volume));
}

function plainAdd({ id, location, sizeBytes, comment }: NewVolume): Fragment {
  const path = imagePathOf(location.path);
  const size = sizeBytes === undefined ? [] : [ros`file-size=${sizeBytes}`];
  const settings = joined([ros`type=${"file"} slot=${id} file-path=${path}`, ...size], " ");
  return ros`/disk add ${settings} mount-filesystem=${false} nvme-tcp-export=${false} comment=${comment}`;
}

/**
 * Changes a disk of which the premises hold: whether anything matched shows only in what is read back. One statement, so that
 * an export is never off in between, but for a bounce.
 */
function changeStatements(id: string, change: VolumeChange, premises: readonly Premise[]): Fragment[] {
  const { own, before } = conditionsOf(premises, id);
  const disk = ownDisk(id, own);
  if (change.bounce && change.sizeBytes !== undefined) return growWhileOff(disk, change);
  const settings = settingsOf(change);
  if (settings.length === 0) return [];
  const set = ros`/disk set ${disk} ${joined(settings, " ")}`;
  return [before.length === 0 ? set : onlyIf(before, set)];
}

function settingsOf(change: VolumeChange): Fragment[] {
  const settings: Fragment[] = [];
  if (change.export === false) settings.push(ros`nvme-tcp-export=${false}`);
  if (change.sizeBytes !== undefined) settings.push(ros`file-size=${change.sizeBytes}`);
  if (change.neverMounted) settings.push(ros`mount-filesystem=${false}`);
  if (change.comment !== undefined) settings.push(ros`comment=${change.comment}`);
  if (change.export !== undefined && change.export !== false) {
    const { nqn, port } = change.export;
    settings.push(ros`nvme-tcp-export=${true} nvme-tcp-server-port=${port} nvme-tcp-server-nqn=${nqn}`);
  }
  return settings;
}

/** A router that may mount the file system in a disk would do so while the export is off, and write below its nodes. */
const offUnmounted: Fragment = ros`nvme-tcp-export=${false} mount-filesystem=${false}`;

/**
 * Off, with the new size, and on again: two statements, each with the comment, which changes last. What takes the volume away
 * in between changes the comment, and then it stays off.
 */
function growWhileOff(disk: Fragment, { sizeBytes, comment }: VolumeChange): Fragment[] {
  const rewrite = comment === undefined ? [] : [ros`comment=${comment}`];
  return [
    ros`/disk set ${disk} ${offUnmounted} file-size=${sizeBytes!}`,
    ros`/disk set ${disk} ${joined([ros`nvme-tcp-export=${true}`, ...rewrite], " ")}`,
  ];
}

/** Removes a disk of which the premises hold, and then its image if no disk uses it. */
function removeStatements(
  id: string,
  location: ImageLocation,
  premises: readonly Premise[],
): Fragment[] {
  // Where the image goes in the same statement, its label has to be free then, not before.
  const labels = premises.filter(({ is }) => is === "label-free");
  const { own, before } = conditionsOf(premises.filter(({ is }) => is !== "label-free"), id);
  const disk = ros`/disk remove ${ownDisk(id, own)}`;
  const [alone] = premises.flatMap((premise) => premise.is === "alone" ? [premise.text] : []);
  if (alone === undefined) return [disk, onlyIf([noDisk(id, endOf(location))], removeAt(location))];
  const users: readonly Premise[] = [{ is: "unused", text: alone }, ...labels];
  const image = onlyIf(conditionsOf(users, id).before, plainRemoval(location));
  // Unless all of that held, and everything went, files are left, and the router says so: nothing else is read back then.
  const files = ros`[:len [/file find where name~${holding(alone)}]]>0`;
  return [
    onlyIf(before, disk, image),
    onlyIf([files], ros`:error ${filesLeft}`),
  ];
}

/** Removes an image that no disk uses, or the subvolume with it. */
export function removeImageStatement(location: ImageLocation): Fragment {
  return onlyIf([none(ros`/disk find where file-path~${holding(endOf(location))}`)], removeAt(location));
}

function removeAt(location: ImageLocation): Fragment {
  const { subvolume } = location;
  const removal = plainRemoval(location);
  return subvolume === undefined ? removal : withOwnLabel(subvolume.label, removal);
}

function plainRemoval({ path, subvolume }: ImageLocation): Fragment {
  if (subvolume === undefined) return removeFile(path);
  const { label, path: fullName } = subvolume;
  return ros`/disk/btrfs/subvolume/remove [find where fs=${label} and fullname=${fullName}]`;
}

function removeFile(path: string): Fragment {
  return ros`/file remove [find where name=${fileName(path)}]`;
}

/**
 * Makes a subvolume if no path holds the text, and refuses while a volume has its label: where one command has no room for
 * both, that is asked right before.
 */
export function subvolumeStatements(subvolume: NewSubvolume, part: string): Fragment[] {
  const isFree = none(ros`/file find where name~${holding(part)}`);
  const make = onlyIf([isFree, ...subvolumeConditions(subvolume)], makeSubvolume(subvolume));
  return [onlyIf([inVolumes(subvolume.label)], ros`:error ${sharedLabel}`), make];
}

/** @param hasRoom whether the router can be asked about the label in the same command, which it is once a folder is there */
function newSubvolumeStatement(subvolume: NewSubvolume, hasRoom: boolean): Fragment {
  const make = makeSubvolume(subvolume);
  return hasRoom ? withOwnLabel(subvolume.label, make) : make;
}

/** A parent is known by its last name only: of two that have it nobody knows which one the router would take. */
function subvolumeConditions({ label, parent, guard }: NewSubvolume): Fragment[] {
  return [
    ...parent === undefined
      ? []
      : [one(ros`/disk/btrfs/subvolume/find where fs=${label} and name=${lastSegment(parent.path)}`)],
    ...guard === undefined ? [] : [diskAsGuarded(guard)],
  ];
}

function makeSubvolume({ label, path, parent, readOnly }: NewSubvolume): Fragment {
  return joined([
    ros`/disk/btrfs/subvolume/add fs=${label} name=${path}`,
    ...parent === undefined ? [] : [ros`parent=${lastSegment(parent.path)}`],
    ...readOnly ? [ros`read-only=${true}`] : [],
  ], " ");
}

/**
 * Refused while a volume's own bytes say that it is a file system of that label. Whoever writes to a volume can write
 * that, and nobody knows which of the two the router would take.
 */
function withOwnLabel(label: string, statement: Fragment): Fragment {
  return unless(inVolumes(label), sharedLabel, statement);
}

function inVolumes(label: string): Fragment {
  return ros`[:len [/disk find where ${ofVolumes(label)}]]>0`;
}

/** The same as a condition, where the error's text has no room: what was not made is seen when it is read back. */
function ownLabel(label: string): Fragment {
  return none(ros`/disk find where ${ofVolumes(label)}`);
}

/** Renames a file to a path at which nothing is, if the guard holds. */
export function renameStatement(from: string, to: string, guard: DiskGuard | undefined): Fragment {
  const rename = ros`/file set [find where name=${fileName(from)}] name=${fileName(to)}`;
  return onlyIf([noFile(to), ...guard === undefined ? [] : [diskAsGuarded(guard)]], rename);
}

/** Copies a file. */
export function copyStatement(from: string, to: string): Fragment {
  return ros`/file copy ${fileName(from)} name=${fileName(to)}`;
}

/** The disk in the slot, if it is all that. */
function ownDisk(id: string, own: readonly Fragment[]): Fragment {
  return ros`[find where ${joined([ros`slot=${id}`, ...own], " and ")}]`;
}

/** That no disk is in the slot, and none uses an image whose path holds the text. */
function noDisk(slot: string, part: string): Fragment {
  return none(ros`/disk find where slot=${slot} or file-path~${holding(part)}`);
}

/** That the disk is there with exactly that comment. */
function diskAsGuarded(guard: DiskGuard): Fragment {
  return one(ros`/disk find where slot=${guard.id} and comment=${guard.comment}`);
}

/** What the path of every disk on that image holds. Its end only, as the whole takes room that the comments need. */
function endOf({ path, subvolume }: ImageLocation): string {
  return subvolume === undefined ? `/${lastSegment(path)}` : `/${lastSegment(subvolume.path)}/`;
}
