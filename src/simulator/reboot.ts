import type { Router } from "./model/router.ts";
import type { SshService } from "./ssh/server.ts";

/** How a router goes down and comes back. */
export interface RebootOptions {
  /** How long connections are refused, in milliseconds. */
  readonly downMs: number;
  /** How much later than the router itself its file disks come back, in milliseconds. */
  readonly disksLateMs: number;
  /** Configuration of the last so many milliseconds was not saved yet, and is lost. */
  readonly loseLastMs: number;
  /** Whether the NVMe port listens as soon as the router is up, or only when the exports are back. */
  readonly nvmePort: "before" | "after";
}

/**
 * Reboots the router: sessions and exports end, the latest configuration may be lost, ids change, and file disks come
 * back late, in no particular order. Files stay as they are.
 */
export function reboot(router: Router, ssh: SshService, options: RebootOptions): void {
  const { clock, disks, exports, files, random, system } = router;
  const boot = ++router.boots;
  ssh.reset(true);
  exports.listen(false);
  disks.hideFiles("late", true);
  exports.clear();
  files.abandonCopies();
  if (options.loseLastMs > 0) disks.forgetSince(clock.now() - options.loseLastMs);
  disks.renumber((disk) => disk.filePath === "" ? 0 : 1 + random.fraction());
  system.boot(options.downMs);
  // A reboot during a reboot starts over; the timers of the first are then void.
  const later = (ms: number, act: () => void) =>
    clock.timer(ms, () => {
      if (router.boots === boot) act();
    });
  later(options.downMs, () => {
    if (options.nvmePort === "before") exports.listen(true);
    ssh.resume();
  });
  later(options.downMs + options.disksLateMs, () => {
    disks.hideFiles("late", false);
    exports.listen(true);
  });
}
