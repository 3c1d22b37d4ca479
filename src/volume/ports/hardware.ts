import type { BtrfsFilesystem, HardwareDisk } from "../model/health/hardware.ts";
import type { CallContext } from "./system.ts";

/** The arrays and drives of a router. */
export interface RouterDrives {
  /** Undefined where the router refused to report them. */
  readonly disks: readonly HardwareDisk[] | undefined;
  /** Milliseconds since the router booted; undefined where it refused to report anything. */
  readonly upMs: number | undefined;
}

/**
 * Reads the health of what lies below the pools. Nothing else waits for it, and nothing is concluded from its silence. Two
 * parts, so that what the first has found is known although the second is not answered.
 */
export interface HardwareReader {
  /**
   * Reads arrays and drives. One command; an older router refuses it, and is asked again for less.
   *
   * @throws {VolumeError} unavailable, deadline or cancelled when the router could not be asked
   */
  drives(context: CallContext): Promise<RouterDrives>;
  /**
   * Reads the Btrfs file systems, in one command where a pool may have one; undefined where the router refused.
   *
   * @param disks what it has reported of arrays and drives
   * @throws {VolumeError} unavailable, deadline or cancelled when the router could not be asked
   */
  filesystems(
    disks: RouterDrives["disks"],
    context: CallContext,
  ): Promise<readonly BtrfsFilesystem[] | undefined>;
}
