/** What is called: the CSI calls, and what a kubelet does with several of them at once. */
export type Verb =
  | "create"
  | "delete"
  | "publish"
  | "unpublish"
  | "expand"
  | "snapshot"
  | "deleteSnapshot"
  | "stage"
  | "unstage";

/**
 * One thing that happened, in the order in which it did. `of` names a volume, or a snapshot, by its id. What is in an image
 * is a word that only one write has: data is equal when the words are.
 */
export type HistoryEvent =
  /** A call begins. */
  | {
    readonly kind: "call";
    readonly call: number;
    readonly verb: Verb;
    readonly of: string;
    readonly node?: string;
    readonly bytes?: bigint;
    /** What a snapshot or a clone is made from. */
    readonly source?: string;
  }
  /** A call ends. Without an error it was answered OK. */
  | {
    readonly kind: "answer";
    readonly call: number;
    readonly error?: string;
    /** The NQN that a node is to connect to. */
    readonly nqn?: string;
    /** Whether a snapshot is finished. @default {true} */
    readonly ready?: boolean;
  }
  /** What the router has of it from now on. */
  | {
    readonly kind: "image";
    readonly of: string;
    /** Its size, when there is a whole one; undefined when there is none. */
    readonly bytes: bigint | undefined;
    /** Whether anything of it is left: an image, half a copy, a disk. */
    readonly exists: boolean;
    readonly value: string | undefined;
    /** The NQN that it is exported under. */
    readonly exported: string | undefined;
    /** The NQNs through which it can be written, which may be more for a moment. */
    readonly open: readonly string[];
  }
  /** What a node's kernel has of a volume from now on. */
  | {
    readonly kind: "kernel";
    readonly node: string;
    readonly of: string;
    readonly connected: readonly string[];
    readonly staged: boolean;
  }
  /** A workload has written; acknowledged when its kernel said so, else the write may come at any time, or never. */
  | {
    readonly kind: "write";
    readonly node: string;
    readonly of: string;
    readonly value: string;
    readonly acknowledged: boolean;
  }
  /** A workload reads that. */
  | { readonly kind: "read"; readonly node: string; readonly of: string; readonly value: string | undefined }
  /** A node makes a file system, which is then all there is, or wipes what there is. */
  | {
    readonly kind: "format";
    readonly node: string;
    readonly of: string;
    readonly value: string | undefined;
  }
  /** Data of somebody else that was on the router is gone. */
  | { readonly kind: "others-lost"; readonly of: string }
  /** The router did what it must never be asked to do. */
  | { readonly kind: "router"; readonly line: string }
  /** A call goes on long after its time. */
  | { readonly kind: "stuck" }
  /** What is left when everything was deleted. */
  | { readonly kind: "left"; readonly of: string }
  /** Nobody but a person has turned an export on or off. */
  | { readonly kind: "edited"; readonly of: string }
  /** The router restarts; it may have forgotten its latest configuration, and with it what was answered about the volumes. */
  | { readonly kind: "rebooted"; readonly forgets: boolean };
