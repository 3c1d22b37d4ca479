import { gibibyte } from "../fakes/controller_deps.ts";
import type { Draw } from "./draw.ts";
import {
  type CallStep,
  type HandStep,
  maxForgets,
  nodeNames,
  type PodStep,
  type Setting,
  sharingNodeNames,
  smooth,
  type Step,
  volumeNames,
} from "./schedule.ts";

/** What a person does, each as often as the others. */
const hands: readonly HandStep["what"][] = [
  "cut-record",
  "other-file",
  "second-disk",
  "copied",
  "mounted",
  "grown",
  "label-taken",
];

/** What a schedule has to do with. */
export interface Traits extends Pick<Setting, "cluster" | "shared" | "rounds" | "origin"> {
  /** How many steps come first. */
  readonly opening: number;
}

/** How often each group of steps comes into a schedule, and what it needs. */
const groups: readonly (readonly [
  chance: number,
  needs: "cluster" | "rounds" | "etcd" | false,
  steps: (draw: Draw) => Step[],
])[] = [
  [0.08, "cluster", forcedDetach],
  [0.15, "cluster", resynced],
  [0.06, "etcd", restoredCluster],
  [0.08, "cluster", namedTwice],
  [0.06, false, scarce],
  [0.15, "rounds", turnedOnWhileWaiting],
  [0.12, false, noted],
  [0.05, false, createdAtBoot],
  [0.05, false, createdAfterBackup],
  [0.06, false, changedMeanwhile],
  [0.14, false, byHand],
  [0.08, false, forgottenGrowth],
  [0.06, false, (draw) => withAttempt(draw, { ...aHand(draw), what: "unreadable" })],
  [0.1, false, withoutRouter],
  [0.14, false, slowNode],
  [0.08, false, nextPod],
  [0.05, false, grownInUse],
  [0.05, false, killedFormat],
  [0.06, false, turnedOnWhileCopied],
  [0.06, false, mountedBeforeCopied],
];

/** Adds what people do to disks, what an attacher does by itself, and what a router loses. */
export function withPartners(
  steps: readonly Step[],
  traits: Traits,
  draw: Draw,
): Step[] {
  const { opening, cluster, shared, rounds, origin } = traits;
  const all = [...steps];
  const has = { ...traits, etcd: cluster && !shared && origin !== "legacy" };
  for (const [chance, needs, added] of groups) {
    if (needs && !has[needs] || !draw.chance(chance)) continue;
    all.splice(opening + draw.below(all.length - opening + 1), 0, ...added(draw));
  }
  // Nothing that is asked afterwards hides what rounds do.
  if (rounds && has.etcd && draw.chance(0.15)) all.push(...restoredCluster(draw));
  if (origin === "imported") return withImports(all, draw);
  if (origin === "legacy") return withLegacy(all, draw);
  return shared ? withMigrations(all, opening, draw) : all;
}

/** A person imports the disk first, unless its publish does; and asks for it again, or for another cluster's. */
function withImports(steps: readonly Step[], draw: Draw): Step[] {
  const all = [...steps];
  const imports = call("import", nodeNames[0]!);
  const odd: Step = {
    step: "hand",
    volume: smooth.volume,
    what: "odd-row",
    forMs: draw.pick([1_000, 200_000]),
  };
  all.splice(1 + draw.below(all.length), 0, draw.chance(0.5) ? imports : { ...imports, ofOthers: true });
  const first = [...draw.chance(0.4) ? [odd] : [], ...draw.chance(0.7) ? [imports] : []];
  return [...first, ...all];
}

/** A person takes the volume over, sometimes while the router brings its disks back. */
function withLegacy(steps: readonly Step[], draw: Draw): Step[] {
  const all = [...steps];
  const adopt = call("adopt", nodeNames[0]!);
  if (draw.chance(0.5)) all.splice(1 + draw.below(all.length), 0, adopt);
  const boot: Step = {
    step: "reboot",
    forgets: 0,
    disksAfterMs: 100_000,
    ...draw.chance(0.5) ? poolsFirst : {},
  };
  return draw.chance(0.3) ? [boot, adopt, ...all] : all;
}

/** A boot after which the router shows its pools at once. */
const poolsFirst = { poolsFirst: true } as const;

/** Right after a boot the router shows its pools, and neither disks nor files, and the volume is asked for again. */
function createdAtBoot(draw: Draw): Step[] {
  const volume = smooth.volume;
  const before: Step[] = draw.chance(0.5)
    ? [{ step: "take-over" }]
    : [{ step: "wait", ms: 61_000, late: false }];
  return [
    ...before,
    { step: "reboot", forgets: 0, disksAfterMs: 100_000, ...poolsFirst },
    call(draw.pick(["create", "create", "delete", "publish"]), draw.pick(nodeNames), volume),
  ];
}

/** The router comes back without the volume's disk, mostly, and with its image; then the volume is asked for again. */
function createdAfterBackup(draw: Draw): Step[] {
  const wait: Step = { step: "wait", ms: 200_000, late: false };
  const next = call(draw.pick(["publish", "delete", "snapshot"]), draw.pick(nodeNames));
  return [
    { step: "reboot", forgets: maxForgets, disksAfterMs: 0 },
    wait,
    call("create", nodeNames[0]!),
    next,
  ];
}

/** A person turns an export on while an attachment waits, and nobody asks for anything for some minutes. */
function turnedOnWhileWaiting(draw: Draw): Step[] {
  const volume = smooth.volume;
  const [from, to] = draw.chance(0.5) ? nodeNames : nodeNames.toReversed();
  const leaves = nodeNames.flatMap((node) => [call("unstage", node), call("unpublish", node)]);
  const wait: Step = { step: "wait", ms: 125_000, late: false };
  return [
    call("publish", from!),
    ...leaves,
    { ...call("publish", to!), trouble: { at: 0, what: "lost" } },
    { step: "edit", volume, exported: true },
    ...[wait, wait, wait, wait],
  ];
}

/** The router has the disk mounted when a volume's copy begins, and perhaps not any more when it ends. */
function mountedBeforeCopied(draw: Draw): Step[] {
  const [node, volume] = [draw.pick(nodeNames), smooth.volume];
  const leaves = nodeNames.flatMap((one) => [call("unstage", one), call("unpublish", one)]);
  return [
    call("publish", node),
    ...leaves,
    { ...call(draw.pick(["snapshot", "clone"]), node), waits: false },
    { step: "wait", ms: 2_000, late: false },
    { step: "hand", volume, what: "mounted", forMs: draw.pick([5_000, 10_000, 31_000]) },
    { step: "wait", ms: 40_000, late: false },
  ];
}

/** Two objects of the cluster name a volume that is to be deleted. */
function namedTwice(draw: Draw): Step[] {
  const volume = draw.pick(volumeNames);
  const leaves = nodeNames.flatMap((
    node,
  ) => [call("unstage", node, volume), call("unpublish", node, volume)]);
  const deletes = call("delete", nodeNames[0]!, volume);
  return [{ step: "named-twice", volume, forMs: 30_000 }, ...leaves, deletes, ...leaves];
}

/** Others promise most of the pool while a controller may believe that there is room. */
function scarce(draw: Draw): Step[] {
  const leftMib = draw.pick([0, 512, 1_536, 2_560]);
  const hand: Step = { step: "hand", volume: smooth.volume, what: "scarce", forMs: 200_000, leftMib };
  const before = draw.chance(0.5) ? [call("delete", nodeNames[0]!, volumeNames[1]!)] : [];
  return [
    ...before,
    call("clone", nodeNames[0]!),
    hand,
    call("clone", nodeNames[0]!),
    call("create", nodeNames[0]!),
  ];
}

/** A person turns the export of a volume on that is being copied, where the pool has no subvolumes. */
function turnedOnWhileCopied(draw: Draw): Step[] {
  const [node, volume] = [draw.pick(nodeNames), smooth.volume];
  const leaves = nodeNames.flatMap((one) => [call("unstage", one), call("unpublish", one)]);
  return [
    call("publish", node),
    ...leaves,
    { step: "wait", ms: 31_000, late: false },
    { ...call(draw.pick(["snapshot", "clone"]), node), waits: false },
    { step: "wait", ms: 2_000, late: false },
    { step: "edit", volume, exported: true },
    { step: "wait", ms: 12_000, late: false },
  ];
}

/** A person takes a note away, or points the disk at another file, between a read and the change that follows from it. */
function changedMeanwhile(draw: Draw): Step[] {
  const [node, volume] = [draw.pick(nodeNames), smooth.volume];
  const leaves = nodeNames.flatMap((one) => [call("unstage", one), call("unpublish", one)]);
  const isNote = draw.chance(0.5);
  const note: Step = { step: "note", volume, before: "x".repeat(1 + draw.below(60)), after: "" };
  const hand: Step = { step: "hand", volume, what: "other-file", forMs: draw.pick([30_000, 200_000]) };
  const next = draw.pick(
    isNote ? ["publish", "expand", "unpublish"] as const : ["publish", "expand"] as const,
  );
  return [
    ...leaves,
    ...isNote ? [note] : [],
    { step: "wait", ms: 31_000, late: false },
    { ...call(next, node), commandMs: [0, 12_000], waits: false },
    { step: "wait", ms: 2_000, late: false },
    isNote ? { ...note, before: "" } : hand,
    { step: "wait", ms: 12_000, late: false },
  ];
}

/** One to three migrations, and a third node in the place of the second for some steps. */
function withMigrations(steps: readonly Step[], opening: number, draw: Draw): Step[] {
  const all = steps.map((step) =>
    "node" in step && step.node === nodeNames[1] && draw.chance(0.3) ? { ...step, node: "n3" } : step
  );
  for (let left = 1 + draw.below(3); left > 0; left--) {
    all.splice(opening + draw.below(all.length - opening + 1), 0, ...migration(draw));
  }
  return all;
}

/**
 * A virtual machine moves from one node to another: a pod of it starts there, and then the first one ends. Sometimes a third
 * node asks meanwhile, nobody knows of a pod, or the first node is away and never gives the volume up.
 */
function migration(draw: Draw): Step[] {
  const from = draw.pick(sharingNodeNames);
  const to = draw.pick(sharingNodeNames.filter((name) => name !== from));
  const third = sharingNodeNames.find((name) => name !== from && name !== to)!;
  const pod = (node: string, what: PodStep["what"]): Step => ({
    step: "pod",
    volume: smooth.volume,
    node,
    what,
  });
  const write = (node: string): Step => ({ step: "write", volume: smooth.volume, node });
  const begins = [call("publish", from), call("stage", from), pod(from, "runs"), write(from)];
  const joins = [call("publish", to), call("stage", to), write(to)];
  const asks = [
    ...draw.chance(0.5) ? [pod(third, "runs")] : [],
    call("publish", third),
    call("stage", third),
  ];
  const away: Step = {
    step: "cut-node",
    node: from,
    forMs: draw.pick([5_000, 130_000, 400_000]),
    cuts: "all",
  };
  const ends = [
    ...draw.chance(0.3) ? [away] : [],
    pod(from, draw.pick(["ended", "gone"])),
    ...draw.chance(0.7) ? [call("unstage", from)] : [],
    ...draw.chance(0.7) ? [call("unpublish", from)] : [],
  ];
  // The first node is lost, and the machine is started on another one.
  if (draw.chance(0.25)) {
    return [...begins, pod(from, "ended"), pod(to, "runs"), ...joins, call("unpublish", from)];
  }
  const waits: Step = { step: "wait", ms: draw.pick([100, 61_000]), late: draw.chance(0.3) };
  if (draw.chance(0.2)) {
    const ends = [pod(from, "gone"), call("unstage", from), call("unpublish", from), write(to)];
    return [...begins, pod(to, "runs"), ...joins, ...registeredAnew(to), ...ends];
  }
  return [
    ...draw.chance(0.8) ? begins : [],
    ...draw.chance(0.8) ? [pod(to, "runs")] : [],
    ...joins,
    ...draw.chance(0.3) ? asks : [],
    ...draw.chance(0.8) ? ends : [],
    ...draw.chance(0.4) ? [waits] : [],
    ...draw.chance(0.4) ? asks : [],
  ];
}

/** The driver of a node is registered anew, and takes its time. */
function registeredAnew(node: string): Step[] {
  const wait: Step = { step: "wait", ms: 125_000, late: false };
  return [{ step: "unnamed", node, forMs: 700_000 }, ...Array<Step>(6).fill(wait)];
}

function call(step: CallStep["step"], node: string, volume: string = smooth.volume): CallStep {
  return { ...smooth, step, volume, node };
}

/** A snapshot of etcd comes back, often one of before a move to the other node; then the attacher compares. */
function restoredCluster(draw: Draw): Step[] {
  const [from, to] = draw.chance(0.5) ? nodeNames : nodeNames.toReversed();
  const leaves = [call("unstage", from!), call("unpublish", from!)];
  const moves = [call("publish", from!), ...leaves, call("publish", to!), call("stage", to!)];
  const isMoved = draw.chance(0.6);
  const forgets = isMoved ? draw.pick([2, 3, 4]) : 1 + draw.below(8);
  const next = call(draw.pick(["publish", "unpublish"]), draw.pick(nodeNames));
  const wait: Step = { step: "wait", ms: 125_000, late: false };
  return [
    ...isMoved ? moves : [],
    { step: "restore-cluster", forgets },
    ...draw.chance(0.5) ? [wait, wait, wait] : [],
    ...draw.chance(0.5) ? [next] : [],
    ...draw.chance(0.5) ? [{ step: "resync" } as const] : [],
  ];
}

/** A node is away for so long that its volume is taken from it by force; then it comes back. */
function forcedDetach(draw: Draw): Step[] {
  const [from, to] = draw.chance(0.5) ? [nodeNames[0]!, nodeNames[1]!] : [nodeNames[1]!, nodeNames[0]!];
  return [
    {
      step: "cut-node",
      node: from,
      forMs: draw.pick([370_000, 400_000]),
      cuts: draw.pick(["devices", "all"]),
    },
    { step: "write", volume: smooth.volume, node: from },
    { step: "wait", ms: 361_000, late: false },
    call("unpublish", from),
    call("publish", to),
    call("stage", to),
    { step: "write", volume: smooth.volume, node: to },
    { step: "wait", ms: 60_000, late: false },
    { step: "look", node: from },
    { step: "read", volume: smooth.volume, node: to },
  ];
}

/** The attacher compares, sometimes after a person has turned an export off. */
function resynced(draw: Draw): Step[] {
  const off: Step = { step: "edit", volume: smooth.volume, exported: false };
  return [...draw.chance(0.4) ? [off] : [], { step: "resync" }];
}

/** The leader loses the router for longer than one command, often with a slow call under way. */
function withoutRouter(draw: Draw): Step[] {
  const cut: Step = { step: "cut-router", forMs: draw.pick([7_000, 20_000, 70_000, 130_000]) };
  const going = call(draw.pick(["publish", "unpublish", "unpublish", "delete"]), draw.pick(nodeNames));
  const next = call(draw.pick(["publish", "unpublish"]), draw.pick(nodeNames));
  if (draw.chance(0.4)) return [cut];
  return [
    { ...going, commandMs: [draw.pick([3_000, 12_000])], waits: false },
    { step: "wait", ms: draw.pick([2_000, 9_000]), late: false },
    cut,
    { step: "wait", ms: 125_000, late: false },
    next,
    { step: "wait", ms: 100, late: true },
  ];
}

/** A note of 1 to 250 bytes; often the volume is detached with it. */
function noted(draw: Draw): Step[] {
  const text = () => draw.pick(["x", "é"]).repeat(1 + draw.below(draw.pick([20, 125])));
  const [before, after] = [draw.chance(0.5) ? text() : "", draw.chance(0.7) ? text() : "-"];
  const note: Step = { step: "note", volume: smooth.volume, before, after };
  const next = call(draw.pick(["unpublish", "publish", "expand"]), draw.pick(nodeNames));
  return draw.chance(0.6) ? [note, next] : [note];
}

function aHand(draw: Draw): HandStep {
  const volume = draw.chance(0.8) ? volumeNames[0]! : draw.pick(volumeNames);
  return { step: "hand", volume, what: draw.pick(hands), forMs: draw.pick([1_000, 30_000, 200_000]) };
}

function byHand(draw: Draw): Step[] {
  return withAttempt(draw, aHand(draw));
}

/** A person's change, mostly of a volume that was just taken from its nodes, and mostly with a call before it is taken back. */
function withAttempt(draw: Draw, hand: HandStep): Step[] {
  const { volume } = hand;
  const before = draw.chance(0.6)
    ? nodeNames.flatMap((node) => [call("unstage", node), call("unpublish", node)])
    : [];
  const [node, next] = [
    draw.pick(nodeNames),
    draw.pick(["publish", "publish", "delete", "expand", "snapshot", "create"] as const),
  ];
  const after = draw.chance(0.7) ? [call(next, node, volume), call("stage", node, volume)] : [];
  return [...before, hand, ...after];
}

/** A volume grows, and the router forgets that with its next boot; then it may be asked to grow to less. */
function forgottenGrowth(draw: Draw): Step[] {
  const [node, another] = [draw.pick(nodeNames), draw.pick(nodeNames)];
  const leaves = draw.chance(0.7) ? [call("unstage", node), call("unpublish", node)] : [];
  const next = call(draw.pick(["publish", "publish", "expand", "snapshot"]), another);
  const grows = { ...call("expand", node), bytes: 4n * gibibyte };
  return [grows, ...leaves, { step: "forget-sizes", forgets: 1 + draw.below(4) }, next];
}

/** How long the operations of a node take in turn, in milliseconds: for all together it may be less or more than a call has. */
const nodeMs: readonly (readonly number[])[] = [
  [300],
  [2_000],
  [9_000],
  [0, 0, 0, 0, 20_000],
  [0, 0, 20_000],
  [0, 70_000],
];
/** The mount options of pods. */
const mountFlags: readonly (readonly string[])[] = [[], ["noatime"], ["ro"]];

/** Something happens in the midst of what a node does, and then the same or its opposite is asked for. */
function slowNode(draw: Draw): Step[] {
  const node = draw.pick(nodeNames);
  const first = draw.chance(0.6) ? [call("publish", node)] : [];
  const going = call(draw.pick(["stage", "stage", "stage", "unstage"]), node);
  const timeoutMs = draw.pick([5_000, 60_000]);
  const meanwhile = draw.pick<readonly Step[]>([
    [],
    [{ step: "crash-node", node }],
    [{ step: "restart-driver", node }],
    [{ step: "restart-driver", node }],
    [{
      step: "cut-node",
      node,
      forMs: draw.pick([5_000, 40_000, 130_000]),
      cuts: draw.pick(["devices", "all"]),
    }],
    [{ step: "reboot", forgets: 0, disksAfterMs: draw.pick([0, 5_000]) }],
    [call("unpublish", node)],
    [call("expand", node)],
  ]);
  return [
    ...first,
    { ...going, commandMs: draw.pick(nodeMs), waits: false, timeoutMs, mountFlags: draw.pick(mountFlags) },
    { step: "wait", ms: draw.pick([0, 500, 3_000, 12_000]), late: false },
    ...meanwhile,
    { step: "wait", ms: draw.pick([2_000, 125_000]), late: false },
    call(draw.pick(["stage", "stage", "unstage"]), node),
    { step: "write", volume: smooth.volume, node },
  ];
}

/** The driver is killed in the midst of a stage's third slow step, which makes the file system of a new volume. */
function killedFormat(draw: Draw): Step[] {
  const node = draw.pick(nodeNames);
  const kills = draw.pick(["restart-driver", "crash-node"] as const);
  return [
    call("publish", node),
    { ...call("stage", node), commandMs: [0, 0, 20_000, 0, 0, 0, 0, 0, 0], waits: false },
    { step: "wait", ms: draw.pick([5_000, 12_000]), late: false },
    { step: kills, node },
    call("stage", node),
  ];
}

/** A pod writes and ends. The next one comes with other mount options, at once or hours later. */
function nextPod(draw: Draw): Step[] {
  const node = draw.pick(nodeNames);
  const ends: readonly Step[] = draw.chance(0.3) ? [{ step: "crash-node", node }] : [call("unstage", node)];
  const leaves = draw.chance(0.4);
  const hours: Step = { step: "wait", ms: 3 * 3_600_000, late: false };
  return [
    { step: "write", volume: smooth.volume, node },
    ...ends,
    ...leaves ? [call("unpublish", node)] : [],
    ...draw.chance(0.3) ? [{ step: "blank", volume: smooth.volume } as const] : [],
    ...draw.chance(0.2) ? [hours] : [],
    ...leaves ? [call("publish", node)] : [],
    {
      ...call("stage", node),
      mountFlags: draw.pick(mountFlags),
      trouble: draw.chance(0.3) ? { at: draw.below(12), what: "lost" } : undefined,
    },
    { step: "read", volume: smooth.volume, node },
    { step: "write", volume: smooth.volume, node },
  ];
}

/** A volume grows while a pod uses it. */
function grownInUse(draw: Draw): Step[] {
  const node = draw.pick(nodeNames);
  const forgotten: Step[] = draw.chance(0.3) ? [{ step: "forget-sizes", forgets: 1 }] : [];
  return [call("expand", node), ...forgotten, { ...call("grow", node), commandMs: draw.pick(nodeMs) }];
}
