import type { HardwareReading } from "../model/health/hardware.ts";
import type { CallContext } from "./system.ts";

/** A reading of the router's hardware. */
export interface RouterHardware extends HardwareReading {
  /** Milliseconds since the router booted; undefined where it refused to report anything. */
  readonly upMs: number | undefined;
}

/** Reads the health of what lies below the pools. */
export interface HardwareReader {
  /**
   * Reads arrays and drives, and the Btrfs file systems where a pool has one. One command each; an older router refuses the
   * first, and is asked again for less. Nothing else waits for it, and nothing is concluded from its silence.
   *
   * @throws {VolumeError} unavailable, deadline or cancelled when the router could not be asked
   */
  hardware(context: CallContext): Promise<RouterHardware>;
}
