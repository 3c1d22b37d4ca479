import type { Draw } from "./draw.ts";
import { call, type HandStep, nodeNames, smooth, type Step, volumeNames } from "./schedule.ts";

/** What a person does, each as often as the others. */
const hands: readonly HandStep["what"][] = [
  "cut-record",
  "other-file",
  "second-disk",
  "copied",
  "renamed",
  "image-aside",
  "mounted",
  "grown",
  "label-taken",
];

/** Every node gives the volume up. */
function leaving(volume: string = smooth.volume): Step[] {
  return nodeNames.flatMap((node) => [call("unstage", node, volume), call("unpublish", node, volume)]);
}

/** A person turns an export on while an attachment waits, and nobody asks for anything for some minutes. */
export function turnedOnWhileWaiting(draw: Draw): Step[] {
  const volume = smooth.volume;
  const [from, to] = draw.chance(0.5) ? nodeNames : nodeNames.toReversed();
  const wait: Step = { step: "wait", ms: 125_000, late: false };
  return [
    call("publish", from!),
    ...leaving(volume),
    { ...call("publish", to!), trouble: { at: 0, what: "lost" } },
    { step: "edit", volume, exported: true },
    ...[wait, wait, wait, wait],
  ];
}

/** The router has the disk mounted when a volume's copy begins, and perhaps not any more when it ends. */
export function mountedBeforeCopied(draw: Draw): Step[] {
  const [node, volume] = [draw.pick(nodeNames), smooth.volume];
  return [
    call("publish", node),
    ...leaving(volume),
    { ...call(draw.pick(["snapshot", "clone"]), node), waits: false },
    { step: "wait", ms: 2_000, late: false },
    { step: "hand", volume, what: "mounted", forMs: draw.pick([5_000, 10_000, 31_000]) },
    { step: "wait", ms: 40_000, late: false },
  ];
}

/** A person gives the disk another slot while a node has the volume, and its node leaves, or another one is given it. */
export function renamedInUse(draw: Draw): Step[] {
  const [from, to] = draw.chance(0.5) ? nodeNames : nodeNames.toReversed();
  const volume = smooth.volume;
  const hand: Step = { step: "hand", volume, what: "renamed", forMs: draw.pick([1_000, 30_000, 200_000]) };
  return [
    ...leaving(volume),
    call("publish", from!),
    ...draw.chance(0.5) ? [call("stage", from!)] : [],
    hand,
    ...draw.chance(0.8) ? [call("unstage", from!), call("unpublish", from!)] : [],
    call(draw.pick(["publish", "publish", "delete", "unpublish", "expand"]), to!),
    { step: "write", volume, node: from! },
  ];
}

/** Two objects of the cluster name a volume that is to be deleted. */
export function namedTwice(draw: Draw): Step[] {
  const volume = draw.pick(volumeNames);
  const deletes = call("delete", nodeNames[0]!, volume);
  return [{ step: "named-twice", volume, forMs: 30_000 }, ...leaving(volume), deletes, ...leaving(volume)];
}

/** Others promise most of the pool while a controller may believe that there is room. */
export function scarce(draw: Draw): Step[] {
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
export function turnedOnWhileCopied(draw: Draw): Step[] {
  const [node, volume] = [draw.pick(nodeNames), smooth.volume];
  return [
    call("publish", node),
    ...leaving(volume),
    { step: "wait", ms: 31_000, late: false },
    { ...call(draw.pick(["snapshot", "clone"]), node), waits: false },
    { step: "wait", ms: 2_000, late: false },
    { step: "edit", volume, exported: true },
    { step: "wait", ms: 12_000, late: false },
  ];
}

/** A person turns the export of a volume on that is then deleted. */
export function turnedOnAndDeleted(draw: Draw): Step[] {
  const volume = draw.pick(volumeNames);
  const node = draw.pick(nodeNames);
  return [
    call("publish", node, volume),
    ...leaving(volume),
    { step: "wait", ms: 31_000, late: false },
    { step: "edit", volume, exported: true },
    call("delete", node, volume),
  ];
}

/** A person takes a note away, or points the disk at another file, between a read and the change that follows from it. */
export function changedMeanwhile(draw: Draw): Step[] {
  const [node, volume] = [draw.pick(nodeNames), smooth.volume];
  const isNote = draw.chance(0.5);
  const note: Step = { step: "note", volume, before: "x".repeat(1 + draw.below(60)), after: "" };
  const hand: Step = { step: "hand", volume, what: "other-file", forMs: draw.pick([30_000, 200_000]) };
  const next = draw.pick(
    isNote ? ["publish", "expand", "unpublish"] as const : ["publish", "expand"] as const,
  );
  return [
    ...leaving(volume),
    ...isNote ? [note] : [],
    { step: "wait", ms: 31_000, late: false },
    { ...call(next, node), commandMs: [0, 12_000], waits: false },
    { step: "wait", ms: 2_000, late: false },
    isNote ? { ...note, before: "" } : hand,
    { step: "wait", ms: 12_000, late: false },
  ];
}

/** A note of 1 to 250 bytes; often the volume is detached with it. */
export function noted(draw: Draw): Step[] {
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

export function byHand(draw: Draw): Step[] {
  return withAttempt(draw, aHand(draw));
}

/** The router prints a disk's row without a size. */
export function unreadable(draw: Draw): Step[] {
  return withAttempt(draw, { ...aHand(draw), what: "unreadable" });
}

/** A person's change, mostly of a volume that was just taken from its nodes, and mostly with a call before it is taken back. */
function withAttempt(draw: Draw, hand: HandStep): Step[] {
  const { volume } = hand;
  const before = draw.chance(0.6) ? leaving() : [];
  const [node, next] = [
    draw.pick(nodeNames),
    draw.pick(["publish", "publish", "delete", "expand", "snapshot", "create"] as const),
  ];
  const after = draw.chance(0.7) ? [call(next, node, volume), call("stage", node, volume)] : [];
  return [...before, hand, ...after];
}
