/**
 * Who may write to a volume: one node at a time, or two where the volume is shared and pods of its virtual machine ran on both
 * of them when the second one was let in.
 */
export class Sharing {
  /** The nodes with a running pod, by volume; absent for a volume that is not shared. */
  readonly #pods = new Map<string, readonly string[]>();
  /** The pairs that may write at once, as `volume node node`. */
  readonly #pairs = new Set<string>();
  readonly #everPairs = new Set<string>();
  /** The NQNs under which each volume was open last. */
  readonly #opened = new Map<string, readonly string[]>();
  /** The volumes of which the router has an earlier record, until a call for them has asked the cluster. */
  readonly #restored = new Set<string>();
  /** The nodes that have left, and those of them whom an earlier record does not know to have been there. As `volume node`. */
  readonly #left = new Set<string>();
  readonly #unknown = new Set<string>();
  /** The nodes that had left, and that an earlier record may name again. As `volume node`. */
  readonly #named = new Set<string>();
  /** The volumes that any two nodes may share. */
  readonly #anyPairs = new Set<string>();
  /** The nodes of which a publish failed: the router may carry it out late. As `volume node`. */
  readonly #inDoubt = new Set<string>();

  /** Pods of the volume's virtual machine run on these nodes from now on. @param pairs whether they matter */
  pods(of: string, nodes: readonly string[], pairs: boolean): void {
    this.#pods.set(of, nodes);
    if (!pairs) this.#anyPairs.add(of);
    if (nodes.length !== 2) return;
    this.#pairs.add(pairOf(of, nodes));
    this.#everPairs.add(pairOf(of, nodes));
  }

  /** The router has an earlier record of its holders: whichever pair there was may be in it. */
  restored(): void {
    for (const of of this.#pods.keys()) this.#restored.add(of);
    for (const pair of this.#everPairs) this.#pairs.add(pair);
    for (const left of this.#left) {
      this.#unknown.add(left);
      this.#named.add(left);
    }
  }

  opened(of: string, nqns: readonly string[]): void {
    if (nqns.length > 0) this.#opened.set(of, nqns);
  }

  lastOpen(of: string): readonly string[] {
    return this.#opened.get(of) ?? [];
  }

  isShared(of: string): boolean {
    return this.#pods.has(of);
  }

  /**
   * A node asks for the volume. It finds no pair that has ended, unless both are among those that have the volume already, as far as
   * an earlier record says.
   */
  asked(of: string, node: string, having: readonly string[]): void {
    const pods = this.#pods.get(of);
    if (pods === undefined || this.#restored.has(of) || this.#inDoubt.has(`${of} ${node}`)) return;
    for (const pair of this.#pairs) {
      const [volume, ...nodes] = pair.split(" ");
      const goesOn = pods.length === 2 && pair === pairOf(of, pods) ||
        nodes.every((one) => having.includes(one) || this.#named.has(`${of} ${one}`));
      if (volume === of && nodes.includes(node) && !goesOn) this.#pairs.delete(pair);
    }
  }

  /** It was answered; without an error it was OK. @param compared whether the cluster has answered meanwhile */
  answered(
    { of, node, verb }: {
      readonly of: string;
      readonly node: string;
      readonly verb: "publish" | "unpublish";
    },
    error: string | undefined,
    compared: boolean,
  ): void {
    // An earlier record does not know the node to be there: nobody sees that it may write on.
    if (error === undefined && verb === "unpublish" && this.#restored.has(of)) {
      this.#unknown.add(`${of} ${node}`);
    }
    if (error === undefined && compared) this.#restored.delete(of);
    if (error === undefined) this.#left[verb === "unpublish" ? "add" : "delete"](`${of} ${node}`);
    if (error === undefined && verb === "publish") this.#unknown.delete(`${of} ${node}`);
    if (verb === "publish" && error !== undefined) this.#inDoubt.add(`${of} ${node}`);
    if (verb === "unpublish" && error === undefined) {
      this.#inDoubt.delete(`${of} ${node}`);
      this.#named.delete(`${of} ${node}`);
    }
  }

  /** Whether these nodes may write at once. */
  allows(of: string, all: readonly string[]): boolean {
    // Of a node that left without giving the volume up an earlier record says nothing, nor does the cluster.
    const writers = this.isShared(of) ? all.filter((node) => !this.#unknown.has(`${of} ${node}`)) : all;
    if (writers.length < 2) return true;
    const pairs = this.#restored.has(of) ? this.#everPairs : this.#pairs;
    return writers.length === 2 && (this.#anyPairs.has(of) || pairs.has(pairOf(of, writers)));
  }
}

function pairOf(of: string, nodes: readonly string[]): string {
  return [of, ...nodes.toSorted()].join(" ");
}
