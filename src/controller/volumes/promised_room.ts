import type { Clock } from "../../volume/ports/system.ts";
import type { CreateView, Pool } from "../../volume/model/inventory.ts";
import { findUnknownSize, isAmple, promisedBytes } from "../../volume/rules/capacity.ts";
import { latestMs } from "../records/in_doubt.ts";

/** How long the sums of a read may be believed, in milliseconds. */
export const maxAgeMs = 60_000;

/** Bytes that a call promises beyond what was read. */
interface Addition {
  readonly mountPoint: string;
  readonly bytes: bigint;
  /** When it can no longer change the router; undefined while the call runs. */
  endedMs: number | undefined;
}

/** Bytes that calls promise on a pool beyond what was read. */
interface Added {
  readonly promised: bigint;
  /** Of calls that still run. */
  readonly inFlight: bigint;
}

/** What of the controller's settings the sums depend on. */
interface RoomSettings {
  readonly overcommit: number;
  readonly settleMs: number;
}

/** What a pool can be told by. */
type PoolSize = Pick<Pool, "mountPoint" | "sizeBytes">;

/** A pool as it was read with everything on it. */
interface KnownPool {
  readonly pool: Pool;
  readonly promised: bigint;
}

/** What is promised on each pool, as of a read of everything. */
interface Sums {
  readonly beganMs: number;
  readonly pools: ReadonlyMap<string, KnownPool>;
}

/**
 * What was promised on each pool as of the last read of everything, with all that this process has promised since. It only
 * ever says that there is ample room, so that most calls need not read every disk; all else is for an exact read to decide.
 *
 * It is of no use where another controller promises room at the same time: there it never says so.
 */
export class PromisedRoom {
  readonly #clock: Clock;
  readonly #settings: RoomSettings;
  readonly #isAlone: () => boolean;
  /** Those that no read has shown yet, and by pool what they come to: thousands, where many volumes are made. */
  readonly #additions = new Set<Addition>();
  readonly #added = new Map<string, Added>();
  /** Bytes of what this process has deleted since the sums were read, by pool. */
  readonly #freed = new Map<string, bigint>();
  #sums: Sums | undefined;
  /** The call that reads everything for others, too. */
  #first: PromiseWithResolvers<void> | undefined;
  /** No read that began before is believed. */
  #forgottenMs = -Infinity;

  /** @param isAlone whether nobody else promises room on this router now */
  constructor(clock: Clock, settings: RoomSettings, isAlone: () => boolean) {
    this.#clock = clock;
    this.#settings = settings;
    this.#isAlone = isAlone;
  }

  /** Reads everything, and remembers the sums. */
  async learnFrom(read: () => Promise<CreateView>): Promise<CreateView> {
    try {
      return await this.#learn(read);
    } finally {
      this.#first?.resolve();
      // What it does with it may take hours, as copying does.
      this.#first = undefined;
    }
  }

  /**
   * Does what reads everything where no sums may be believed. Of several calls at once one goes first, and the others wait until
   * it has read everything or has ended.
   */
  async afterFirst<Result>(work: () => Promise<Result>): Promise<Result> {
    if (!this.#isAlone() || this.#recent() !== undefined) return await work();
    if (this.#first !== undefined) {
      await this.#first.promise;
      return await work();
    }
    const first = Promise.withResolvers<void>();
    this.#first = first;
    try {
      return await work();
    } finally {
      first.resolve();
      if (this.#first === first) this.#first = undefined;
    }
  }

  async #learn(read: () => Promise<CreateView>): Promise<CreateView> {
    const beganMs = this.#clock.monotonicMs();
    const view = await read();
    // A router that has just booted may still bring disks back: its sums would be believed when they are wrong.
    if (view.upMs < this.#settings.settleMs) return view;
    if (beganMs <= this.#forgottenMs || this.#sums !== undefined && this.#sums.beganMs > beganMs) return view;
    this.#sums = {
      beganMs,
      pools: new Map(
        view.pools.filter((pool) => findUnknownSize(pool, view) === undefined)
          .map((pool) => [pool.mountPoint, { pool, promised: promisedBytes(pool, view) }]),
      ),
    };
    // What was deleted while it read may be counted until the next read.
    this.#freed.clear();
    for (const addition of this.#additions) {
      // What had ended before is in what was read; what had not may be counted twice until the next read.
      if (addition.endedMs === undefined || addition.endedMs >= beganMs) continue;
      this.#additions.delete(addition);
      this.#count(addition.mountPoint, -addition.bytes, 0n);
    }
    return view;
  }

  /** Forgets the sums: another controller may have promised room since they were read. */
  forget(): void {
    this.#sums = undefined;
    this.#forgottenMs = this.#clock.monotonicMs();
  }

  /**
   * Counts bytes that are promised on a pool from now on until a read shows them.
   *
   * @param hasPromised whether the result of `work` is that of one that has promised them; "perhaps" where the router may
   * still carry it out
   */
  async during<Result>(
    mountPoint: string,
    bytes: bigint,
    work: () => Promise<Result>,
    hasPromised: (result: Result) => boolean | "perhaps" = () => true,
  ): Promise<Result> {
    const addition: Addition = { mountPoint, bytes, endedMs: undefined };
    this.#additions.add(addition);
    this.#count(mountPoint, bytes, bytes);
    let lateMs = latestMs;
    try {
      const result = await work();
      const promised = hasPromised(result);
      if (promised !== "perhaps") lateMs = 0;
      if (promised === false && this.#additions.delete(addition)) this.#count(mountPoint, -bytes, 0n);
      return result;
    } finally {
      // The router may still carry out what a call has sent that failed, or whose answer was lost.
      addition.endedMs = this.#clock.monotonicMs() + lateMs;
      this.#count(mountPoint, 0n, -bytes);
    }
  }

  /** Notes that bytes of a pool are promised no more. It shows where people are told what is left, and nowhere else. */
  noteDeleted(mountPoint: string, bytes: bigint): void {
    this.#freed.set(mountPoint, (this.#freed.get(mountPoint) ?? 0n) + bytes);
  }

  #count(mountPoint: string, promised: bigint, inFlight: bigint): void {
    const before = this.#added.get(mountPoint) ?? { promised: 0n, inFlight: 0n };
    this.#added.set(mountPoint, {
      promised: before.promised + promised,
      inFlight: before.inFlight + inFlight,
    });
  }

  /**
   * Whether {@linkcode isAmple} is likely to hold once a pool is read, so that it is worth reading only that.
   *
   * @param mountPoint of the pool; undefined asks for all of them
   */
  expects(moreBytes: bigint, mountPoint?: string): boolean {
    const pools = [...this.#recent()?.pools.values() ?? []].map(({ pool }) => pool);
    const asked = pools.filter((pool) => mountPoint === undefined || pool.mountPoint === mountPoint);
    return asked.length > 0 && asked.every((pool) => this.isAmple(pool, moreBytes));
  }

  #recent(): Sums | undefined {
    if (!this.#isAlone() || this.#sums === undefined) return undefined;
    return this.#clock.monotonicMs() - this.#sums.beganMs <= maxAgeMs ? this.#sums : undefined;
  }

  /**
   * Whether a pool has so much room, with everything that calls promise now, that no exact read is needed.
   *
   * @param pool as read just now
   * @param moreBytes what is not counted yet
   */
  isAmple(pool: PoolSize, moreBytes = 0n): boolean {
    return this.promisedWithin(pool, moreBytes) !== undefined;
  }

  /** A pool as it was read last, where {@linkcode isAmple} holds and so much was free beside what was promised since. */
  amplePool(mountPoint: string, moreBytes: bigint): Pool | undefined {
    const pool = this.#recent()?.pools.get(mountPoint)?.pool;
    if (pool === undefined || !this.isAmple(pool, moreBytes)) return undefined;
    const added = this.#added.get(mountPoint)?.promised ?? 0n;
    return added + moreBytes <= pool.freeBytes ? pool : undefined;
  }

  /** Bytes that are promised on a pool where {@linkcode isAmple} holds; undefined elsewhere. */
  promisedWithin(pool: PoolSize, moreBytes = 0n): bigint | undefined {
    const known = this.#recent()?.pools.get(pool.mountPoint);
    if (known === undefined) return undefined;
    const added = this.#added.get(pool.mountPoint) ?? { promised: 0n, inFlight: 0n };
    const promised = known.promised + added.promised + moreBytes;
    return isAmple(pool, promised, added.inFlight + moreBytes, this.#settings.overcommit)
      ? promised
      : undefined;
  }

  /**
   * The same without what was deleted since everything was read, to be told to people: a room that is promised by it could be
   * promised twice, as another disk may have taken it.
   */
  promisedNow(pool: PoolSize): bigint | undefined {
    const promised = this.promisedWithin(pool);
    if (promised === undefined) return undefined;
    const left = promised - (this.#freed.get(pool.mountPoint) ?? 0n);
    return left > 0n ? left : 0n;
  }
}
