import type { Premise } from "../../volume/ports/premise.ts";

/** What a rule may rest on besides the record, which every write compares. */
export type Fact =
  /** The image that the disk is on. */
  | "path"
  | "size"
  /** Whether it is exported, and how. */
  | "export"
  /** What else the router does with the disk. */
  | "uses"
  /** Other disks on its image. */
  | "sharers"
  /** Its image, and other files of it. */
  | "image"
  /** The pool of its image, and the pool's label. */
  | "pools"
  /** That the router is up for long enough to show everything. */
  | "settled";

/** How a claim is confirmed: by the router before it writes, in what is read back, or not at all. */
export type Confirmed = "before" | "after" | "no-matter";

/** What a rule has done to a volume. */
export type StepKind =
  | ("add" | "begin" | "continue" | "withdraw" | "leave" | "rewrite" | "grow" | "toggle" | "remove")
  /** A disk becomes a volume, or ceases to be one. */
  | ("mark" | "release");

/**
 * How each step of a volume that is remembered, and not read, confirms what it claims. A new fact or a new kind of step does not
 * compile without its cells.
 */
export const confirmations = {
  // There is nothing of it: what is there may be another's, and hold data.
  add: {
    // No disk is in the slot.
    path: "before",
    // It is as large as it is made, and not exported.
    size: "no-matter",
    export: "no-matter",
    uses: "no-matter",
    sharers: "before",
    image: "before",
    pools: "before",
    // A disk of it may come back late.
    settled: "before",
  },
  // A new epoch: no node knows its name before it is read back, so what has no room in the command may be confirmed after it.
  begin: {
    // One disk is on an image of the volume; that it is this one shows in the read-back.
    path: "after",
    // A router that forgot a growth would give the node less than the volume holds.
    size: "after",
    export: "before",
    // A mount is looked for before; whatever else the router does with the disk is only read.
    uses: "after",
    sharers: "before",
    image: "before",
    pools: "before",
    // Nothing is concluded from what is not there.
    settled: "no-matter",
  },
  // An epoch that goes on is other nodes' too.
  continue: "read-first",
  // It takes the volume from everybody, and is right however large, shared or damaged it is. Only the disk has to be the one on
  // record: by a person's hand another one may be in its slot.
  withdraw: {
    path: "before",
    size: "no-matter",
    export: "after",
    uses: "no-matter",
    sharers: "no-matter",
    image: "no-matter",
    pools: "no-matter",
    settled: "no-matter",
  },
  // What a node may still write that leaves others depends on them.
  leave: "read-first",
  // What is written again was read.
  rewrite: "read-first",
  // The remembered size would shrink a disk that a person has grown; a node may have it or not, as before.
  grow: {
    path: "before",
    size: "before",
    export: "before",
    // The router sees the larger size, as nodes do.
    uses: "no-matter",
    // Another disk on the image loses nothing by its growth.
    sharers: "no-matter",
    image: "before",
    pools: "before",
    // Nothing is concluded from what is not there.
    settled: "no-matter",
  },
  // The nodes that have it lose its export for a moment.
  toggle: "read-first",
  // The image goes in the same command, so that nothing can be put back.
  remove: {
    path: "before",
    size: "no-matter",
    export: "before",
    // A mount of the router's own goes with the disk, as after a read.
    uses: "no-matter",
    sharers: "before",
    // Of an image that is gone already nothing is lost; what is left of others is read back.
    image: "no-matter",
    pools: "before",
    // Another disk of the image may come back late.
    settled: "before",
  },
  // What is a person's is looked at, whole.
  mark: "read-first",
  release: "read-first",
} as const satisfies Readonly<Record<StepKind, "read-first" | Readonly<Record<Fact, Confirmed>>>>;

/** The steps that need no read before. */
export type UnreadKind = {
  [Kind in StepKind]: (typeof confirmations)[Kind] extends "read-first" ? never : Kind;
}[StepKind];

/** The fact that a premise confirms; undefined for the record. */
export const factOf: Readonly<Record<Premise["is"], Fact | undefined>> = {
  "comment": undefined,
  "path": "path",
  "path-holds": "path",
  "slot-free": "path",
  "size": "size",
  "exported": "export",
  "not-exported": "export",
  "not-mounted": "uses",
  "unused": "sharers",
  "alone": "sharers",
  "no-files": "image",
  "image-there": "image",
  "pool-mounted": "pools",
  "label-free": "pools",
  "up-for": "settled",
};
