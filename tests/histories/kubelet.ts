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

type Known = Map<string, "so" | "uncertain">;

/** What a kubelet knows of the volumes of its node: it takes down nothing else. It outlives the machine. */
export class Kubelet {
  readonly #staged: Known = new Map();
  readonly #published: Known = new Map();

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
    } else if (error === undefined) known.set(volumeId, "so");
    else if (known.get(volumeId) === "so") return;
    else if (uncertain.includes(error)) known.set(volumeId, "uncertain");
    else known.delete(volumeId);
  }
}
