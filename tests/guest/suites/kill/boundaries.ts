import type { Random } from "../../../../src/volume/ports/system.ts";
import type { Step } from "./steps.ts";

/** When a node is killed. */
export interface Boundary {
  /** The number of the step, from 1; the one after the last is the end of the call, before it is answered. */
  readonly step: number;
  /**
   * Before the step, or while its tool runs: a tool outlives a process that is killed, and dies with a container that
   * is.
   */
  readonly moment: "before" | "child outlives" | "child dies";
  /** How far the tool has come, as a part of the time it usually takes. */
  readonly fraction: number;
}

/** All boundaries of a call that takes these steps; how far tools come is drawn. */
export function boundariesOf(steps: readonly Step[], random: Random): readonly Boundary[] {
  const inside = steps.flatMap(({ childMs }, index): Boundary[] => {
    const step = index + 1;
    const before: Boundary = { step, moment: "before", fraction: 0 };
    if (childMs === undefined) return [before];
    return [
      before,
      { step, moment: "child outlives", fraction: random.fraction() },
      { step, moment: "child dies", fraction: random.fraction() },
    ];
  });
  return [...inside, { step: steps.length + 1, moment: "before", fraction: 0 }];
}

/** A boundary for people. */
export function describeBoundary({ step, moment, fraction }: Boundary, steps: readonly Step[]): string {
  const name = steps[step - 1]?.name ?? "its answer";
  if (moment === "before") return `before step ${step}, ${name}`;
  return `${Math.round(fraction * 100)}% into step ${step}, ${name}, whose ${moment}`;
}
