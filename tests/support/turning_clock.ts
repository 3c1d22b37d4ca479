import { systemClock } from "../../src/host/clock.ts";
import type { Clock } from "../../src/volume/ports/system.ts";
import { eventually } from "./eventually.ts";

/** A clock on which whatever rests for a minute or more, as do rounds, rests until the next turn. */
export function turningClock(): { readonly clock: Clock; turn(): Promise<void> } {
  const resting = new Set<() => void>();
  const rest = (signal?: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      resting.add(resolve);
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  return {
    clock: {
      ...systemClock,
      sleep: (ms, signal) => ms < 60_000 ? systemClock.sleep(ms, signal) : rest(signal),
    },
    async turn() {
      await eventually(() => Promise.resolve(resting.size > 0));
      const woken = [...resting];
      resting.clear();
      for (const wake of woken) wake();
    },
  };
}
