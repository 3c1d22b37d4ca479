/** The calls: those of CSI, and a kubelet's combinations of several. */
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
 * One event; events are in order. `of` names a volume, or a snapshot, by its id. The content of an image is a word that
 * only one write has: data is equal when the words are.
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
    /** The source of a snapshot or a clone. */
    readonly source?: string;
  }
  /** A call ends; without an error it was answered OK. */
  | {
    readonly kind: "answer";
    readonly call: number;
    readonly error?: string;
    /** The NQN that a node should connect to. */
    readonly nqn?: string;
    /** Whether a snapshot is finished. @default {true} */
    readonly ready?: boolean;
  }
  /** The router's present state of a volume or a snapshot. */
  | {
    readonly kind: "image";
    readonly of: string;
    /** Its size, if there is a complete image; else undefined. */
    readonly bytes: bigint | undefined;
    /** Whether any part exists: an image, half a copy, a disk. */
    readonly exists: boolean;
    readonly value: string | undefined;
    /** The NQN under which it is exported. */
    readonly exported: string | undefined;
    /** The NQNs through which it can be written, which may be several for a moment. */
    readonly open: readonly string[];
  }
  /** The present state of a volume in a node's kernel. */
  | {
    readonly kind: "kernel";
    readonly node: string;
    readonly of: string;
    readonly connected: readonly string[];
    readonly staged: boolean;
  }
  /**
   * A workload has written. The write is acknowledged when its kernel said so; else it may arrive at any time, or
   * never.
   */
  | {
    readonly kind: "write";
    readonly node: string;
    readonly of: string;
    readonly value: string;
    readonly acknowledged: boolean;
  }
  /** A workload reads that value. */
  | { readonly kind: "read"; readonly node: string; readonly of: string; readonly value: string | undefined }
  /** A node makes a file system, which then is the only content, or wipes the content. */
  | {
    readonly kind: "format";
    readonly node: string;
    readonly of: string;
    readonly value: string | undefined;
  }
  /** Foreign data on the router is gone. */
  | { readonly kind: "others-lost"; readonly of: string }
  /** The router did what it must never be asked to do. */
  | { readonly kind: "router"; readonly line: string }
  /** A call goes on long after its time. */
  | { readonly kind: "stuck" }
  /** Something is left when everything was deleted. */
  | { readonly kind: "left"; readonly of: string }
  /** A person has turned an export on or off. */
  | { readonly kind: "edited"; readonly of: string }
  /** The router restarts; it may have lost its latest configuration, and with it the effects of answered calls. */
  | { readonly kind: "rebooted"; readonly forgets: boolean };
