import { gibibyte } from "../fakes/controller_deps.ts";
import type { Draw } from "./draw.ts";
import {
  byHand,
  changedMeanwhile,
  mountedBeforeCopied,
  namedTwice,
  noted,
  renamedInUse,
  scarce,
  turnedOnAndDeleted,
  turnedOnWhileCopied,
  turnedOnWhileWaiting,
  unreadable,
} from "./draw_people.ts";
import {
  call,
  maxForgets,
  nodeNames,
  type PodStep,
  type Setting,
  sharingNodeNames,
  smooth,
  type Step,
} from "./schedule.ts";

/** What a schedule has to do with. */
export interface Traits
  extends Pick<Setting, "cluster" | "shared" | "rounds" | "origin" | "reconciles" | "roundMs" | "toggles"> {
  /** How many steps come first. */
  readonly opening: number;
}

/** How often each group of steps comes into a schedule, and what it needs. */
const groups: readonly (readonly [
  chance: number,
  needs: "cluster" | "rounds" | "etcd" | "slow" | "toggles" | false,
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
  [0.06, false, unreadable],
  [0.1, false, withoutRouter],
  [0.14, false, slowNode],
  [0.08, false, nextPod],
  [0.05, false, grownInUse],
  [0.05, false, killedFormat],
  [0.06, false, turnedOnWhileCopied],
  [0.06, false, mountedBeforeCopied],
  [0.04, false, turnedOnAndDeleted],
  [0.3, "slow", unwantedAndBack],
  [0.7, "toggles", grownByToggle],
  [0.05, false, renamedInUse],
  [0.15, false, refusedPublish],
];

/** Adds what people do to disks, what an attacher does by itself, and what a router loses. */
export function withPartners(
  steps: readonly Step[],
  traits: Traits,
  draw: Draw,
): Step[] {
  const { opening, cluster, shared, rounds, reconciles, roundMs, origin } = traits;
  const all = [...steps];
  const etcd = cluster && !shared && origin !== "legacy";
  const has = { ...traits, etcd, slow: etcd && rounds && reconciles && roundMs > 0 };
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

/**
 * A node has the volume without an attachment for so long that a round withdraws it, and the pod comes back just then, there or
 * on the other node.
 */
function unwantedAndBack(draw: Draw): Step[] {
  const node = draw.pick(nodeNames);
  const isMoved = draw.chance(0.5);
  const next = isMoved ? nodeNames.find((name) => name !== node)! : node;
  return [
    { step: "wait", ms: 61_000, late: false },
    call("publish", node),
    call("stage", node),
    { step: "restore-cluster", forgets: 2 },
    { step: "wait", ms: 290_000 + 2_500 * draw.below(50), late: false },
    ...isMoved ? [call("unstage", node), call("unpublish", node)] : [],
    call("publish", next),
    ...isMoved ? [call("stage", next)] : [],
    { step: "write", volume: smooth.volume, node: next },
    { step: "wait", ms: 20_000, late: false },
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

/** A volume grows, and the router forgets that with its next boot; then it may be asked to grow to less. */
function forgottenGrowth(draw: Draw): Step[] {
  const [node, another] = [draw.pick(nodeNames), draw.pick(nodeNames)];
  const leaves = draw.chance(0.7) ? [call("unstage", node), call("unpublish", node)] : [];
  const next = call(draw.pick(["publish", "publish", "expand", "snapshot", "snapshot"]), another);
  // A router may say of half a copy that it is done.
  const trouble = next.step === "snapshot" ? { at: draw.below(6), what: "half" } as const : undefined;
  const grows = { ...call("expand", node), bytes: 4n * gibibyte };
  return [grows, ...leaves, { step: "forget-sizes", forgets: 1 + draw.below(4) }, { ...next, trouble }];
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
      trouble: draw.chance(0.3)
        ? { at: draw.below(12), what: draw.pick(["lost", "refused-late"]) }
        : undefined,
    },
    { step: "read", volume: smooth.volume, node },
    { step: "write", volume: smooth.volume, node },
  ];
}

/** A node finally refuses to give a staged volume to its pod; then the pod is tried again, or its volume taken down. */
function refusedPublish(draw: Draw): Step[] {
  const node = draw.pick(nodeNames);
  const refused: Step = {
    ...call("stage", node),
    trouble: { at: draw.pick([2, 3, 3, 3, 4]), what: "refused-late" },
    commandMs: draw.pick([[0], [0], [3_000]]),
    waits: draw.chance(0.7),
    mountFlags: draw.pick(mountFlags),
  };
  const next = draw.pick<readonly Step[]>([
    [call("stage", node)],
    [call("unstage", node)],
    [{ step: "restart-driver", node }, call("unstage", node)],
    [call("unpublish", node), call("publish", nodeNames.find((name) => name !== node)!)],
    [{ step: "wait", ms: 12_000, late: false }],
  ]);
  return [
    ...draw.chance(0.8) ? [call("unstage", node), call("publish", node)] : [],
    refused,
    ...next,
    call(draw.pick(["stage", "unstage"]), node),
    { step: "write", volume: smooth.volume, node },
  ];
}

/** The router refuses a larger size behind the "off" of a toggle, mostly, and the pod goes on. */
function grownByToggle(draw: Draw): Step[] {
  const node = draw.pick(nodeNames);
  const what = draw.pick(["half", "half", "half", "unanswered", "late", "dies-after"] as const);
  const trouble = draw.chance(0.8) ? { at: draw.pick([0, 1, 1, 1, 2]), what } : undefined;
  const grows = { ...call("expand", node), bytes: 5n * gibibyte, trouble };
  return [
    call("publish", node),
    call("stage", node),
    grows,
    { step: "write", volume: smooth.volume, node },
    ...draw.chance(0.5) ? [{ ...grows, trouble: undefined }, call("grow", node)] : [],
  ];
}

/** A volume grows while a pod uses it. */
function grownInUse(draw: Draw): Step[] {
  const node = draw.pick(nodeNames);
  const forgotten: Step[] = draw.chance(0.3) ? [{ step: "forget-sizes", forgets: 1 }] : [];
  return [call("expand", node), ...forgotten, { ...call("grow", node), commandMs: draw.pick(nodeMs) }];
}
