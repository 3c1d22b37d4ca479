import { gibibyte } from "../fakes/controller_deps.ts";
import type { Draw } from "./draw.ts";
import { type CallStep, nodeNames, smooth, type Step, volumeNames } from "./schedule.ts";

/** Calls of a calm schedule, each as often as it stands here. */
const lot: readonly CallStep["step"][] = [
  ...["publish", "unpublish", "stage", "unstage", "snapshot", "clone", "create"] as const,
  ...["publish", "unpublish", "expand", "deleteSnapshot", "delete", "list", "snapshot"] as const,
];

/** What a calm schedule may have beside single calls. */
const groups: readonly ((draw: Draw) => readonly Step[])[] = [
  longNote,
  fullPool,
  scarcePool,
  otherParameters,
];

function call(step: CallStep["step"], over: Partial<CallStep> = {}): CallStep {
  return { ...smooth, step, ...over };
}

/** A schedule in which one call comes after the other and nothing goes wrong; often its last change is late. */
export function drawCalm(draw: Draw): Step[] {
  const steps: Step[] = [call("create")];
  if (draw.chance(0.7)) {
    steps.push(call("publish"), call("stage"), { step: "write", volume: "a", node: "n1" });
  }
  for (let left = 4 + draw.below(14); left > 0; left--) {
    const volume = draw.chance(0.7) ? volumeNames[0]! : volumeNames[1]!;
    steps.push(call(draw.pick(lot), { volume, node: draw.pick(nodeNames) }));
    if (draw.chance(0.25)) steps.push({ step: "wait", ms: draw.pick([100, 11_000, 61_000]), late: false });
    if (draw.chance(0.12)) steps.push(...draw.pick(groups)(draw));
  }
  return [...steps, ...draw.chance(0.3) ? grownMeanwhile(draw) : grownInUse(draw.pick(nodeNames))];
}

/** The volume grows below a pod. */
function grownInUse(node: string): readonly Step[] {
  return (["publish", "stage", "expand", "grow"] as const).map((step) => call(step, { node }));
}

/** The volume is detached with a note that is too long for another holder, and published again when the note is gone. */
function longNote(draw: Draw): readonly Step[] {
  const [node, volume] = [draw.pick(nodeNames), smooth.volume];
  const before = "x".repeat(60 + draw.below(190));
  return [
    call("publish", { node }),
    { step: "note", volume, before, after: "" },
    call("unpublish", { node }),
    call("publish", { node }),
    { step: "note", volume, before: "", after: "" },
    { step: "wait", ms: draw.pick([100, 31_000]), late: false },
    call("publish", { node }),
  ];
}

/** A person fills the pool for some time. For a minute a controller may believe what it has read of it before. */
function fullPool(draw: Draw): readonly Step[] {
  const step = draw.pick(["create", "clone", "snapshot", "expand"] as const);
  const volume = draw.pick(volumeNames);
  const before = draw.chance(0.4) ? [call("delete")] : [];
  return [
    ...before,
    { step: "hand", volume: draw.pick(volumeNames), what: "filled", forMs: 200_000 },
    { step: "wait", ms: 61_000, late: false },
    call(step, { volume }),
    call(step, { volume }),
  ];
}

/** Others promise most of the pool. Who wants less than its source has learns how much there is, and asks again at once. */
function scarcePool(draw: Draw): readonly Step[] {
  const leftMib = draw.pick([768, 1_536, 1_792, 2_560, 4_096]);
  const asks = (["expand", "clone", "create", "snapshot", "clone"] as const).filter(() => draw.chance(0.6));
  return [
    { step: "hand", volume: smooth.volume, what: "scarce", forMs: 200_000, leftMib },
    { step: "wait", ms: 61_000, late: false },
    ...asks.map((step) => call(step)),
  ];
}

/** Another StorageClass asks for a volume of the same name. */
function otherParameters(): readonly Step[] {
  return [call("create", { otherwise: true })];
}

/** An expansion is late. Meanwhile a person lets the disk grow further, and that much is asked for. */
function grownMeanwhile(draw: Draw): readonly Step[] {
  const leaves = nodeNames.flatMap((node) => [call("unstage", { node }), call("unpublish", { node })]);
  const late = { at: draw.below(2), what: draw.pick(["late", "refused-late"] as const) };
  return [
    ...leaves,
    call("expand", { bytes: gibibyte + gibibyte / 2n, trouble: late }),
    { step: "hand", volume: smooth.volume, what: "grown", forMs: 900_000 },
    call("expand"),
    { step: "wait", ms: 100, late: true },
  ];
}
