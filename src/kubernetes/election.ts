import { messageOf } from "../volume/error_messages.ts";
import { limitSignal } from "../async/deadline.ts";
import type { Clock, Random } from "../volume/ports/system.ts";
import { ApiError } from "./api.ts";
import type { LeaseState, LeaseStore } from "./lease.ts";

/**
 * How long candidates wait for a renewal by the leader before one of them takes over; the same as the cluster's own
 * controllers.
 */
export const leaseMs = 15_000;
/**
 * How long a leader leads after the beginning of a successful renewal: shorter, so that it ends before another begins.
 */
export const leadMs = 10_000;
/** How often a leader renews, and a candidate reads. */
const retryMs = 2_000;

/** The version of a Lease that was there and is not any more; the API server gives numbers. */
const deleted = "deleted";

/** Options of {@linkcode Election}. */
export interface ElectionOptions {
  readonly store: LeaseStore;
  /** Unique, even among earlier processes of this controller. */
  readonly identity: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Called when this process begins or ends to lead, and when it cannot take part. */
  readonly report: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /**
   * Called with the end of the lead, by the monotonic clock, before anything is done under it: at first and with each
   * renewal.
   */
  readonly leads?: (untilMs: number) => void;
  /**
   * Called each time with the process that was seen to lead instead of this one, or to have led since it did; "" when
   * that one has stopped.
   */
  readonly heldBy?: (holder: string) => void;
}

/** Why a leader stops without being asked to. */
class Lost extends Error {
  override readonly name: string = "Lost";
}

/** A leader could not renew in time; there may be no new leader yet. */
export class RanOut extends Lost {
  override readonly name = "RanOut";

  constructor() {
    super("it could not be renewed in time");
  }
}

/** Why a leader gives up the lead itself. */
class Done extends Error {
  override readonly name = "Done";
}

/**
 * Lets one process at a time lead, by a Lease. A leader stops before others may replace it: it counts from the
 * beginning of its last renewal, they from when they have seen it, each by its own clock.
 */
export class Election {
  readonly #options: ElectionOptions;
  /** The state that was last there, and when it was first read so, or as deleted. */
  #seen: { readonly state: LeaseState; readonly sinceMs: number } | undefined;
  #complaint: string | undefined;
  #hasLed = false;

  constructor(options: ElectionOptions) {
    this.#options = options;
  }

  /**
   * Takes part until the signal ends it. While this process leads, `lead` runs; its signal is aborted when the lead is
   * lost, and no other attempt is made before it has returned.
   */
  async run(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const untilMs = await this.#tryAcquire(signal);
      // After an answer that took too long the lead is over already.
      if (untilMs !== undefined && untilMs > this.#options.clock.monotonicMs()) {
        await this.#lead(untilMs, lead, signal);
      }
      await this.#pause(signal);
    }
  }

  /** The end of this process's lead, by its monotonic clock; undefined when it does not lead. */
  async #tryAcquire(signal: AbortSignal): Promise<number | undefined> {
    const { store, identity, clock } = this.#options;
    try {
      const state = await store.read(signal);
      this.#see(state);
      // Whoever held one that was deleted may not know that yet.
      const last = this.#seen?.state;
      if (last !== undefined && !this.#isFree(last)) {
        this.#options.heldBy?.(last.holder);
        this.#complaint = undefined;
        return undefined;
      }
      const startedMs = clock.monotonicMs();
      const isOther = state?.holder !== identity;
      if (isOther && this.#hasLed) this.#options.heldBy?.(state?.holder ?? "");
      const next = {
        holder: identity,
        durationSeconds: Math.ceil(leaseMs / 1000),
        transitions: (last?.transitions ?? 0) + (isOther && last !== undefined ? 1 : 0),
      };
      this.#see(await store.write(next, state, signal));
      this.#complaint = undefined;
      return startedMs + leadMs;
    } catch (error) {
      // Another controller was faster, which is normal in an election.
      if (!signal.aborted && !ApiError.is(error, 409)) this.#complain(error);
      return undefined;
    }
  }

  #isFree({ holder, durationSeconds }: LeaseState): boolean {
    if (holder === "" || holder === this.#options.identity) return true;
    const silentMs = this.#options.clock.monotonicMs() - this.#seen!.sinceMs;
    // Never less than this process's own lease time: another process wrote that value, and it may be wrong.
    return silentMs >= Math.max(durationSeconds * 1000, leaseMs);
  }

  #see(state: LeaseState | undefined): void {
    const now = state ?? (this.#seen && { ...this.#seen.state, version: deleted });
    if (now === undefined || this.#seen?.state.version === now.version) return;
    this.#seen = { state: now, sinceMs: this.#options.clock.monotonicMs() };
  }

  async #lead(
    untilMs: number,
    lead: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const { report, identity } = this.#options;
    const lost = new AbortController();
    const both = AbortSignal.any([signal, lost.signal]);
    this.#hasLed = true;
    this.#options.leads?.(untilMs);
    report("this controller leads now", { identity });
    const work = lead(both).catch((error) => {
      if (!both.aborted) report("the loops have ended by themselves", { reason: String(error) });
    }).finally(() => lost.abort(new Done("the loops have ended")));
    await this.#keep(untilMs, lost, both);
    await work;
    report("this controller no longer leads", { identity, reason: reasonOf(both) });
    // When nothing runs any more, other candidates need not wait for the end of the lease. A lost lead is not released:
    // its last request may still be under way.
    if (!(both.reason instanceof Lost)) await this.#release();
  }

  /** Renews until that fails for too long; then the lead is lost. */
  async #keep(untilMs: number, lost: AbortController, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    let endMs = untilMs;
    let cancel = () => {};
    const watch = () => {
      cancel();
      cancel = clock.timer(
        endMs - clock.monotonicMs(),
        () => lost.abort(new RanOut()),
      );
    };
    watch();
    try {
      while (!signal.aborted) {
        await this.#pause(signal);
        if (signal.aborted) return;
        const renewedUntilMs = await this.#renew(lost, signal);
        if (renewedUntilMs === undefined) continue;
        endMs = renewedUntilMs;
        watch();
      }
    } finally {
      cancel();
    }
  }

  async #renew(lost: AbortController, signal: AbortSignal): Promise<number | undefined> {
    const { store, identity, clock } = this.#options;
    const startedMs = clock.monotonicMs();
    try {
      const state = this.#seen?.state;
      if (state === undefined) return undefined;
      this.#see(await store.write({ ...state, holder: identity }, state, signal));
      const untilMs = startedMs + leadMs;
      this.#options.leads?.(untilMs);
      return untilMs;
    } catch (error) {
      if (ApiError.is(error, 409)) return await this.#readAgain(lost, signal);
      return undefined;
    }
  }

  /**
   * Reads the Lease after a conflict: an earlier renewal may have been written although its answer was lost, or another
   * process has the lead.
   */
  async #readAgain(lost: AbortController, signal: AbortSignal): Promise<undefined> {
    try {
      const state = await this.#options.store.read(signal);
      this.#see(state);
      if (state?.holder !== this.#options.identity) lost.abort(new Lost("another controller has taken it"));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // Without an answer the remaining time goes on running out.
    }
  }

  async #release(): Promise<void> {
    const { store, identity, clock } = this.#options;
    const late = new Lost("it takes too long");
    using limited = limitSignal(clock, new AbortController().signal, retryMs, late);
    const { signal } = limited;
    try {
      const state = await store.read(signal);
      if (state?.holder === identity) {
        this.#see(await store.write({ ...state, holder: "", durationSeconds: 1 }, state, signal));
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // It expires by itself.
    }
  }

  /** Waits for a random additional time, so that candidates do not all ask at once. */
  async #pause(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#options;
    await clock.sleep(retryMs * (1 + random.fraction() / 5), signal).catch(() => {
      // Only the signal ends a sleep, and the caller checks it.
    });
  }

  /** Logs each reason once. */
  #complain(error: unknown): void {
    const reason = messageOf(error);
    if (reason === this.#complaint) return;
    this.#complaint = reason;
    this.#options.report("cannot take part in the leader election", { reason });
  }
}

function reasonOf(signal: AbortSignal): string {
  return signal.reason instanceof Error ? signal.reason.message : String(signal.reason);
}
