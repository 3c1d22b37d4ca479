import { timeLeftMs, withDeadline } from "../../async/deadline.ts";
import type { DiskGuard } from "../../volume/ports/store.ts";
import type { ImageLocation } from "../../volume/model/inventory.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext, Clock } from "../../volume/ports/system.ts";

/** How long before a call's deadline it stops waiting for a copy, so that its answer still arrives, in milliseconds. */
const answerMs = 2_000;

interface Job<About, Result> {
  readonly about: About;
  readonly controller: AbortController;
  readonly result: Promise<Result>;
  /** Whether it has not ended. */
  running: boolean;
}

/**
 * Work that outlives the call which began it: copies of images take longer than any call may. A later call of the same
 * key joins it, and takes its result. What was begun is known to this process only; another one finds no more than an
 * unfinished file, and starts over.
 */
export class ImageCopies<About, Result> {
  readonly #clock: Clock;
  readonly #jobs = new Map<string, Job<About, Result>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns what the work of that key is about, while it runs or its result has not been taken; undefined for none. */
  find(key: string): About | undefined {
    return this.#jobs.get(key)?.about;
  }

  /** The keys of the work that began before that of this key and still runs, in the order in which it began. */
  before(key: string): readonly string[] {
    const keys = [...this.#jobs.keys()];
    const own = keys.indexOf(key);
    return keys.slice(0, own < 0 ? 0 : own).filter((each) => this.#jobs.get(each)?.running);
  }

  /**
   * Starts the work of that key, or joins it; its result is given once.
   *
   * @param about what the work is about, if it has to be started; a caller that joins checks first that it is the same
   * @param start is called only when there is none; its context ends when the work is cancelled
   * @returns undefined when the call's time is up and the work goes on
   * @throws the error that the work throws; {@linkcode VolumeError} cancelled or deadline when the call ends first
   */
  async join(
    key: string,
    about: About,
    start: (context: CallContext) => Promise<Result>,
    context: CallContext,
  ): Promise<Result | undefined> {
    const job = this.#jobs.get(key) ?? this.#start(key, about, start, context.requestId);
    const leftMs = Math.max(0, timeLeftMs(context, this.#clock) - answerMs);
    const late = new VolumeError("deadline", "The copy goes on");
    try {
      const result = await withDeadline(this.#clock, context, leftMs, late, () => job.result);
      this.#forget(key, job);
      return result;
    } catch (error) {
      if (error === late) return undefined;
      if (error !== context.signal.reason) this.#forget(key, job);
      throw error;
    }
  }

  /** Ends the work of that key, if there is any, and waits until it has. */
  async cancel(key: string): Promise<void> {
    const job = this.#jobs.get(key);
    if (job === undefined) return;
    this.#forget(key, job);
    job.controller.abort(
      new VolumeError("cancelled", "Cannot go on copying because the copy is no longer wanted"),
    );
    await job.result.catch(() => undefined);
  }

  /** Ends all work that goes on, and waits until it has: nothing of it may ask the router once that is left. */
  async close(): Promise<void> {
    await Promise.all([...this.#jobs.keys()].map((key) => this.cancel(key)));
  }

  #start(
    key: string,
    about: About,
    start: (context: CallContext) => Promise<Result>,
    requestId: string,
  ): Job<About, Result> {
    const controller = new AbortController();
    const result = start({ requestId, signal: controller.signal });
    const job: Job<About, Result> = { about, controller, result, running: true };
    // The next call receives the failure; until then the promise has no other handler.
    const end = () => {
      job.running = false;
    };
    result.then(end, end);
    this.#jobs.set(key, job);
    return job;
  }

  #forget(key: string, job: Job<About, Result>): void {
    if (this.#jobs.get(key) === job) this.#jobs.delete(key);
  }
}

/** The fields that distinguish one copy from another. */
export interface CopyAbout {
  /** See `formatSource()`. */
  readonly source: string;
  readonly sourcePath: string;
  readonly target: ImageLocation;
}

/** A whole copy that has not got its name yet. */
export interface FinishedCopy {
  readonly path: string;
  /** Holds only while the source has not been used since the copy began; undefined where it never changes. */
  readonly guard: DiskGuard | undefined;
}
