import { VolumeError } from "../../src/volume/errors.ts";
import type { CallContext, Clock } from "../../src/volume/ports/system.ts";

/** A call that lasts until it is cancelled or `ms` have passed. */
export interface FakeCall extends CallContext {
  cancel(): void;
}

/** Makes a call; without `ms` it has no deadline. */
export function fakeCall(clock: Clock, ms = Infinity): FakeCall {
  const controller = new AbortController();
  const end = () => controller.abort(new VolumeError("deadline", "Cannot wait any longer; try again"));
  if (ms <= 0) end();
  const stop = ms > 0 && ms < Infinity ? clock.timer(ms, end) : () => {};
  return {
    requestId: "test",
    signal: controller.signal,
    deadlineMs: clock.now() + ms,
    cancel: () => {
      stop();
      controller.abort(new VolumeError("cancelled", "The client went away"));
    },
  };
}
