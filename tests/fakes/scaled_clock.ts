import { systemClock } from "../../src/host/clock.ts";
import type { Clock } from "../../src/volume/ports/system.ts";

/** A clock that runs `scale` times as fast as the machine's, for waits of minutes over real connections. */
export function scaledClock(scale: number): Clock {
  const [startMs, startMonotonicMs] = [systemClock.now(), systemClock.monotonicMs()];
  const passedMs = () => (systemClock.monotonicMs() - startMonotonicMs) * scale;
  return {
    now: () => startMs + passedMs(),
    monotonicMs: () => startMonotonicMs + passedMs(),
    sleep: (ms, signal) => systemClock.sleep(ms / scale, signal),
    timer: (ms, callback) => systemClock.timer(ms / scale, callback),
  };
}
