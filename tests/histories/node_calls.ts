import { gibibyte } from "../fakes/controller_deps.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import type { HistoryEvent } from "./events.ts";
import { Kubelet } from "./kubelet.ts";
import type { HistoryNode, NodeVerb } from "./node.ts";
import type { Process } from "./process.ts";
import type { CallStep } from "./schedule.ts";

/** A step that a kubelet calls its node for. */
export type NodeStep = Extract<CallStep["step"], "stage" | "unstage" | "grow">;

/** Whether it is one. */
export function isOfNode(step: CallStep): step is CallStep & { readonly step: NodeStep } {
  return step.step === "stage" || step.step === "unstage" || step.step === "grow";
}

/** What a kubelet does for a pod: one or two calls of its node. */
export type NodeCall = Omit<Extract<HistoryEvent, { kind: "call" }>, "kind" | "call"> & {
  /** The driver that is called. */
  readonly process: Process;
  readonly send: (context: CallContext) => Promise<void>;
  /** Called once, when the kubelet has its answer. Returns what it will never undo, after a final error. */
  readonly answered: (error: string | undefined) => "stage" | "publish" | undefined;
};

/** The context of a volume's attachment, as a kubelet knows it; undefined while it is not attached. */
export type KnownContext = Readonly<Record<string, string>> | undefined;

/** The calls of the kubelets. One begins nothing for a volume before it has the last answer for it. */
export class NodeCalls {
  readonly #nodes: readonly HistoryNode[];
  readonly #kubelets: ReadonlyMap<string, Kubelet>;
  /** The mount options of the last stage, by `volume node`. */
  readonly #mountFlags = new Map<string, readonly string[]>();
  /** The volumes that a call is under way for, as `volume node`. */
  readonly #busy = new Set<string>();
  readonly #reports: () => void;

  /** @param reports is called when a kubelet has reported that it uses a volume, before it mounts that */
  constructor(nodes: readonly HistoryNode[], reports: () => void) {
    this.#nodes = nodes;
    this.#reports = reports;
    this.#kubelets = new Map(nodes.map(({ name }) => [name, new Kubelet()]));
  }

  /** The volumes that a node's kubelet uses; undefined while the node is away. */
  usedOn(node: string): readonly string[] | undefined {
    if (this.#nodes.find(({ name }) => name === node)!.isAway) return undefined;
    const begun = [...this.#busy].filter((key) => key.endsWith(` ${node}`)).map((key) => key.split(" ")[0]!);
    return [...this.#kubelets.get(node)!.uses, ...begun];
  }

  /** Restarts a node's machine, and with it its kubelet. */
  crash(node: string): void {
    this.#nodes.find(({ name }) => name === node)!.crash();
    this.#kubelets.get(node)!.restarted();
  }

  /** Returns what the kubelet of a step's node does; undefined when that is nothing. */
  of(
    step: CallStep & { readonly step: NodeStep },
    id: string,
    publishContext: KnownContext,
  ): NodeCall | undefined {
    const node = this.#nodes.find(({ name }) => name === step.node)!;
    const kubelet = this.#kubelets.get(step.node)!;
    const key = `${id} ${step.node}`;
    const verbs = this.#busy.has(key) ? [] : verbsOf(step.step, id, kubelet, publishContext);
    if (verbs.length === 0) return undefined;
    // A call that is repeated is for the same pod.
    const mountFlags = (kubelet.isUncertainOf(id) ? this.#mountFlags.get(key) : step.mountFlags) ?? [];
    if (step.step === "stage") this.#mountFlags.set(key, mountFlags);
    const about = { volumeId: id, publishContext: publishContext ?? {}, mountFlags, bytes: 2n * gibibyte };
    let now = verbs[0]!;
    let isOver = false;
    this.#busy.add(key);
    this.#reports();
    return {
      verb: step.step,
      of: id,
      node: step.node,
      ...step.step === "grow" ? { bytes: about.bytes } : {},
      process: node.process,
      send: async (context) => {
        for (const verb of verbs) {
          now = verb;
          await node.call(verb, about, step, context);
          if (isOver) return;
          kubelet.answered(verb, id, undefined);
        }
      },
      answered: (error) => {
        isOver = true;
        this.#busy.delete(key);
        if (error === undefined) return undefined;
        kubelet.answered(now, id, error);
        if (now === "stage") return kubelet.unstages(id) ? undefined : now;
        return now !== "publish" || kubelet.unpublishes(id) ? undefined : now;
      },
    };
  }
}

/** It takes down nothing but what it knows. */
function verbsOf(
  step: NodeStep,
  id: string,
  kubelet: Kubelet,
  publishContext: KnownContext,
): readonly NodeVerb[] {
  if (step === "stage" && publishContext === undefined) return [];
  if (step === "stage") return kubelet.stages(id) ? ["stage", "publish"] : ["publish"];
  if (step === "grow") return kubelet.unpublishes(id) ? ["expand"] : [];
  return [
    ...kubelet.unpublishes(id) ? ["unpublish" as const] : [],
    ...kubelet.unstages(id) ? ["unstage" as const] : [],
  ];
}
