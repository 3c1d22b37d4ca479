import { parseEpoch } from "../../src/volume/model/epoch.ts";

/** A volume's image with the NQN under which it is exported. */
interface Exported {
  readonly of: string;
  readonly exported: string | undefined;
}

/** What attachments want, and what of that the router exports while nobody asks for anything. */
export class Exports {
  /** The NQNs of the complete attachments, by `volume node`. */
  readonly attached = new Map<string, string>();
  /** What a person turned on while an attachment of the volume was there and nobody had it, as `volume nqn`. */
  readonly #turnedOn = new Set<string>();
  /** Whatever a person has ever turned on, as `volume nqn`. */
  readonly #byHand = new Set<string>();
  /** The NQNs of nodes whose unpublish has failed since, as `volume nqn`: the router may carry it out late. */
  readonly #inDoubt = new Set<string>();
  /** What was exported when nothing more was asked, by volume. */
  #resting: Map<string, string | undefined> = new Map();

  attachment(of: string, node: string, nqn: string | undefined): void {
    if (nqn === undefined) this.attached.delete(`${of} ${node}`);
    else this.attached.set(`${of} ${node}`, nqn);
  }

  isAttached(of: string): boolean {
    return this.attached.keys().some((key) => key.startsWith(`${of} `));
  }

  /** A person turns an export on. */
  byHand(of: string, nqn: string): void {
    this.#byHand.add(`${of} ${nqn}`);
  }

  /** A call for the node that has the NQN has failed, or one for the volume was OK. */
  unpublished(of: string, nqn: string | undefined, error: string | undefined): void {
    if (error !== undefined && error !== "busy") this.#inDoubt.add(`${of} ${nqn}`);
    if (error !== undefined) return;
    for (const key of this.#inDoubt) if (key.startsWith(`${of} `)) this.#inDoubt.delete(key);
  }

  turnedOn(of: string, nqn: string): void {
    this.#turnedOn.add(`${of} ${nqn}`);
  }

  /** A call about the volume begins: it may take the export away. */
  called(of: string): void {
    this.#resting.delete(of);
    for (const key of this.#turnedOn) if (key.startsWith(`${of} `)) this.#turnedOn.delete(key);
  }

  rebooted(): void {
    this.#turnedOn.clear();
  }

  /** Returns what is wrong when the export of a volume is another one from now on. */
  changed(of: string, before: string | undefined): readonly string[] {
    const isKept = before !== undefined && this.#turnedOn.delete(`${of} ${before}`) &&
      !this.#isOlder(of, before);
    return isKept ? [`${before} was turned off, and an attachment wants it`] : [];
  }

  resting(images: Iterable<Exported>): void {
    this.#resting = new Map([...images].map(({ of, exported }) => [of, exported]));
  }

  /**
   * Returns what is wrong after some rounds.
   *
   * @param wanted the attachments, as `volume node`; undefined where rounds change only what is older than the cluster
   * @param nodeOf the one node that was given an NQN, where that is known
   */
  rested(
    images: Iterable<Exported>,
    wanted: readonly string[] | undefined,
    nodeOf: (of: string, nqn: string) => string | undefined,
  ): readonly string[] {
    return [...images].flatMap(({ of, exported }) => {
      const older = exported === undefined ? [] : this.olderThan(of, exported, this.attached);
      if (wanted === undefined) return [...older, ...this.#changedAtRest(of, exported)];
      if (exported === undefined) return [];
      const isUnwanted = !wanted.some((key) => key.startsWith(`${of} `));
      if (isUnwanted) return [`${of} stays exported, and no attachment wants it`, ...older];
      const node = this.#byHand.has(`${of} ${exported}`) ? undefined : nodeOf(of, exported);
      const isOthers = node !== undefined && !wanted.includes(`${of} ${node}`) &&
        !this.#isLater(of, exported);
      return isOthers ? [`${of} stays exported to ${node}, which has no attachment`] : older;
    });
  }

  /** Whether any attachment is complete and not older than that. The legacy driver's tells nothing. */
  #isLater(of: string, exported: string): boolean {
    return this.attached.entries().some(([key, nqn]) =>
      key.startsWith(`${of} `) && (counterOf(nqn) === 0 || counterOf(nqn) >= counterOf(exported))
    );
  }

  #changedAtRest(of: string, now: string | undefined): readonly string[] {
    const before = this.#resting.get(of);
    // What is off may be of a router that shows its disks late.
    if (before === undefined || now === before || this.#isOlder(of, before)) return [];
    if (now === undefined && this.#inDoubt.has(`${of} ${before}`)) return [];
    return [`${of} was exported as ${before}, and is as ${now}, and leaders may not change that`];
  }

  /**
   * Returns what is wrong with an export that is older than an attachment: whoever has an older epoch was shut out when a later
   * one began.
   *
   * @param attached the attachments of a moment; those count that are still there
   */
  olderThan(of: string, exported: string, attached: ReadonlyMap<string, string>): readonly string[] {
    return attached.entries().filter(([key, nqn]) =>
      key.startsWith(`${of} `) && this.attached.get(key) === nqn && counterOf(exported) < counterOf(nqn)
    ).map(([key, nqn]) => `${exported} stays on, and ${key.split(" ")[1]} has ${nqn}`).toArray();
  }

  #isOlder(of: string, nqn: string): boolean {
    return this.olderThan(of, nqn, this.attached).length > 0;
  }
}

/** The counter of the epoch that an NQN names; 0 for the legacy driver's, which names none. */
export function counterOf(nqn: string): number {
  return parseEpoch(nqn.split(":").at(-1)!)?.counter ?? 0;
}
