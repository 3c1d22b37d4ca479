import { volumeIdFor } from "../../src/volume/model/ids/ids.ts";

/** The conditions that hold for a whole schedule. */
export interface Setting {
  readonly seed: number;
  /** Whether nothing goes wrong, so that each call has to do with its usual commands. */
  readonly calm: boolean;
  /** Where the first volume is from: the driver makes it, a person or the legacy driver had made it before. */
  readonly origin: "made" | "imported" | "legacy";
  /** Whether the pool has subvolumes. */
  readonly subvolumes: boolean;
  /** Whether the volumes are raw blocks that two of three nodes may share while a virtual machine moves; only with a cluster. */
  readonly shared: boolean;
  /** Whether only pods of one virtual machine let two nodes share one. */
  readonly pairs: boolean;
  /** Whether controllers have a cluster to ask. */
  readonly cluster: boolean;
  /** Whether leaders compare the router with the cluster every minute. */
  readonly rounds: boolean;
  /** Whether the attacher compares every minute, and asks again for what has failed. */
  readonly resyncs: boolean;
  /** Whether they also change what differs, or only withdraw what is older than the cluster. */
  readonly reconciles: boolean;
  /** Whether controllers remember what they have written last. */
  readonly remembers: boolean;
  /** How long a withdrawn export can still be written to, as the controllers know, in milliseconds. */
  readonly graceMs: number;
  /** Whether nothing is asked of them for a while before everything is deleted. */
  readonly rests: boolean;
  /** Whether volumes are made again under the names of deleted ones, which Kubernetes never asks for. */
  readonly recreates: boolean;
  /** How long a command of a round takes, in milliseconds: calls come between its reads and its changes. */
  readonly roundMs: number;
  /** Whether another cluster has volumes of the same names on the router: no volume goes unread then. */
  readonly others: boolean;
  /** Whether the router takes a larger size without a word, and keeps the old one. */
  readonly growsNothing: boolean;
  /** Whether it shows a larger size of an export after a toggle only, and every node is taken to have the device layer. */
  readonly toggles: boolean;
  /** How many bytes of a comment the router keeps. */
  readonly maxComment: number;
  /** How large clones are to be at least, in GiB; their source has one, or two once it has grown. */
  readonly cloneGib: number;
}

/** Returns the conditions of a seed's schedule. */
export function settingOf(seed: number): Setting {
  const isSet = (bit: number) => Math.floor(seed / bit) % 2 === 1;
  const cluster = isSet(8);
  const rounds = cluster && isSet(16);
  const graceMs = [10_000, 10_000, 0, 30_000][Math.floor(seed / 128) % 4]!;
  const rests = rounds && isSet(32);
  const shared = cluster && seed % 16 === 9;
  const origin = [11, 27].includes(seed % 32) ? "legacy" : [2, 30].includes(seed % 32) ? "imported" : "made";
  const calm = [5, 12, 21, 22].includes(seed % 32);
  const growsNothing = origin === "made" && !calm && seed % 13 === 6;
  const isCut = origin === "made" && !calm && seed % 7 === 4;
  return {
    seed,
    calm,
    origin,
    subvolumes: seed % 2 === 0,
    shared,
    pairs: !isSet(32),
    cluster,
    rounds,
    resyncs: cluster && !calm && seed % 3 === 0,
    reconciles: !(rests && isSet(256)),
    rests,
    roundMs: isSet(64) !== isSet(512) ? 4_000 : 0,
    remembers: !isSet(64),
    graceMs,
    recreates: !cluster && origin === "made",
    growsNothing,
    toggles: origin === "made" && !calm && !shared && !growsNothing && !isCut && seed % 11 === 3,
    others: seed % 3 !== 2,
    maxComment: isCut ? 80 + seed % 60 : Infinity,
    cloneGib: seed % 5 === 3 ? 3 : 1,
  };
}

/** A failure in a call, at its command or operation number `at`. */
export interface Trouble {
  readonly at: number;
  readonly what:
    /** The command is lost, or only its answer. */
    | "lost"
    | "unanswered"
    /** The router refuses it, does half of it, or does it long after the caller has given up, or was refused. */
    | "refused"
    | "half"
    | "late"
    | "refused-late"
    /** The process dies before the command, or after it. */
    | "dies-before"
    | "dies-after";
}

/** A call to the leading controller, or to a node. */
export interface CallStep {
  readonly step:
    | "create"
    | "clone"
    | "delete"
    | "publish"
    | "unpublish"
    | "expand"
    | "snapshot"
    | "deleteSnapshot"
    /** All snapshots. */
    | "list"
    /** A person imports the first volume's disk, or takes it over from the legacy driver. */
    | "import"
    | "adopt"
    | "stage"
    | "unstage"
    /** The kubelet lets the node see that the volume has grown. */
    | "grow";
  readonly volume: string;
  readonly node: string;
  readonly trouble?: Trouble | undefined;
  /** How long commands, or the operations on a node, take, in milliseconds of the clock; the values are used in turn. */
  readonly commandMs: readonly number[];
  /** Whether the next step waits for the answer. */
  readonly waits: boolean;
  /** How long the caller waits, in milliseconds. */
  readonly timeoutMs: number;
  /** The mount options of the pod that a stage is for. @default {none} */
  readonly mountFlags?: readonly string[];
  /** Whether it goes to the controller that led before, if that one lives. @default {false} */
  readonly toFormer?: true;
  /** How large a volume is to grow, in bytes. @default {2 GiB} */
  readonly bytes?: bigint;
  /** Whether a create asks for other parameters than before. @default {false} */
  readonly otherwise?: true;
  /** Whether an import is of another cluster's disk. @default {false} */
  readonly ofOthers?: true;
}

/** The leading controller stands still, or does not reach the API server, for some time; another one may take over. */
export interface IsolationStep {
  readonly step: "freeze" | "cut-controller";
  /** When it begins, in milliseconds after the step before. */
  readonly afterMs: number;
  readonly forMs: number;
  /** How long ago it has renewed its lead, in milliseconds. */
  readonly renewedMs: number;
}

/** A node does not reach the router for some time: its devices, its look at what the router offers, or both. */
export interface NodeCutStep {
  readonly step: "cut-node";
  readonly node: string;
  readonly forMs: number;
  readonly cuts: "devices" | "offers" | "all";
}

/** The router makes the volume's image anew, as where its pool is away. It does nothing while a node has the volume. */
export interface BlankStep {
  readonly step: "blank";
  readonly volume: string;
}

/** No controller reaches the API server for some time, and none can take over; or it answers slowly, and one can. */
export interface ApiCutStep {
  readonly step: "cut-api";
  readonly forMs: number;
  /**
   * Whether requests are refused, wait, or are answered by what was so some seconds before; also while calls, and not
   * only the loops, read more lists than there are connections.
   */
  readonly how: "refuses" | "hangs" | "slow" | "busy";
  /** Whether the leader can renew all the same, or, where it is slow, in time. */
  readonly renews: boolean;
}

/** A person writes a note around a volume's record; two empty texts take it away. */
export interface NoteStep {
  readonly step: "note";
  readonly volume: string;
  readonly before: string;
  readonly after: string;
}

/** A person changes a disk, and mostly takes that back later; or the router prints its row without a size. */
export interface HandStep {
  readonly step: "hand";
  readonly volume: string;
  readonly what:
    | "cut-record"
    | "other-file"
    | "second-disk"
    | "copied"
    /** The disk has another slot, or its image is away. */
    | "renamed"
    | "image-aside"
    | "mounted"
    | "grown"
    | "label-taken"
    | "unreadable"
    /** The row cannot be read, though it shows a size. */
    | "odd-row"
    /** The pool is filled with other files, or has room for so much more. */
    | "filled"
    | "scarce";
  readonly forMs: number;
  /** How much more may be promised, in MiB. @default {0} */
  readonly leftMib?: number;
}

/** The cluster shows no id of a node for some time, as while its driver is registered anew. */
export interface UnnamedStep {
  readonly step: "unnamed";
  readonly node: string;
  readonly forMs: number;
}

/**
 * The router restarts. It may lose the configuration of the last steps, and show its pools and disks late; its pools at once,
 * and their disks and files late, where `poolsFirst` is set.
 */
export interface RebootStep {
  readonly step: "reboot";
  readonly forgets: number;
  readonly disksAfterMs: number;
  readonly poolsFirst?: true;
}

/** A pod of a virtual machine that uses the volume starts on a node, ends there, or is removed. */
export interface PodStep {
  readonly step: "pod";
  readonly volume: string;
  readonly node: string;
  readonly what: "runs" | "ended" | "gone";
}

/** The leading controller does not reach the router for some time. */
export interface RouterCutStep {
  readonly step: "cut-router";
  readonly forMs: number;
}

/** What people, the attacher and the router do by themselves. */
export type OutsideStep =
  /** A person turns an export on or off. */
  | { readonly step: "edit"; readonly volume: string; readonly exported: boolean }
  /** The router restarts, and some disks have the size of some steps ago. */
  | { readonly step: "forget-sizes"; readonly forgets: number }
  /** The attacher compares its attachments with the list of volumes, as it does each minute. */
  | { readonly step: "resync" }
  /** The cluster's attachments of some steps ago come back, as from a snapshot of etcd. */
  | { readonly step: "restore-cluster"; readonly forgets: number }
  /** A second PersistentVolume names the volume for some time. */
  | { readonly step: "named-twice"; readonly volume: string; readonly forMs: number }
  | NoteStep
  | HandStep
  | PodStep
  | RouterCutStep
  | UnnamedStep;

/** Events other than calls. */
export type OtherStep =
  /** A workload writes, or reads. */
  | { readonly step: "write" | "read"; readonly volume: string; readonly node: string }
  /** A node checks whether its volumes are still its own. */
  | { readonly step: "look"; readonly node: string }
  /** A node's machine restarts, or the driver's process on it. */
  | { readonly step: "crash-node" | "restart-driver"; readonly node: string }
  /** Another controller becomes the leader. */
  | { readonly step: "take-over" }
  | RebootStep
  /** Time passes, and late commands may arrive. */
  | { readonly step: "wait"; readonly ms: number; readonly late: boolean }
  /** The wall clock of the leader jumps. */
  | { readonly step: "clock"; readonly byMs: number }
  | OutsideStep
  | BlankStep
  | ApiCutStep
  | IsolationStep
  | NodeCutStep;

export type Step = CallStep | OtherStep;
/** The volumes of a schedule; all but the first are clones. */
export const volumeNames = ["a", "b"];

/** Asked for at every step. */
const volumeIds = new Map(volumeNames.map((name) => [name, volumeIdFor(name)]));

/** The id of a volume. The legacy driver's has another form. */
export function idOf(volume: string, { origin }: Pick<Setting, "origin">): string {
  return volume === volumeNames[0] && origin === "legacy"
    ? "pvc-0f8fad5b-d9cb-469f-a165-70867728950e"
    : volumeIds.get(volume)!;
}
/** Their snapshots: a call for a snapshot names the volume at the same position. */
export const snapshotNames = ["s", "t"];
export const nodeNames = ["n1", "n2"];
/** The nodes of a schedule whose volumes may be shared. */
export const sharingNodeNames = [...nodeNames, "n3"];
/** A call without trouble. */
export const smooth = { volume: "a", node: "n1", commandMs: [0], waits: true, timeoutMs: 60_000 } as const;
/** A call without trouble. */
export function call(step: CallStep["step"], node: string, volume: string = smooth.volume): CallStep {
  return { ...smooth, step, volume, node };
}

/** How many steps ago the router's backup was made, at most. */
export const maxForgets = 15;

/** Whether a step is one of those that a call has nothing to do with: nothing is lost, late, at once with it or away. */
export function isCalm(step: Step): boolean {
  if ("commandMs" in step) return step.trouble === undefined && step.waits && step.timeoutMs >= 60_000;
  if (step.step === "hand") return step.what === "filled" || step.what === "scarce";
  return ["write", "read", "look", "note", "wait", "pod", "resync"].includes(step.step);
}
