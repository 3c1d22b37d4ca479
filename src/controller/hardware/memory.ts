import type { HardwareFinding } from "../../volume/model/health/hardware.ts";
import type { Clock } from "../../volume/ports/system.ts";

/** How long a reading says something about the present, in milliseconds: longer than the longest interval between two. */
export const freshMs = 2 * 3_600_000;

/** The faults of the router's hardware by the last reading; calls ask nobody. */
export class HardwareMemory {
  readonly #clock: Pick<Clock, "monotonicMs">;
  #last: { readonly findings: readonly HardwareFinding[]; readonly atMs: number } | undefined;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Keeps the faults of a reading that was made now. */
  keep(findings: readonly HardwareFinding[]): void {
    this.#last = { findings, atMs: this.#clock.monotonicMs() };
  }

  /** Forgets them: nobody reads any more. */
  forget(): void {
    this.#last = undefined;
  }

  /** Whether the last reading still says something. If not, what was told of it may still be so. */
  get isKnown(): boolean {
    return this.#last !== undefined && this.#clock.monotonicMs() - this.#last.atMs <= freshMs;
  }

  /** The critical faults below a pool, by its mount point; none when the last reading is too old. */
  faultsBelow(pool: string): readonly HardwareFinding[] {
    if (!this.isKnown) return [];
    return this.#last!.findings.filter(({ severity, pools }) =>
      severity === "critical" && pools.includes(pool)
    );
  }
}
