import type { VolumeErrorKind } from "../../src/volume/errors.ts";

/** After these answers the volume may be staged all the same; after any other the kubelet takes it as not staged. */
const uncertain: readonly string[] = [
  "cancelled",
  "deadline",
  "unavailable",
  "exhausted",
  "busy",
] satisfies VolumeErrorKind[];

/** What a kubelet knows of the volumes that its node has staged: it unstages nothing else. It outlives the machine. */
export class Kubelet {
  readonly #staged = new Map<string, "staged" | "uncertain">();

  /** Whether the kubelet would unstage the volume. */
  unstages(volumeId: string): boolean {
    return this.#staged.has(volumeId);
  }

  /** A call to stage or unstage was answered; without an error it was OK. */
  answered(verb: "stage" | "unstage", volumeId: string, error: string | undefined): void {
    if (verb === "unstage") {
      if (error === undefined) this.#staged.delete(volumeId);
    } else if (error === undefined) this.#staged.set(volumeId, "staged");
    else if (this.#staged.get(volumeId) === "staged") return;
    else if (uncertain.includes(error)) this.#staged.set(volumeId, "uncertain");
    else this.#staged.delete(volumeId);
  }
}
