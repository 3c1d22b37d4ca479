import { runLimited } from "../../async/deadline.ts";
import { messageOf, VolumeError } from "../../volume/errors.ts";
import type { HardwareReader } from "../../volume/ports/hardware.ts";
import { type HardwareHistory, judgeHardware } from "../../volume/rules/health/hardware.ts";
import type { ControllerDeps } from "../deps.ts";

/** What the loop needs of a controller. */
export type HardwareLoopDeps = Pick<
  ControllerDeps,
  "clock" | "random" | "events" | "notes" | "hardware" | "settings"
>;

/** How long one reading may take, in milliseconds. A dying drive may keep the router from answering. */
const readMs = 20_000;

/** How long after its start the first reading comes, and over which time several loops spread theirs, in milliseconds. */
const firstMs = 60_000;
const spreadMs = 60_000;

/** How long it waits after a reading that was not answered in time, in milliseconds. */
const afterTimeoutMs = 3_600_000;

/** Reads the health of arrays and drives from time to time, beside all calls. */
export class HardwareLoop {
  readonly #deps: HardwareLoopDeps;
  readonly #reader: HardwareReader;
  readonly #intervalMs: number;
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  /** What this run has read so far. */
  #history: HardwareHistory | undefined;

  /** @param intervalMs how often it reads, in milliseconds; 0 never */
  constructor(deps: HardwareLoopDeps, reader: HardwareReader, intervalMs: number) {
    this.#deps = deps;
    this.#reader = reader;
    this.#intervalMs = intervalMs;
  }

  /** Begins to {@linkcode run} until it is closed. */
  start(): void {
    this.#running = this.run(this.#stop.signal);
  }

  /** Ends it, and waits until nothing of it is under way. */
  async close(): Promise<void> {
    this.#stop.abort(new Error("the controller stops"));
    await this.#running;
  }

  /** Goes on until the signal ends it. Afterwards nothing is known of the hardware. */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#intervalMs === 0) return;
    const { clock, random, hardware, events } = this.#deps;
    this.#history = undefined;
    let waitMs = firstMs + random.fraction() * spreadMs;
    try {
      while (!signal.aborted) {
        await clock.sleep(waitMs, signal);
        waitMs = await this.#tryRead(signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      hardware.forget();
      events.occurred({ kind: "hardware-read", read: undefined });
    }
  }

  /** Returns how long to wait for the next one, in milliseconds. */
  async #tryRead(signal: AbortSignal): Promise<number> {
    const { clock, notes } = this.#deps;
    try {
      return await runLimited(
        clock,
        { name: "hardware", timeoutMs: readMs, signal },
        async (context) => this.#judge(await this.#reader.hardware(context)),
      );
    } catch (error) {
      if (signal.aborted) throw error;
      notes.warn("cannot read the health of drives; retrying", { reason: messageOf(error) });
      return VolumeError.is(error, "deadline") ? afterTimeoutMs : this.#intervalMs;
    }
  }

  /** A router that has just booted may still be assembling its arrays. */
  #judge({ upMs, ...reading }: Awaited<ReturnType<HardwareReader["hardware"]>>): number {
    const { clock, hardware, events, settings } = this.#deps;
    if (upMs !== undefined && upMs < settings.settleMs) {
      return Math.min(this.#intervalMs, settings.settleMs - upMs);
    }
    const { findings, history } = judgeHardware(reading, this.#history, clock.monotonicMs());
    this.#history = history;
    hardware.keep(findings);
    events.occurred({ kind: "hardware-read", read: { reading, findings, atMs: clock.now() } });
    return this.#intervalMs;
  }
}
