import { Draw } from "./draw.ts";
import { drawCalm } from "./draw_calm.ts";
import { withPartners } from "./draw_partners.ts";
import {
  type ApiCutStep,
  type BlankStep,
  type CallStep,
  type HandStep,
  type IsolationStep,
  maxForgets,
  type NodeCutStep,
  nodeNames,
  type NoteStep,
  type PodStep,
  type RouterCutStep,
  settingOf,
  smooth,
  type Step,
  type Trouble,
  type UnnamedStep,
  volumeNames,
} from "./schedule.ts";

/** The steps that every schedule may have. */
type DrawnStep = Exclude<
  Step,
  | IsolationStep
  | NodeCutStep
  | BlankStep
  | ApiCutStep
  | NoteStep
  | HandStep
  | RouterCutStep
  | PodStep
  | UnnamedStep
  | { readonly step: "resync" | "forget-sizes" | "restore-cluster" | "named-twice" }
>;

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
/** The same for what people, attachers and routers do beside that. */
const moreSeed = 1_700_000_009;
/** The same for lists of snapshots, and volumes that are made again. */
const lifeSeed = 1_900_000_009;

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
  const setting = settingOf(seed);
  const { cluster, calm } = setting;
  if (calm) return drawCalm(new Draw(seed));
  const draw = new StepDraw(seed);
  const drawn: Step[] = [{ step: "create", ...smooth }];
  if (draw.chance(0.7)) {
    drawn.push({ step: "publish", ...smooth }, { step: "stage", ...smooth });
    drawn.push({ step: "write", volume: "a", node: "n1" });
  }
  const count = 5 + draw.below(maxSteps - 4 - drawn.length);
  const lot = draw.pick(lots);
  const opening = drawn.length;
  for (let number = 0; number < count; number++) drawn.push(draw.step(lot));
  if (seed % 8 === 7) addBlank(drawn, opening, new StepDraw(seed + blankSeed));
  const all = hasPartitions(seed)
    ? withPartitions(drawn, opening, new StepDraw(seed + partitionSeed))
    : drawn;
  const steps = withLateRefusals(all, new StepDraw(seed + refusalSeed));
  const troubled = cluster ? withClusterTroubles(steps, opening, new StepDraw(seed + clusterSeed)) : steps;
  const whole = withPartners(troubled, { ...setting, opening }, new Draw(seed + moreSeed));
  return withLives(whole, opening, cluster, new Draw(seed + lifeSeed));
}

/** A third lists the snapshots; without a cluster a third makes a deleted volume or clone again, often at once. */
function withLives(steps: readonly Step[], opening: number, cluster: boolean, draw: Draw): Step[] {
  const all = [...steps];
  const add = (...added: Step[]) => all.splice(opening + draw.below(all.length - opening + 1), 0, ...added);
  const call = (step: CallStep["step"], volume = smooth.volume as string): CallStep => ({
    ...smooth,
    step,
    volume,
  });
  if (draw.chance(0.35)) {
    const volume = draw.pick(volumeNames);
    add(...draw.chance(0.5) ? [call("snapshot", volume)] : [], call("list"));
    add(call("list"));
  }
  if (!cluster && draw.chance(0.35)) {
    const volume = draw.pick(volumeNames);
    const leaves = nodeNames.flatMap((node): Step[] =>
      (["unstage", "unpublish"] as const).map((step) => ({ ...call(step, volume), node }))
    );
    const what = draw.pick(["half", "lost", "late", "refused-late", undefined] as const);
    const trouble = what === undefined ? undefined : { at: draw.below(3), what };
    const waits: Step = { step: "wait", ms: draw.pick([100, 11_000]), late: draw.chance(0.5) };
    add(
      ...leaves,
      { ...call("delete", volume), trouble },
      ...draw.chance(0.5) ? [call("delete", volume)] : [],
      call(volume === smooth.volume ? "create" : "clone", volume),
      ...draw.chance(0.4) ? [waits] : [],
      call("publish", volume),
      call("stage", volume),
      { step: "read", volume, node: smooth.node },
    );
  }
  return all;
}

/** The router goes back to before some steps, often to before a move to the other node; often a call for one of them follows. */
function restoredBackup(draw: StepDraw): Step[] {
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
function stagedAgain(draw: StepDraw): Step[] {
  const node = draw.pick(nodeNames);
  const ends: Step = draw.chance(0.5) ? { step: "crash-node", node } : { ...smooth, step: "unstage", node };
  const blank: Step[] = draw.chance(0.4) ? [{ step: "blank", volume: smooth.volume }] : [];
  const mountFlags = draw.pick([[], [], ["noatime"]]);
  return [ends, ...blank, { ...smooth, step: "stage", node, mountFlags }];
}

/** Half of them have one or two times without the API server, and a third a router whose backup of some steps ago comes back. */
function withClusterTroubles(steps: readonly Step[], opening: number, draw: StepDraw): Step[] {
  const all = [...steps];
  if (draw.chance(0.35)) {
    const at = opening + draw.below(all.length - opening);
    all.splice(at, 0, ...restoredBackup(draw));
  }
  if (draw.chance(0.15)) all.splice(opening + draw.below(all.length - opening), 0, ...stagedAgain(draw));
  const cuts = draw.chance(0.5) ? 1 + draw.below(2) : 0;
  for (let left = cuts; left > 0; left--) {
    const how = draw.pick(["refuses", "hangs", "slow", "busy"] as const);
    const step = { step: "cut-api", forMs: draw.pick(partitionMs), how, renews: draw.chance(0.6) } as const;
    all.splice(opening + draw.below(all.length - opening), 0, step);
  }
  return all;
}

/** Lets the router carry out later most of what it refuses, and refuse some of what it carries out late. */
function withLateRefusals(steps: readonly Step[], draw: StepDraw): Step[] {
  return steps.map((step) => {
    if (!("commandMs" in step) || step.trouble === undefined) return step;
    const { what } = step.trouble;
    const isChanged = what === "refused" && draw.chance(0.7) || what === "late" && draw.chance(0.3);
    return isChanged ? { ...step, trouble: { ...step.trouble, what: "refused-late" } } : step;
  });
}

/** Takes the volume off its node at that step or soon after, and back onto it when its image is empty. */
function addBlank(steps: Step[], opening: number, draw: StepDraw): void {
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
function withPartitions(steps: readonly Step[], opening: number, draw: StepDraw): Step[] {
  const all = [...steps];
  for (let left = 1 + draw.below(3); left > 0; left--) {
    const at = opening + draw.below(all.length - opening);
    if (draw.chance(0.35)) draw.cutNode(all, at);
    else draw.partControllers(all, at);
  }
  return all;
}

class StepDraw extends Draw {
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
