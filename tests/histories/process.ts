import { Lead } from "../../src/cli/serve/leadership.ts";
import type { Clock } from "../../src/volume/ports/system.ts";
import type { FakeClock } from "../fakes/clock.ts";
import type { SlowApi } from "./slow_api.ts";

/** A process that can die at any moment; all its running work stops then. It can also stand still for a while. */
export class Process {
  isDead = false;
  /** Whether it does not reach the API server. */
  isWithoutApi = false;
  /** The API server, while it answers slowly and the process leads. */
  slowApi: SlowApi | undefined;
  /** Whether it does not reach the router. */
  isWithoutRouter = false;
  /** How many of its commands are between it and the router, without copies. */
  sending = 0;
  /** How many images the router copies for it now. */
  copying = 0;
  /** Its clock; timers that end while it stands still come when it goes on. */
  readonly clock: Clock;
  /** Its lead of the election. */
  readonly lead: Lead;
  readonly #mourners: (() => void)[] = [];
  /** What comes when it goes on; undefined while it does not stand still. */
  #delayed: (() => void)[] | undefined;

  /** @param wallOffsetMs by how much its wall clock is ahead, in milliseconds */
  constructor(base: FakeClock, wallOffsetMs: () => number = () => 0) {
    this.clock = {
      now: () => base.now() + wallOffsetMs(),
      monotonicMs: () => base.monotonicMs(),
      timer: (ms, callback) => this.#timer(base, ms, callback),
      sleep: async (ms, signal) => {
        await base.sleep(ms, signal);
        await this.alive();
      },
    };
    this.lead = new Lead(this.clock);
  }

  get isFrozen(): boolean {
    return this.#delayed !== undefined;
  }

  /** Calls `mourn` when the process dies. */
  onDeath(mourn: () => void): void {
    this.#mourners.push(mourn);
  }

  die(): void {
    this.isDead = true;
    for (const mourn of this.#mourners.splice(0)) mourn();
  }

  /** From now on it stands still. */
  freeze(): void {
    this.#delayed ??= [];
  }

  /** It goes on with everything that came meanwhile, in that order. */
  thaw(): void {
    const delayed = this.#delayed ?? [];
    this.#delayed = undefined;
    for (const come of delayed) come();
  }

  /** Calls back at once, or when the process goes on. */
  whenAwake(come: () => void): void {
    if (this.#delayed === undefined) come();
    else this.#delayed.push(come);
  }

  /** Resolves only while the process lives and does not stand still; in a dead process, it never resolves. */
  async alive(): Promise<void> {
    while (this.isDead || this.isFrozen) {
      await new Promise<void>((resolve) => this.isDead || this.whenAwake(resolve));
    }
  }

  #timer(base: FakeClock, ms: number, callback: () => void): () => void {
    let isCancelled = false;
    const come = () => isCancelled || callback();
    const cancel = base.timer(ms, () => this.whenAwake(come));
    return () => {
      isCancelled = true;
      cancel();
    };
  }
}
