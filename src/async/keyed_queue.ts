import { VolumeError } from "../volume/errors.ts";
import type { Clock } from "../volume/ports/system.ts";
import { limitSignal } from "./deadline.ts";

/** Work that was started and may never end. */
export interface Work<T> {
  readonly result: Promise<T>;
  /** Tries to end the work; resolves a moment later whether that succeeded or not. */
  giveUp(): Promise<void>;
}

/** How long a caller waits, for its turn and the work together. */
export interface WaitLimit {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

interface End {
  readonly why: Error;
}

interface Turn {
  hangs: boolean;
  readonly waiting: { readonly resume: () => void; readonly refuse: (error: VolumeError) => void }[];
}

/**
 * Runs one work of a key at a time, and no further work of that key once one hangs.
 *
 * Work that waits in the kernel for something dead can be left behind, but not ended. The next caller must not be left
 * behind as well: it waits for its turn, and is refused at once when the work before it is known to hang. Other keys go
 * on.
 */
export class KeyedQueue {
  readonly #clock: Clock;
  readonly #onHang: () => void;
  readonly #running = new Map<string, Turn>();

  /** @param onHang is called for each work that was given up and goes on */
  constructor(clock: Clock, onHang: () => void = () => {}) {
    this.#clock = clock;
    this.#onHang = onHang;
  }

  /** The number of works that were given up and go on. */
  get hanging(): number {
    return this.#running.values().filter((turn) => turn.hangs).toArray().length;
  }

  /**
   * Runs work when it is its turn. `key` describes the work and its subject, for messages.
   *
   * @throws {VolumeError} unavailable when earlier work of that key hangs; deadline when the time is over; the signal's
   *   reason when it was aborted
   */
  async run<T>(key: string, { timeoutMs, signal }: WaitLimit, start: () => Work<T>): Promise<T> {
    using limited = limitSignal(this.#clock, signal, timeoutMs, tooLong(key, timeoutMs));
    const over = ended(limited.signal);
    await this.#take(key, over);
    return await this.#work(key, start, over);
  }

  async #work<T>(key: string, start: () => Work<T>, over: Promise<End>): Promise<T> {
    const work = this.#started(key, start);
    let ended = false;
    const settle = () => {
      ended = true;
      this.#release(key);
    };
    const result = work.result.then((value) => (settle(), { value }), (error) => {
      settle();
      throw error;
    });
    const outcome = await Promise.race([result, over]);
    if ("value" in outcome) return outcome.value;
    result.catch(() => {
      // Its caller has gone, so a failure is ignored.
    });
    await work.giveUp();
    if (!ended) this.#hangs(key);
    throw outcome.why;
  }

  #started<T>(key: string, start: () => Work<T>): Work<T> {
    try {
      return start();
    } catch (error) {
      this.#release(key);
      throw error;
    }
  }

  async #take(key: string, over: Promise<End>): Promise<void> {
    const turn = this.#running.get(key);
    if (turn === undefined) {
      this.#running.set(key, { hangs: false, waiting: [] });
      return;
    }
    if (turn.hangs) throw refused(key);
    const { promise: mine, resolve: resume, reject: refuse } = Promise.withResolvers<void>();
    const location = { resume, refuse };
    turn.waiting.push(location);
    const outcome = await Promise.race([mine, over]);
    if (outcome === undefined) return;
    const at = turn.waiting.indexOf(location);
    if (at >= 0) turn.waiting.splice(at, 1);
    else mine.then(() => this.#release(key), () => {}); // It got its turn, or was refused, at the same moment.
    throw outcome.why;
  }

  /** Passes the turn on. */
  #release(key: string): void {
    const turn = this.#running.get(key);
    if (turn === undefined) return;
    turn.hangs = false;
    const next = turn.waiting.shift();
    if (next === undefined) this.#running.delete(key);
    else next.resume();
  }

  #hangs(key: string): void {
    const turn = this.#running.get(key);
    if (turn === undefined) return;
    turn.hangs = true;
    this.#onHang();
    for (const { refuse } of turn.waiting.splice(0)) refuse(refused(key));
  }
}

function ended(signal: AbortSignal): Promise<End> {
  const { promise, resolve } = Promise.withResolvers<End>();
  const onAbort = () => resolve({ why: signal.reason });
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  return promise;
}

function tooLong(key: string, timeoutMs: number): VolumeError {
  return new VolumeError("deadline", `Cannot wait for ${key} any longer: ms=${timeoutMs}`);
}

function refused(key: string): VolumeError {
  return new VolumeError(
    "unavailable",
    `Cannot begin ${key} because an earlier attempt still hangs in the kernel: try again when what it waits for is back`,
  );
}
