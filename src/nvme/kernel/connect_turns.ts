import { duringCall } from "../../async/waiting.ts";
import { FairQueue } from "../../async/fair_queue.ts";
import type { Turn } from "../../async/semaphore.ts";
import type { Clock } from "../../volume/ports/system.ts";

/** The longest turn, in milliseconds: the kernel gives up a target that says nothing after about a minute. */
export const turnMs = 75_000;
/** An address whose last turn took so long, in milliseconds, goes after the others. */
const slowMs = 5_000;
/** How many children may be left behind in the kernel: each waits there unkillably. */
const maxLeft = 4;

/** Tells the turns that the child of a turn was left behind, and when it ends. */
export type LeaveBehind = (ended: Promise<void>) => void;

interface Waiting {
  readonly address: string;
  readonly begin: () => void;
}

/**
 * Lets one connect at a time into the kernel. Its connects share one lock: a second one would only wait there, where it
 * cannot be ended.
 *
 * Addresses take turns, so that many volumes of one router do not hold up another's. An address whose last connect took
 * long goes after the others. A turn ends with its child, even if its call has gone; after {@linkcode turnMs} it passes
 * on anyway.
 */
export class ConnectTurns {
  readonly #clock: Clock;
  readonly #waiting: Readonly<Record<Turn, FairQueue<Waiting>>> = {
    "first-come": new FairQueue(),
    last: new FairQueue(),
  };
  readonly #slow = new Set<string>();
  #holder: string | undefined;
  #left = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The address that has the turn; undefined when none has. */
  get holder(): string | undefined {
    return this.#holder;
  }

  /**
   * Runs `work` when it is the address's turn.
   *
   * @throws {VolumeError} deadline or cancelled when the signal is aborted before that; whatever `work` rejects with
   */
  async run<T>(
    address: string,
    { signal, turn = "first-come" }: { readonly signal: AbortSignal; readonly turn?: Turn | undefined },
    work: (leave: LeaveBehind) => Promise<T>,
  ): Promise<T> {
    await this.#take(address, signal, turn);
    const begunMs = this.#clock.monotonicMs();
    let left: Promise<void> | undefined;
    try {
      return await work((ended) => left = ended);
    } finally {
      const tookMs = this.#clock.monotonicMs() - begunMs;
      if (tookMs >= slowMs || left !== undefined) this.#slow.add(address);
      else this.#slow.delete(address);
      if (left === undefined) this.#pass();
      else this.#leave(left, turnMs - tookMs);
    }
  }

  async #take(address: string, signal: AbortSignal, turn: Turn): Promise<void> {
    const queue = this.#waiting[turn];
    const { promise: mine, resolve: begin } = Promise.withResolvers<void>();
    const waiting = { address, begin };
    queue.push(address, waiting);
    this.#next();
    try {
      await duringCall(mine, signal, () => this.#pass());
    } catch (error) {
      queue.remove(address, waiting);
      throw error;
    }
  }

  #leave(ended: Promise<void>, leftMs: number): void {
    this.#left++;
    let hasPassed = false;
    const pass = () => {
      if (hasPassed) return;
      hasPassed = true;
      this.#pass();
    };
    const cancelTimer = this.#clock.timer(leftMs, pass);
    ended.finally(() => {
      this.#left--;
      cancelTimer();
      pass();
      this.#next();
    });
  }

  #pass(): void {
    this.#holder = undefined;
    this.#next();
  }

  #next(): void {
    if (this.#holder !== undefined || this.#left >= maxLeft) return;
    const isQuick = ({ address }: Waiting) => !this.#slow.has(address);
    const { "first-come": first, last } = this.#waiting;
    const next = first.shift(isQuick) ?? first.shift() ?? last.shift(isQuick) ?? last.shift();
    if (next === undefined) return;
    this.#holder = next.address;
    next.begin();
  }
}
