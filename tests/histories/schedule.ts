import { SeededRandom } from "../fakes/random.ts";

/** The conditions that hold for a whole schedule. */
export interface Setting {
  readonly seed: number;
  /** Whether the pool has subvolumes. */
  readonly subvolumes: boolean;
  /** Whether controllers have a cluster to ask. */
  readonly cluster: boolean;
  /** Whether leaders compare the router with the cluster every minute. */
  readonly rounds: boolean;
  /** Whether controllers remember what they have written last. */
  readonly remembers: boolean;
  /** How long a withdrawn export can still be written to, as the controllers know, in milliseconds. */
  readonly graceMs: number;
  /** Whether nothing is asked of them for a while before everything is deleted. */
  readonly rests: boolean;
}

/** Returns the conditions of a seed's schedule. */
export function settingOf(seed: number): Setting {
  const isSet = (bit: number) => Math.floor(seed / bit) % 2 === 1;
  const cluster = isSet(8);
  const rounds = cluster && isSet(16);
  const graceMs = [10_000, 10_000, 0, 30_000][Math.floor(seed / 128) % 4]!;
  const rests = rounds && isSet(32);
  return { seed, subvolumes: seed % 2 === 0, cluster, rounds, rests, remembers: !isSet(64), graceMs };
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
    | "stage"
    | "unstage";
  readonly volume: string;
  readonly node: string;
  readonly trouble?: Trouble | undefined;
  /** How long commands take, in milliseconds of the clock; the values are used in turn. */
  readonly commandMs: readonly number[];
  /** Whether the next step waits for the answer. */
  readonly waits: boolean;
  /** How long the caller waits, in milliseconds. */
  readonly timeoutMs: number;
  /** Whether it goes to the controller that led before, if that one lives. @default {false} */
  readonly toFormer?: true;
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

/** No controller reaches the API server for some time, and none can take over. */
export interface ApiCutStep {
  readonly step: "cut-api";
  readonly forMs: number;
  /** Whether requests are refused, or wait. */
  readonly how: "refuses" | "hangs";
  /** Whether the leader can renew all the same. */
  readonly renews: boolean;
}

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
  /** The router restarts. It may lose the configuration of the last steps, and show its pools and disks late. */
  | { readonly step: "reboot"; readonly forgets: number; readonly disksAfterMs: number }
  /** Time passes, and late commands may arrive. */
  | { readonly step: "wait"; readonly ms: number; readonly late: boolean }
  /** The wall clock of the leader jumps. */
  | { readonly step: "clock"; readonly byMs: number }
  /** A person turns an export on or off. */
  | { readonly step: "edit"; readonly volume: string; readonly exported: boolean }
  | BlankStep
  | ApiCutStep
  | IsolationStep
  | NodeCutStep;

export type Step = CallStep | OtherStep;
/** The steps that every schedule may have. */
type DrawnStep = Exclude<Step, IsolationStep | NodeCutStep | BlankStep | ApiCutStep>;

/** The volumes of a schedule; all but the first are clones. */
export const volumeNames = ["a", "b"];
/** Their snapshots: a call for a snapshot names the volume at the same position. */
export const snapshotNames = ["s", "t"];
export const nodeNames = ["n1", "n2"];
/** A call without trouble. */
export const smooth = { volume: "a", node: "n1", commandMs: [0], waits: true, timeoutMs: 60_000 } as const;
/** How many steps ago the router's backup was made, at most. */
export const maxForgets = 15;
/** The largest number of steps in a schedule. */
const maxSteps = 30;

/** How long partitions last, in milliseconds: shorter and longer than a lead, and than a Lease. */
const partitionMs = [5_000, 12_000, 20_000, 40_000, 130_000, 130_000];
/** Calls that undo a call. */
const opposites: Partial<Record<CallStep["step"], CallStep["step"]>> = {
  publish: "unpublish",
  unpublish: "publish",
  snapshot: "deleteSnapshot",
  deleteSnapshot: "snapshot",
  create: "delete",
};
/** Keeps the draws of partitions apart from those of the other steps. */
const partitionSeed = 1_000_000_007;
/** The same for those of blank images. */
const blankSeed = 2_000_000_011;
/** The same for refusals. */
const refusalSeed = 1_000_000_009;
/** The same for what only schedules with a cluster have. */
const clusterSeed = 1_500_000_001;

/** How often each step is drawn, in schedules with many node changes and in schedules with many copies. */
const weights: readonly (readonly [DrawnStep["step"], moves: number, copies: number])[] = [
  ["publish", 14, 8],
  ["unpublish", 11, 8],
  ["stage", 14, 8],
  ["unstage", 8, 6],
  ["write", 14, 10],
  ["read", 8, 4],
  ["create", 4, 2],
  ["clone", 4, 12],
  ["snapshot", 4, 14],
  ["deleteSnapshot", 2, 6],
  ["expand", 3, 1],
  ["delete", 3, 3],
  ["wait", 8, 10],
  ["look", 3, 1],
  ["reboot", 3, 2],
  ["take-over", 6, 3],
  ["crash-node", 2, 1],
  ["restart-driver", 2, 1],
  ["clock", 1, 1],
  ["edit", 2, 2],
];
const lots = [1, 2].map((column) =>
  weights.flatMap((row) => Array<DrawnStep["step"]>(row[column] as number).fill(row[0]))
);
const troubles: readonly Trouble["what"][] = [
  "lost",
  "unanswered",
  "refused",
  "half",
  "late",
  "late",
  "dies-before",
  "dies-after",
];

/**
 * Returns the schedule of a seed. It begins with a volume that a node writes to, because nothing can be lost before.
 */
export function drawSchedule(seed: number): Step[] {
  const draw = new Draw(seed);
  const drawn: Step[] = [{ step: "create", ...smooth }];
  if (draw.chance(0.7)) {
    drawn.push({ step: "publish", ...smooth }, { step: "stage", ...smooth });
    drawn.push({ step: "write", volume: "a", node: "n1" });
  }
  const count = 5 + draw.below(maxSteps - 4 - drawn.length);
  const lot = draw.pick(lots);
  const opening = drawn.length;
  for (let number = 0; number < count; number++) drawn.push(draw.step(lot));
  if (seed % 8 === 7) addBlank(drawn, opening, new Draw(seed + blankSeed));
  const all = hasPartitions(seed) ? withPartitions(drawn, opening, new Draw(seed + partitionSeed)) : drawn;
  const steps = withLateRefusals(all, new Draw(seed + refusalSeed));
  return settingOf(seed).cluster ? withClusterTroubles(steps, opening, new Draw(seed + clusterSeed)) : steps;
}

/** The router goes back to before some steps, often to before a move to the other node; often a call for one of them follows. */
function restoredBackup(draw: Draw): Step[] {
  const [from, to] = draw.chance(0.5) ? nodeNames : nodeNames.toReversed();
  const of = (step: CallStep["step"], node = to!): CallStep => ({ ...smooth, step, node });
  const moves = draw.chance(0.4)
    ? [of("unstage", from), of("unpublish", from), of("publish"), of("stage")]
    : [];
  const forgets = 1 + draw.below(draw.pick([3, maxForgets]));
  const reboot: Step = { step: "reboot", forgets, disksAfterMs: draw.pick([0, 0, 5_000]) };
  const next = of(draw.pick(["publish", "publish", "unpublish"]), draw.pick(nodeNames));
  return [...moves, reboot, ...draw.chance(0.6) ? [next] : []];
}

/** A node stages again under an unchanged attachment, after a crash or a restart of the pod; the image may be blank by then. */
function stagedAgain(draw: Draw): Step[] {
  const node = draw.pick(nodeNames);
  const ends: Step = draw.chance(0.5) ? { step: "crash-node", node } : { ...smooth, step: "unstage", node };
  const blank: Step[] = draw.chance(0.4) ? [{ step: "blank", volume: smooth.volume }] : [];
  return [ends, ...blank, { ...smooth, step: "stage", node }];
}

/** Half of them have one or two times without the API server, and a third a router whose backup of some steps ago comes back. */
function withClusterTroubles(steps: readonly Step[], opening: number, draw: Draw): Step[] {
  const all = [...steps];
  if (draw.chance(0.35)) {
    const at = opening + draw.below(all.length - opening);
    all.splice(at, 0, ...restoredBackup(draw));
  }
  if (draw.chance(0.15)) all.splice(opening + draw.below(all.length - opening), 0, ...stagedAgain(draw));
  const cuts = draw.chance(0.5) ? 1 + draw.below(2) : 0;
  for (let left = cuts; left > 0; left--) {
    const how = draw.pick(["refuses", "hangs"] as const);
    const step = { step: "cut-api", forMs: draw.pick(partitionMs), how, renews: draw.chance(0.6) } as const;
    all.splice(opening + draw.below(all.length - opening), 0, step);
  }
  return all;
}

/** Lets the router carry out later most of what it refuses, and refuse some of what it carries out late. */
function withLateRefusals(steps: readonly Step[], draw: Draw): Step[] {
  return steps.map((step) => {
    if (!("commandMs" in step) || step.trouble === undefined) return step;
    const { what } = step.trouble;
    const isChanged = what === "refused" && draw.chance(0.7) || what === "late" && draw.chance(0.3);
    return isChanged ? { ...step, trouble: { ...step.trouble, what: "refused-late" } } : step;
  });
}

/** Takes the volume off its node at that step or soon after, and back onto it when its image is empty. */
function addBlank(steps: Step[], opening: number, draw: Draw): void {
  const at = Math.min(opening + draw.below(4), steps.length);
  steps.splice(
    at,
    0,
    { ...smooth, step: "unstage" },
    { step: "blank", volume: smooth.volume },
    { ...smooth, step: "stage" },
  );
}

/** Three quarters of the schedules, with subvolumes and without. */
function hasPartitions(seed: number): boolean {
  return seed % 8 < 6;
}

/**
 * Replaces some steps after the opening ones by partitions. A partition of a controller lets the call before it go on meanwhile, and some of
 * the later calls go to the controller that led before.
 */
function withPartitions(steps: readonly Step[], opening: number, draw: Draw): Step[] {
  const all = [...steps];
  for (let left = 1 + draw.below(3); left > 0; left--) {
    const at = opening + draw.below(all.length - opening);
    if (draw.chance(0.35)) draw.cutNode(all, at);
    else draw.partControllers(all, at);
  }
  return all;
}

class Draw {
  readonly #random: SeededRandom;

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
  }

  below(limit: number): number {
    return Math.floor(this.#random.fraction() * limit);
  }

  chance(probability: number): boolean {
    return this.#random.fraction() < probability;
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)]!;
  }

  /** Cuts a node off at that step; often it looks for fences meanwhile. */
  cutNode(steps: Step[], at: number): void {
    const node = this.pick(nodeNames);
    const cuts = this.pick(["devices", "offers", "all", "all"] as const);
    steps[at] = { step: "cut-node", node, forMs: this.pick(partitionMs), cuts };
    if (at + 1 < steps.length && this.chance(0.5)) steps[at + 1] = { step: "look", node };
  }

  /** Parts the leader from the others at that step, often while a call runs that a later leader is asked to undo. */
  partControllers(steps: Step[], at: number): void {
    const step = this.pick(["freeze", "cut-controller"] as const);
    const afterMs = this.pick([0, 2_000, 7_000]);
    steps[at] = { step, afterMs, forMs: this.pick(partitionMs), renewedMs: this.pick([0, 2_400]) };
    const before = steps[at - 1];
    if (before !== undefined && "commandMs" in before && this.chance(0.7)) {
      steps[at - 1] = { ...before, waits: false, commandMs: [this.pick([1, 3_000, 12_000]), this.below(4)] };
      const opposite = opposites[before.step];
      if (opposite !== undefined && at + 2 < steps.length && this.chance(0.5)) {
        steps[at + 2] = { ...before, step: opposite, trouble: undefined, waits: true, timeoutMs: 60_000 };
      }
    }
    if (at + 1 < steps.length && this.chance(0.7)) {
      steps[at + 1] = { step: "wait", ms: this.pick([4_000, 16_000, 16_000]), late: false };
    }
    if (this.chance(0.4)) this.rival(steps, at);
    for (const [index, step] of steps.entries()) {
      if (index <= at || !("commandMs" in step) || !this.chance(0.4)) continue;
      const trouble = this.chance(0.3) ? { at: this.below(4), what: "late" } as const : step.trouble;
      steps[index] = { ...step, trouble, toFormer: true };
    }
  }

  /** Lets both controllers be asked for opposite things after the next one leads, if there are as many steps. */
  rival(steps: Step[], at: number): void {
    if (at + 4 >= steps.length) return;
    const step = this.pick(["publish", "unpublish", "snapshot", "deleteSnapshot"] as const);
    const call = { ...smooth, step, node: this.pick(nodeNames) };
    const trouble = this.chance(0.7) ? { at: this.below(3), what: "late" } as const : undefined;
    steps[at + 1] = { step: "wait", ms: 16_000, late: false };
    steps[at + 2] = call;
    steps[at + 3] = { ...call, step: opposites[step]!, trouble, toFormer: true };
    steps[at + 4] = call;
  }

  step(lot: readonly DrawnStep["step"][]): DrawnStep {
    const step = this.pick(lot);
    const volume = this.chance(0.8) ? volumeNames[0]! : this.pick(volumeNames);
    const node = this.pick(nodeNames);
    switch (step) {
      case "write":
      case "read":
        return { step, volume, node };
      case "look":
      case "crash-node":
      case "restart-driver":
        return { step, node };
      case "take-over":
        return { step };
      case "reboot":
        return { step, forgets: this.chance(0.2) ? 1 : 0, disksAfterMs: this.pick([0, 0, 5_000, 100_000]) };
      case "wait":
        return { step, ms: this.pick([100, 2_000, 9_000, 12_000, 125_000]), late: this.chance(0.3) };
      case "clock":
        return { step, byMs: this.pick([-3_600_000, -20_000, 20_000, 3_600_000]) };
      case "edit":
        return { step, volume, exported: this.chance(0.4) };
      default:
        return {
          step,
          volume,
          node,
          trouble: this.chance(0.3)
            ? { at: this.below(this.pick([3, 12])), what: this.pick(troubles) }
            : undefined,
          commandMs: this.chance(0.6)
            ? [0]
            : [this.below(4), this.pick([0, 1, 3_000, 12_000]), this.below(4)],
          waits: this.chance(0.75),
          timeoutMs: this.chance(0.8) ? 60_000 : 5_000,
        };
    }
  }
}
