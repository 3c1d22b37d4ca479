import { poolOf } from "../../volume/model/ids.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
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

/** What is done to a volume. */
export type StepKind = "withdraw" | "leave";

/**
 * How each step of a volume that is remembered, and not read, confirms what it claims. A new fact or a new kind of step does not
 * compile without its cells.
 */
export const confirmations: Readonly<
  Record<StepKind, "read-first" | Readonly<Record<Fact, Confirmed>>>
> = {
  // It takes everything from everybody, so nothing but the disk itself matters: by a person's hand another one may be in its slot.
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
};

/** What a step claims of a volume that was not read. */
export interface Claim {
  readonly disk: StoredVolume;
  /** The prefix of the names of all its files. */
  readonly filePrefix: string;
  /** How long the router has to be up, in milliseconds. */
  readonly settleMs: number;
}

/** How the router is asked to confirm each fact. */
const premiseOf: Readonly<Record<Fact, (claim: Claim) => Premise>> = {
  path: ({ disk }) => ({ is: "path-holds", text: disk.imagePath }),
  size: ({ disk }) => ({ is: "size", bytes: disk.sizeBytes }),
  export: ({ disk }) => ({ is: disk.exported ? "exported" : "not-exported" }),
  uses: () => ({ is: "not-mounted" }),
  sharers: ({ filePrefix }) => ({ is: "alone", text: filePrefix }),
  image: ({ disk }) => ({ is: "image-there", path: disk.imagePath }),
  pools: ({ disk }) => ({ is: "pool-mounted", mountPoint: poolOf(disk.imagePath), label: undefined }),
  settled: ({ settleMs }) => ({ is: "up-for", ms: settleMs }),
};

/** What the router is asked to confirm before a step; undefined where a volume has to be read first. */
export function premisesOf(kind: StepKind, claim: Claim): readonly Premise[] | undefined {
  const cells = confirmations[kind];
  if (cells === "read-first") return undefined;
  const before = facts.filter((fact) => cells[fact] === "before");
  return [{ is: "comment", text: claim.disk.comment }, ...before.map((fact) => premiseOf[fact](claim))];
}

const facts = Object.keys(premiseOf) as Fact[];
