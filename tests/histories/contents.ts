import type { Image, Kernel } from "./claims.ts";

/** A value that a volume or its image has; undefined for a blank one. */
type Value = string | undefined;

/** A call to make a volume, snapshot or clone begins. */
interface Beginning {
  readonly of: string;
  readonly source?: string | undefined;
  /** Whether any part of it is there already. */
  readonly isThere: boolean;
}

/** What a volume, snapshot or clone may be made with: what its source has had since the first call to make it. */
interface Sourced {
  readonly source: string;
  readonly values: Set<Value>;
  readonly mayBeOld?: boolean;
}

/** What a workload wrote, and the NQNs through which its node is connected. */
interface Write {
  readonly node: string;
  readonly of: string;
  readonly value: string;
  readonly acknowledged: boolean;
  readonly through: readonly string[];
  readonly isShared: boolean;
}

/** What the volumes and snapshots of a history may hold. Each event returns what is wrong. */
export class Contents {
  /** The possible contents of a volume: the last acknowledged write, and later writes that may still arrive. */
  readonly #expected = new Map<string, Set<Value>>();
  readonly #sourced = new Map<string, Sourced>();
  /** Snapshots that were reported as ready, with their contents. */
  readonly #finished = new Map<string, Value>();
  /** What each image holds. */
  readonly #present = new Map<string, Value>();
  /** The NQNs under which each volume has been open, but for those of a deleted one of its name. */
  readonly #opened = new Map<string, Set<string>>();
  /** Writes without an answer, which wait at their node. */
  #waiting: readonly Write[] = [];
  /** Those of them that an earlier configuration of the router may let through. */
  #late: readonly Write[] = [];
  /** Empty file systems, by their value. */
  readonly #empty = new Set<Value>();
  /** Volumes of which the driver could not know that they were written. */
  readonly #untold = new Set<string>();
  /** Volumes whose data the router has lost. */
  readonly #lost = new Set<string>();

  /** A volume, snapshot or clone is to be made from its source. @param isAnother whether the last of its name is deleted */
  begin({ of, source, isThere }: Beginning & { readonly source: string }, isAnother: boolean): void {
    if (!isAnother && this.#sourced.has(of)) return;
    const values = new Set([this.#present.get(source), ...isThere ? [this.#present.get(of)] : []]);
    this.#sourced.set(of, { source, values });
  }

  /**
   * A volume is to be made again. It has what its source has now or gets, or nothing; while the deleted one is there it may
   * be that.
   */
  beginAgain({ of, source = "a blank volume", isThere }: Beginning): void {
    const values = new Set([this.#present.get(source), ...isThere ? this.#expectedOf(of) : []]);
    this.#sourced.set(of, { source, values, mayBeOld: isThere });
    this.#expected.delete(of);
    if (isThere) return;
    this.#lost.delete(of);
    this.#opened.delete(of);
  }

  made(verb: "create" | "snapshot", of: string, image: Image | undefined): readonly string[] {
    if (image?.bytes === undefined) return [];
    const blank: ReadonlySet<Value> = new Set([undefined]);
    const { source = undefined, values = blank, mayBeOld } = this.#sourced.get(of) ?? {};
    const isNew = verb === "create" ? !this.#expected.has(of) : !this.#finished.has(of);
    if (verb === "snapshot") this.#finished.set(of, image.value);
    // What was written to the deleted one may still arrive.
    else if (isNew) this.#expected.set(of, new Set(mayBeOld ? values : [image.value]));
    if (!isNew || values.has(image.value)) return [];
    const had = source === undefined ? "it was to be blank" : `${source} had ${listed(values)}`;
    return [`${of} was made with ${image.value}, and ${had}`];
  }

  isMade(of: string): boolean {
    return this.#expected.has(of) || this.#finished.has(of);
  }

  /** Whether anybody has asked for that snapshot or clone. */
  isSourced(of: string): boolean {
    return this.#sourced.has(of);
  }

  /** The snapshots that are ready. */
  snapshots(): Iterable<string> {
    return this.#finished.keys();
  }

  /** A call to delete it begins. */
  unwanted(of: string): void {
    this.#finished.delete(of);
  }

  image(
    { of, value, open }: Image,
    { isUnwanted, isShared }: { readonly isUnwanted: boolean; readonly isShared: boolean },
  ): readonly string[] {
    this.#present.set(of, value);
    const arrives = (write: Write) =>
      write.of === of && write.value === value && write.through.some((nqn) => open.includes(nqn));
    if (this.#late.some(arrives)) this.#expectedOf(of).add(value);
    this.#waiting = this.#waiting.filter((write) => write.of !== of || write.value !== value);
    const opened = this.#opened.get(of) ?? new Set();
    this.#opened.set(of, opened.union(new Set(open)));
    for (const { source, values } of this.#sourced.values()) if (source === of) values.add(value);
    const expected = this.#expected.get(of);
    const had = this.#finished.get(of);
    const changed = this.#finished.has(of) && had !== value
      ? [`the snapshot ${of} has ${value}, and had ${had}`]
      : [];
    if (expected === undefined || value === undefined && isUnwanted) return changed;
    if (!expected.has(value)) return [`${of} has ${value}, and may have ${listed(expected)}`, ...changed];
    if (!isShared) forgetBefore(value, expected);
    return changed;
  }

  written(write: Write): void {
    const { node, of, value, acknowledged, through, isShared } = write;
    if (acknowledged) this.#untold.delete(of);
    if (acknowledged) this.#waiting = this.#waiting.filter((one) => one.of !== of || one.node !== node);
    else this.#waiting = [...this.#waiting, write];
    // Of two writers one may still send what it wrote before the other.
    if (acknowledged && !isShared) this.#expected.set(of, new Set([value]));
    else if (acknowledged || through.some((nqn) => this.#opened.get(of)?.has(nqn))) {
      this.#expectedOf(of).add(value);
    }
  }

  read({ node, of, value }: { readonly node: string; readonly of: string; readonly value: Value }): string[] {
    const expected = this.#expectedOf(of);
    return expected.has(value) ? [] : [`${node} read ${value} from ${of}, and may read ${listed(expected)}`];
  }

  formatted(
    { node, of, value }: { readonly node: string; readonly of: string; readonly value: Value },
  ): string[] {
    // An empty file system may be made again, because an interrupted mkfs leaves one.
    const data = this.#dataOf(of);
    if (value !== undefined) this.#empty.add(value);
    this.#expected.set(of, new Set([value]));
    const isTold = this.#lost.has(of) && !this.#untold.has(of);
    return [
      ...data.length > 0 ? [`${node} made a file system on ${of}, which had ${data.join(" or ")}`] : [],
      ...isTold ? [`${node} made a file system on ${of}, which had lost its data`] : [],
    ];
  }

  /** The router has lost the volume's data. */
  blanked(of: string): void {
    if (this.#dataOf(of).length > 0 && !this.#untold.has(of)) this.#lost.add(of);
    this.#expected.set(of, new Set([undefined]));
  }

  /** The driver cannot know any more whether these volumes were ever written. */
  untold(volumes: Iterable<string>): void {
    for (const of of volumes) this.#untold.add(of);
  }

  /** The router has an earlier configuration: an earlier export lets through what its node still wants to write. */
  restored(untold: Iterable<string>, kernels: Iterable<Kernel>): void {
    this.untold(untold);
    const connected = new Set(
      [...kernels].flatMap(({ of, node, connected }) => connected.map((nqn) => `${of} ${node} ${nqn}`)),
    );
    this.#late = this.#waiting.filter(({ of, node, through }) =>
      through.some((nqn) => connected.has(`${of} ${node} ${nqn}`))
    );
  }

  #dataOf(of: string): readonly Value[] {
    return [...this.#expectedOf(of)].filter((value) => value !== undefined && !this.#empty.has(value));
  }

  /** The possible contents of a volume; if the call to make it was never answered, the contents of its source. */
  #expectedOf(of: string): Set<Value> {
    const expected = this.#expected.get(of) ?? new Set(this.#sourced.get(of)?.values ?? [undefined]);
    this.#expected.set(of, expected);
    return expected;
  }
}

/** Contents older than the present ones never come back. */
function forgetBefore(present: Value, expected: Set<Value>): void {
  for (const older of expected) {
    if (older === present) return;
    expected.delete(older);
  }
}

function listed(values: ReadonlySet<Value>): string {
  return [...values].map((value) => value ?? "nothing").join(" or ");
}
