import type { Clock } from "../../volume/ports/ports.ts";

/** A package as `/system/package` lists it. */
export interface Package {
  readonly name: string;
  readonly version: string;
  readonly disabled: boolean;
}

/** A measurement of `/system/health`. */
export interface HealthReading {
  readonly name: string;
  readonly value: string;
  readonly type: string;
}

const secondMs = 1000;
const dayMs = 86_400 * secondMs;
const initialUptimeMs = 15 * dayMs + (3 * 3600 + 4 * 60 + 5) * secondMs;

/** The machine itself: its name, and since when it runs. */
export class System {
  readonly #clock: Clock;
  identity = "MikroTik";
  readonly boardName = "RDS2216";
  readonly architecture = "arm64";
  readonly health: readonly HealthReading[] = [
    { name: "cpu-temperature", value: "47", type: "C" },
    { name: "fan1-speed", value: "5400", type: "RPM" },
    { name: "psu1-state", value: "ok", type: "" },
  ];
  #bootedAtMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#bootedAtMs = clock.now() - initialUptimeMs;
  }

  /** Milliseconds since the last boot. */
  get uptimeMs(): number {
    return Math.max(0, this.#clock.now() - this.#bootedAtMs);
  }

  /** Starts the uptime anew, `inMs` milliseconds from now. */
  boot(inMs: number): void {
    this.#bootedAtMs = this.#clock.now() + inMs;
  }
}

/** Writes a duration as RouterOS does: `2w1d03:04:05`; weeks and days only when there are any. */
export function formatUptime(ms: number): string {
  const seconds = Math.floor(ms / secondMs);
  const [weeks, days] = [Math.floor(seconds / 604_800), Math.floor(seconds / 86_400) % 7];
  const clock = [Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60, seconds % 60];
  const time = clock.map((part) => String(part).padStart(2, "0")).join(":");
  return `${weeks > 0 ? `${weeks}w` : ""}${days > 0 ? `${days}d` : ""}${time}`;
}
