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
  /** What was exported when nothing more was asked, by volume. */
  #resting: ReadonlyMap<string, string | undefined> = new Map();

  attachment(of: string, node: string, nqn: string | undefined): void {
    if (nqn === undefined) this.attached.delete(`${of} ${node}`);
    else this.attached.set(`${of} ${node}`, nqn);
  }

  isAttached(of: string): boolean {
    return this.attached.keys().some((key) => key.startsWith(`${of} `));
  }

  turnedOn(of: string, nqn: string): void {
    this.#turnedOn.add(`${of} ${nqn}`);
  }

  /** A call about the volume begins: it may take the export away. */
  called(of: string): void {
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
   * @param wanted undefined where rounds change only what is older than the cluster
   */
  rested(images: Iterable<Exported>, wanted: readonly string[] | undefined): readonly string[] {
    return [...images].flatMap(({ of, exported }) => {
      const older = exported === undefined ? [] : this.olderThan(of, exported, this.attached);
      if (wanted === undefined) return [...older, ...this.#changedAtRest(of, exported)];
      const isUnwanted = exported !== undefined && !wanted.includes(of);
      return isUnwanted ? [`${of} stays exported, and no attachment wants it`, ...older] : older;
    });
  }

  #changedAtRest(of: string, now: string | undefined): readonly string[] {
    const before = this.#resting.get(of);
    // What is off may be of a router that shows its disks late.
    if (before === undefined || now === before || this.#isOlder(of, before)) return [];
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
