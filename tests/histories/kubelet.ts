import type { VolumeErrorKind } from "../../src/volume/errors.ts";
import type { NodeVerb } from "./node.ts";

/** After these answers the volume may be staged or published all the same; after any other the kubelet takes it as not so. */
const uncertain: readonly string[] = [
  "cancelled",
  "deadline",
  "unavailable",
  "exhausted",
  "busy",
] satisfies VolumeErrorKind[];

/**
 * Whether a volume is staged or published: `so`, or perhaps. `uncertain` is what a call for a pod has left, `left` what an
 * unstage has, and `found` what a kubelet that has started finds: that it takes down, whatever a call says.
 */
type Known = Map<string, "so" | "uncertain" | "left" | "found">;

/** What a kubelet knows of the volumes of its node: it takes down nothing else. It outlives the machine. */
export class Kubelet {
  readonly #staged: Known = new Map();
  readonly #published: Known = new Map();

  /** Whether it stages the volume for a pod. What it has staged it only publishes, until no pod of the node wants it. */
  stages(volumeId: string): boolean {
    return this.#staged.get(volumeId) !== "so";
  }

  /** It starts with the machine: it asks again for whatever it had. */
  restarted(): void {
    for (const known of [this.#staged, this.#published]) {
      for (const id of known.keys()) known.set(id, "found");
    }
  }

  /** Whether the kubelet would unstage the volume. */
  unstages(volumeId: string): boolean {
    return this.#staged.has(volumeId);
  }

  /** Whether it does not know whether the volume is staged: then it asks again for the same pod. */
  isUncertainOf(volumeId: string): boolean {
    return this.#staged.get(volumeId) === "uncertain";
  }

  /** The volumes that it may have staged. */
  get uses(): readonly string[] {
    return [...this.#staged.keys()];
  }

  /** Whether it would take the volume from its pod first. */
  unpublishes(volumeId: string): boolean {
    return this.#published.has(volumeId);
  }

  /** A call was answered; without an error it was OK. */
  answered(verb: NodeVerb, volumeId: string, error: string | undefined): void {
    if (verb === "expand") return;
    const known = verb.endsWith("stage") ? this.#staged : this.#published;
    if (verb.startsWith("un")) {
      if (error === undefined) known.delete(volumeId);
      else if (verb === "unstage") known.set(volumeId, "left");
    } else if (error === undefined) known.set(volumeId, "so");
    else if (["so", "found"].includes(known.get(volumeId)!)) return;
    else if (uncertain.includes(error)) known.set(volumeId, "uncertain");
    else known.delete(volumeId);
  }
}
