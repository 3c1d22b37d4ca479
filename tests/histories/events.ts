/** The verbs of calls: CSI calls, and sequences of them that a kubelet makes to begin or end a pod's use of a volume. */
export type Verb =
  | "create"
  | "delete"
  | "publish"
  | "unpublish"
  | "expand"
  | "snapshot"
  | "deleteSnapshot"
  | "list"
  | "import"
  | "adopt"
  | "stage"
  | "unstage"
  | "grow";

/** What a call took where nothing goes wrong. */
export interface CalmCall {
  /** Commands to the router, and those of them that may have changed something. */
  readonly commands: number;
  readonly changes: number;
  /** Whether the controller may remember what it has written last. */
  readonly remembers: boolean;
  /** Whether the call waited for something, such as the end of an export. */
  readonly waited: boolean;
  /** Whether a person has changed something before. */
  readonly byHand: boolean;
}

/**
 * One event, in the order of time. `of` is the id of a volume or a snapshot. The contents of an image are a word that
 * only one write uses: two images have equal data when their words are equal.
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
    /** Whether a create asks for other parameters than an earlier one. @default {false} */
    readonly otherwise?: true;
  }
  /** A call ends; without an error it was answered OK. */
  | {
    readonly kind: "answer";
    readonly call: number;
    readonly error?: string;
    /** The NQN that the node has to connect to. */
    readonly nqn?: string;
    /** Whether the snapshot is ready. @default {true} */
    readonly ready?: boolean;
    /** The ids of the snapshots that a list shows. */
    readonly listed?: readonly string[];
    /** Whether the cluster answered all that the call asked it; undefined without a cluster. */
    readonly compared?: boolean;
    /** Whether the router refused to change a disk that was as the call expected it. @default {false} */
    readonly refused?: true;
    /** What the call took, if nothing has gone wrong since the beginning. */
    readonly calm?: CalmCall;
    /** Whether the router did half of one of its commands, and all others at once. @default {false} */
    readonly undisturbed?: true;
  }
  /** A node's attachment is complete and has this NQN from now on, or is gone. */
  | {
    readonly kind: "attachment";
    readonly of: string;
    readonly node: string;
    readonly nqn: string | undefined;
  }
  /** The state of an image on the router from now on. */
  | {
    readonly kind: "image";
    readonly of: string;
    /** Its size; undefined when there is no complete image. */
    readonly bytes: bigint | undefined;
    /** Whether any part of it exists: an image, an incomplete copy, a disk. */
    readonly exists: boolean;
    /** Whether the router does not show its disk in its slot: not yet, or in another one. @default {false} */
    readonly hidden?: boolean;
    /** Whether the disk is on another file. @default {false} */
    readonly elsewhere?: boolean;
    readonly value: string | undefined;
    /** The NQN under which it is exported. */
    readonly exported: string | undefined;
    /** The NQNs through which it can be written; for a short time there may be several. */
    readonly open: readonly string[];
  }
  /** The state of a volume in a node's kernel from now on. */
  | {
    readonly kind: "kernel";
    readonly node: string;
    readonly of: string;
    readonly connected: readonly string[];
    readonly staged: boolean;
    /** Whether a pod has it. @default {as `staged`} */
    readonly published?: boolean;
    /** How large the node sees it; undefined while a pod does not have it. */
    readonly bytes?: bigint | undefined;
  }
  /** A workload writes. If its kernel does not acknowledge the write, the write may arrive at any time, or never. */
  | {
    readonly kind: "write";
    readonly node: string;
    readonly of: string;
    readonly value: string;
    readonly acknowledged: boolean;
  }
  /** A workload reads this value. */
  | { readonly kind: "read"; readonly node: string; readonly of: string; readonly value: string | undefined }
  /** A node's machine restarts: its mounts and connections end. */
  | { readonly kind: "crashed"; readonly node: string }
  /** The cluster has the attachments of some steps ago, and knows nothing of what was asked since. */
  | { readonly kind: "cluster-restored" }
  /** Nothing is asked from now on. */
  | { readonly kind: "resting" }
  /**
   * Nothing was asked for long enough: the exports are as the cluster wants them. There are attachments of these, as
   * `volume node`; undefined where leaders change only what is older than the cluster.
   */
  | {
    readonly kind: "rested";
    readonly wanted: readonly string[] | undefined;
    /** Whether the router cuts comments: the record of an export that is turned on again may not fit. @default {false} */
    readonly cuts?: boolean;
  }
  /** A kubelet will never ask its node to undo this: it met a final error, and was not answered OK before. */
  | {
    readonly kind: "given-up";
    readonly node: string;
    readonly of: string;
    readonly what: "stage" | "publish";
  }
  /** A volume is for two writers at once while its virtual machine moves. Pods of that run on these nodes from now on. */
  | {
    readonly kind: "pods";
    readonly of: string;
    readonly nodes: readonly string[];
    /** Whether the pods matter. */
    readonly pairs: boolean;
  }
  /** A node makes a file system, which replaces all contents, or wipes the contents. */
  | {
    readonly kind: "format";
    readonly node: string;
    readonly of: string;
    readonly value: string | undefined;
  }
  /** Another owner's data on the router is lost. */
  | { readonly kind: "others-lost"; readonly of: string }
  /** The router was asked to do something that it must never be asked to do. */
  | { readonly kind: "router"; readonly line: string }
  /** A call is still running long after its deadline. */
  | { readonly kind: "stuck" }
  /** An object that is left after everything was deleted. */
  | { readonly kind: "left"; readonly of: string }
  /** A person, not the driver, has turned an export on or off; `wanted` while an attachment of the volume is there. */
  | {
    readonly kind: "edited";
    readonly of: string;
    readonly exported?: string | undefined;
    readonly wanted?: boolean;
  }
  /** A person has written a note around the record, or taken it away. */
  | { readonly kind: "noted"; readonly of: string; readonly isThere: boolean }
  /** The router has an empty image in the place of the volume's: all data is lost, and nobody was asked. */
  | { readonly kind: "blanked"; readonly of: string }
  /** The router restarts. It may lose its latest configuration, including changes that were answered OK. */
  | { readonly kind: "rebooted"; readonly forgets: boolean };

/** What a history records of the end of a call. */
export type Answer = Omit<Extract<HistoryEvent, { kind: "answer" }>, "kind" | "call">;

/** Returns what a history records of an OK. */
export function detailsOf(result: unknown): Answer {
  const { nqn, ready, listed } = (result ?? {}) as Answer;
  return {
    ...nqn === undefined ? {} : { nqn },
    ...ready === undefined ? {} : { ready },
    ...listed === undefined ? {} : { listed },
  };
}
