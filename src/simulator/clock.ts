import type { Clock } from "../volume/ports/ports.ts";

/** A clock that stops with its owner: sleepers reject and timers are cancelled when `signal` is aborted. */
export function stoppableClock(clock: Clock, signal: AbortSignal): Clock {
  return {
    now: () => clock.now(),
    monotonicMs: () => clock.monotonicMs(),
    sleep: (ms, own) => clock.sleep(ms, own === undefined ? signal : AbortSignal.any([own, signal])),
    timer(ms, callback) {
      if (signal.aborted) return () => {};
      const stop = () => {
        cancel();
        signal.removeEventListener("abort", stop);
      };
      const cancel = clock.timer(ms, () => {
        signal.removeEventListener("abort", stop);
        callback();
      });
      signal.addEventListener("abort", stop);
      return stop;
    },
  };
}
