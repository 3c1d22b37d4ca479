import { poolOf } from "../../volume/model/ids/ids.ts";
import type { ImageLocation, StoredVolume } from "../../volume/model/inventory.ts";
import type { Premise } from "../../volume/ports/premise.ts";
import type { DiskGuard, KnownDisk, Unseen } from "../../volume/ports/store.ts";
import type { StepKind, UnreadKind } from "./confirmations.ts";

/** What a step claims of a volume that was not read. */
export interface Claim {
  /** Undefined where there is none. */
  readonly disk: StoredVolume | undefined;
  /** The prefix of the names of all its files. */
  readonly filePrefix: string;
  /** How long the router has to be up, in milliseconds. */
  readonly settleMs: number;
  /** Of the image that is to be made, or to go; undefined where it stays. */
  readonly location?: ImageLocation;
}

/** What the router is asked before each step: at least every fact that it has to confirm then. */
const premises: Readonly<Record<UnreadKind, (claim: Claim) => readonly Premise[] | undefined>> = {
  add: ({ location, ...claim }) => location && premisesToAdd(location, claim),
  begin: ({ disk, filePrefix }) => disk && premisesToExport(disk, filePrefix),
  withdraw: ({ disk }) => disk && premisesToWithdraw(disk),
  grow: ({ disk }) => disk && premisesToGrow(disk),
  remove: ({ disk, location, ...claim }) => disk && location && premisesToRemove(disk, location, claim),
};

/** What the router is asked to confirm before a step; undefined where a volume has to be read first. */
export function premisesOf(kind: StepKind, claim: Claim): readonly Premise[] | undefined {
  return isUnread(kind) ? premises[kind](claim) : undefined;
}

function isUnread(kind: StepKind): kind is UnreadKind {
  return Object.hasOwn(premises, kind);
}

/** What the router looks for where nobody has looked before a blank disk is added: any disk or file of it, and its pool. */
export function premisesToAdd(
  { path, subvolume }: ImageLocation,
  { filePrefix, settleMs }: Unseen,
): Premise[] {
  return [
    { is: "slot-free" },
    { is: "unused", text: filePrefix },
    ...labelFree(subvolume),
    { is: "no-files", text: filePrefix },
    poolMounted(path, subvolume),
    { is: "up-for", ms: settleMs },
  ];
}

/** What the router looks for before an export is withdrawn of a disk that nobody has looked at: that it is on its image. */
export function premisesToWithdraw(
  { comment, imagePath }: Pick<KnownDisk, "comment" | "imagePath">,
): Premise[] {
  return [{ is: "comment", text: comment }, { is: "path-holds", text: imagePath }];
}

/**
 * What the router looks for before a disk is exported that nobody has looked at. There is no room to look whether the one path
 * that holds the prefix is the disk's own: that is read back.
 */
export function premisesToExport(
  { comment, imagePath }: Pick<KnownDisk, "comment" | "imagePath">,
  filePrefix: string,
): Premise[] {
  return [
    { is: "comment", text: comment },
    { is: "not-mounted" },
    { is: "not-exported" },
    { is: "alone", text: filePrefix },
    { is: "image-there", path: imagePath },
    poolMounted(imagePath),
  ];
}

/** The same before a disk is grown, which may be exported as it is. An image that is larger than its disk would be cut. */
export function premisesToGrow({ comment, imagePath, sizeBytes, exported }: KnownDisk): Premise[] {
  return [
    { is: "path", text: imagePath },
    { is: "size", bytes: sizeBytes },
    { is: "comment", text: comment },
    { is: exported ? "exported" : "not-exported" },
    { is: "image-there", path: imagePath, bytes: sizeBytes },
    poolMounted(imagePath),
  ];
}

/** The same before a disk is removed. */
export function premisesToRemove(
  { id, comment }: DiskGuard,
  { path, subvolume }: ImageLocation,
  { filePrefix, settleMs }: Unseen,
): Premise[] {
  return [
    { is: "path-holds", text: filePrefix },
    { is: "comment", text: comment },
    { is: "not-exported" },
    // Shorter than the prefix, and whatever more it finds is left alone.
    { is: "alone", text: `${id}.` },
    poolMounted(path, subvolume),
    ...labelFree(subvolume),
    { is: "up-for", ms: settleMs },
  ];
}

function poolMounted(path: string, subvolume?: ImageLocation["subvolume"]): Premise {
  return { is: "pool-mounted", mountPoint: poolOf(path), label: subvolume?.label };
}

function labelFree(subvolume: ImageLocation["subvolume"]): Premise[] {
  return subvolume === undefined ? [] : [{ is: "label-free", label: subvolume.label }];
}
