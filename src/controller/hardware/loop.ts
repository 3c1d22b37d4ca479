import type { HardwareReading } from "../../volume/model/health/hardware.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { HardwareReader } from "../../volume/ports/hardware.ts";
import { type HardwareHistory, judgeHardware } from "../../volume/rules/health/hardware.ts";
import type { ControllerDeps } from "../deps.ts";
import { PeriodicLoop } from "../periodic_loop.ts";

/** What the loop needs of a controller. */
export type HardwareLoopDeps = Pick<
  ControllerDeps,
  "clock" | "random" | "events" | "notes" | "hardware" | "settings"
>;

/**
 * A dying drive may keep the router from answering, and each question from the next. One lost answer makes no reading so old
 * that it says nothing any more, see `freshMs`.
 */
const period = {
  ...{ name: "hardware", spreadMs: 60_000, timeoutMs: 20_000 },
  ...{ afterTimeoutMs: 3_600_000, afterFailureMs: 15 * 60_000 },
  complaint: "cannot read the health of drives; retrying",
};

/** Reads the health of arrays and drives from time to time. */
export class HardwareLoop extends PeriodicLoop {
  readonly #deps: HardwareLoopDeps;
  readonly #reader: HardwareReader;
  readonly #intervalMs: number;
  /** What this run has read so far. */
  #history: HardwareHistory | undefined;

  /** @param intervalMs how often it reads, in milliseconds; 0 never */
  constructor(deps: HardwareLoopDeps, reader: HardwareReader, intervalMs: number) {
    super(deps, { ...period, intervalMs });
    this.#deps = deps;
    this.#reader = reader;
    this.#intervalMs = intervalMs;
  }

  /** A router that has just booted may still be assembling its arrays. */
  protected async turn(context: CallContext): Promise<number | undefined> {
    const { settleMs } = this.#deps.settings;
    const { disks, upMs } = await this.#reader.drives(context);
    if (upMs !== undefined && upMs < settleMs) return Math.min(this.#intervalMs, settleMs - upMs);
    let filesystems: HardwareReading["filesystems"];
    try {
      filesystems = await this.#reader.filesystems(disks, context);
    } finally {
      this.#judge({ disks, filesystems });
    }
    return undefined;
  }

  #judge(reading: HardwareReading): void {
    const { clock, hardware, events } = this.#deps;
    const { findings, history } = judgeHardware(reading, this.#history, clock.monotonicMs());
    this.#history = history;
    hardware.keep(findings);
    events.occurred({ kind: "hardware-read", read: { reading, findings, atMs: clock.now() } });
  }

  protected forget(): void {
    this.#history = undefined;
    this.#deps.hardware.forget();
  }

  protected ended(): void {
    this.#deps.events.occurred({ kind: "hardware-read", read: undefined });
  }
}
