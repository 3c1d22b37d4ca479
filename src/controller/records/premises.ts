import { poolOf } from "../../volume/model/ids.ts";
import type { ImageLocation } from "../../volume/model/inventory.ts";
import type { Premise } from "../../volume/ports/premise.ts";
import type { DiskGuard, KnownDisk, Unseen } from "../../volume/ports/store.ts";

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
