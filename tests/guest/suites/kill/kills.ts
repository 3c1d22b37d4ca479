import type { Random } from "../../../../src/volume/ports/system.ts";
import { boundariesOf, type Boundary, describeBoundary } from "./boundaries.ts";
import type { Step } from "./steps.ts";

/** One kill in a call of a volume's life, and what the orchestrator does about it. */
export interface Kill<Operation extends string> {
  readonly operation: Operation;
  readonly boundary: Boundary;
  /** Whether it asks again, or first asks for the opposite: the pod has gone meanwhile. */
  readonly then: "retry" | "give up";
  /** What the call does when nobody is killed. */
  readonly steps: readonly Step[];
}

/** A kill for people. */
export function describeKill({ operation, boundary, then, steps }: Kill<string>): string {
  return `${operation}; killed ${describeBoundary(boundary, steps)}; ${then}`;
}

/** The kills of each life: every boundary of every call once, or as many as that many lives have room for, drawn. */
export function planKills<Operation extends string>(
  counted: ReadonlyMap<Operation, readonly Step[]>,
  random: Random,
  wanted: (kill: Kill<Operation>) => boolean,
  most: number,
): readonly (readonly Kill<Operation>[])[] {
  const queues = [...counted].map(([operation, steps]) =>
    shuffled(killsOf(operation, steps, random).filter(wanted), random)
  );
  const count = Math.min(most, Math.max(...queues.map((queue) => queue.length)));
  return Array.from({ length: count }, (_, index) => queues.flatMap((queue) => queue[index] ?? []));
}

function killsOf<Operation extends string>(
  operation: Operation,
  steps: readonly Step[],
  random: Random,
): readonly Kill<Operation>[] {
  const reactions = /^(stage|publish)/.test(operation) ? ["retry", "give up"] as const : ["retry"] as const;
  return boundariesOf(steps, random).flatMap((boundary) =>
    reactions.map((then) => ({ operation, boundary, then, steps }))
  );
}

function shuffled<T>(items: readonly T[], random: Random): readonly T[] {
  return items.map((item) => [random.fraction(), item] as const).toSorted(([a], [b]) => a - b).map((
    [, item],
  ) => item);
}

/** A step without what differs between volumes and devices. */
export function shape(name: string): string {
  return name.replaceAll(/\/[^ ,]*|nqn\.[^ ]*|CRYPT-[^ ]*|rds-csi-[^ ]*|RDSCSI-[^ ]*|[0-9]+/g, "…");
}
