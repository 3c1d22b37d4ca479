import { VolumeError } from "../volume/errors.ts";
import type { Clock } from "../volume/ports/ports.ts";

/** Work that was started and may never end. */
export interface Work<T> {
  readonly result: Promise<T>;
  /** Tries to end it, and resolves a moment later whether that worked or not. */
  giveUp(): Promise<void>;
}

/** How long one is ready to wait, for the turn and the work together. */
export interface Patience {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

interface Turn {
  hangs: boolean;
  readonly waiting: { readonly resume: () => void; readonly refuse: (error: VolumeError) => void }[];
}

/**
 * One at a time for a key, and no more once that one hangs.
 *
 * What waits in the kernel for something dead can be left behind, but not ended. So whoever asks next must not be left
 * there as well: he waits for his turn, and is refused at once when whoever has it is known to hang. Other keys know
 * nothing of that.
 */
export class Turns {
  readonly #clock: Clock;
  readonly #onHang: () => void;
  readonly #turns = new Map<string, Turn>();

  /** @param onHang hears of all work that was given up and goes on */
  constructor(clock: Clock, onHang: () => void = () => {}) {
    this.#clock = clock;
    this.#onHang = onHang;
  }

  /** Work that was given up and goes on. */
  get hanging(): number {
    return this.#turns.values().filter((turn) => turn.hangs).toArray().length;
  }

  /**
   * Runs work when it is its turn; `key` says in words what it does to what.
   *
   * @throws {VolumeError} unavailable when earlier work of that key hangs; deadline when the time is over; the signal's
   * reason when it was aborted
   */
  async run<T>(key: string, patience: Patience, start: () => Work<T>): Promise<T> {
    const { promise: over, resolve: end } = Promise.withResolvers<{ readonly why: Error }>();
    const cancelTimer = this.#clock.timer(patience.timeoutMs, () => end({ why: tooLong(key, patience) }));
    const onAbort = () => end({ why: patience.signal.reason });
    patience.signal.addEventListener("abort", onAbort, { once: true });
    try {
      await this.#take(key, over);
      return await this.#work(key, start, over);
    } finally {
      cancelTimer();
      patience.signal.removeEventListener("abort", onAbort);
    }
  }

  async #work<T>(key: string, start: () => Work<T>, over: Promise<{ readonly why: Error }>): Promise<T> {
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
      // Nobody waits for it any more.
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

  async #take(key: string, over: Promise<{ readonly why: Error }>): Promise<void> {
    const turn = this.#turns.get(key);
    if (turn === undefined) {
      this.#turns.set(key, { hangs: false, waiting: [] });
      return;
    }
    if (turn.hangs) throw refused(key);
    const { promise: mine, resolve: resume, reject: refuse } = Promise.withResolvers<void>();
    const place = { resume, refuse };
    turn.waiting.push(place);
    const outcome = await Promise.race([mine, over]);
    if (outcome === undefined) return;
    const at = turn.waiting.indexOf(place);
    if (at >= 0) turn.waiting.splice(at, 1);
    else mine.then(() => this.#release(key), () => {}); // It got its turn, or was refused, in the same moment.
    throw outcome.why;
  }

  /** Hands the turn on. */
  #release(key: string): void {
    const turn = this.#turns.get(key);
    if (turn === undefined) return;
    turn.hangs = false;
    const next = turn.waiting.shift();
    if (next === undefined) this.#turns.delete(key);
    else next.resume();
  }

  #hangs(key: string): void {
    const turn = this.#turns.get(key);
    if (turn === undefined) return;
    turn.hangs = true;
    this.#onHang();
    for (const { refuse } of turn.waiting.splice(0)) refuse(refused(key));
  }
}

function tooLong(key: string, { timeoutMs }: Patience): VolumeError {
  return new VolumeError("deadline", `Cannot wait for ${key} any longer: ms=${timeoutMs}`);
}

function refused(key: string): VolumeError {
  return new VolumeError(
    "unavailable",
    `Cannot begin ${key} as an earlier attempt still hangs in the kernel: try again when what it waits for is back`,
  );
}
