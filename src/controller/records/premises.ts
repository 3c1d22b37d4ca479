import { poolOf } from "../../volume/model/ids/ids.ts";
import type { ImageLocation, StoredVolume } from "../../volume/model/inventory.ts";
import type { Premise } from "../../volume/ports/premise.ts";
import type { DiskGuard, KnownDisk, Unseen } from "../../volume/ports/store.ts";
import type { confirmations, Fact, StepKind, UnreadKind } from "./confirmations.ts";

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

type KnownImage = Pick<KnownDisk, "comment" | "imagePath">;
type Asking = (claim: Claim) => readonly Premise[] | undefined;

/** What the router is asked before each step that is taken unread. */
const premises: Readonly<Partial<Record<StepKind, Asking>>> = {
  add: ({ location, ...claim }) => location && premisesToAdd(location, claim),
  begin: ({ disk, filePrefix }) => disk && premisesToExport(disk, filePrefix),
  withdraw: ({ disk }) => disk && premisesToWithdraw(disk),
  grow: ({ disk }) => disk && premisesToGrow(disk),
  remove: ({ disk, location, ...claim }) => disk && location && premisesToRemove(disk, location, claim),
} satisfies Readonly<Record<UnreadKind, Asking>>;

/** What the router is asked to confirm before a step; undefined where a volume has to be read first. */
export function premisesOf(kind: StepKind, claim: Claim): readonly Premise[] | undefined {
  return premises[kind]?.(claim);
}

/** Premises by what they confirm: each fact that has to be confirmed before the step, and what else there is room for. */
type Premises<Kind extends UnreadKind> =
  & { readonly [F in Fact as (typeof confirmations)[Kind][F] extends "before" ? F : never]: Premise[] }
  & { readonly [F in Fact | "record"]?: Premise[] };

function asked<Kind extends UnreadKind>(by: Premises<Kind>): Premise[] {
  return Object.values<Premise[]>(by).flat();
}

/** What the router looks for where nobody has looked before a blank disk is added: any disk or file of it, and its pool. */
export function premisesToAdd(
  { path, subvolume }: ImageLocation,
  { filePrefix, settleMs }: Unseen,
): Premise[] {
  return asked<"add">({
    path: [{ is: "slot-free" }],
    sharers: [{ is: "unused", text: filePrefix }],
    image: [{ is: "no-files", text: filePrefix }],
    pools: ownPool(path, subvolume),
    settled: [{ is: "up-for", ms: settleMs }],
  });
}

/** What the router looks for before an export is withdrawn of a disk that nobody has looked at: that it is on its image. */
export function premisesToWithdraw({ comment, imagePath }: KnownImage): Premise[] {
  return asked<"withdraw">({
    record: [{ is: "comment", text: comment }],
    path: [{ is: "path-holds", text: imagePath }],
  });
}

/**
 * What the router looks for before a disk is exported that nobody has looked at. There is no room to look whether the one path
 * that holds the prefix is the disk's own: that is read back.
 */
export function premisesToExport({ comment, imagePath }: KnownImage, filePrefix: string): Premise[] {
  return asked<"begin">({
    record: [{ is: "comment", text: comment }],
    uses: [{ is: "not-mounted" }],
    export: [{ is: "not-exported" }],
    sharers: [{ is: "alone", text: filePrefix }],
    image: [{ is: "image-there", path: imagePath }],
    pools: ownPool(imagePath),
  });
}

/** The same before a disk is grown, which may be exported as it is. An image that is larger than its disk would be cut. */
export function premisesToGrow({ comment, imagePath, sizeBytes, exported }: KnownDisk): Premise[] {
  return asked<"grow">({
    path: [{ is: "path", text: imagePath }],
    size: [{ is: "size", bytes: sizeBytes }],
    record: [{ is: "comment", text: comment }],
    export: [{ is: exported ? "exported" : "not-exported" }],
    image: [{ is: "image-there", path: imagePath, bytes: sizeBytes }],
    pools: ownPool(imagePath),
  });
}

/** The same before a disk is removed. */
export function premisesToRemove(
  { id, comment }: DiskGuard,
  { path, subvolume }: ImageLocation,
  { filePrefix, settleMs }: Unseen,
): Premise[] {
  return asked<"remove">({
    path: [{ is: "path-holds", text: filePrefix }],
    record: [{ is: "comment", text: comment }],
    export: [{ is: "not-exported" }],
    // Shorter than the prefix, and whatever more it finds is left alone.
    sharers: [{ is: "alone", text: `${id}.` }],
    pools: ownPool(path, subvolume),
    settled: [{ is: "up-for", ms: settleMs }],
  });
}

/** The pool of an image. Where a subvolume of it is made or goes, no volume may have its label. */
function ownPool(path: string, subvolume?: ImageLocation["subvolume"]): Premise[] {
  const mounted: Premise = { is: "pool-mounted", mountPoint: poolOf(path), label: subvolume?.label };
  return subvolume === undefined ? [mounted] : [mounted, { is: "label-free", label: subvolume.label }];
}
