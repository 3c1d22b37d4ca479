import { Refusal } from "../refusal.ts";
import type { FileEntry } from "./files.ts";
import type { Router } from "./router.ts";

const gibibyte = 1n << 30n;
/** What copying a written gibibyte takes on a router, in milliseconds. */
const msPerGibibyte = 1000n;

/**
 * `/file copy`: the copy shows at once in its full size, and is whole after a time, unless a reboot overtakes it.
 *
 * @throws {Refusal} when there is no space for it.
 * @returns how long the command itself takes, in milliseconds: no time, or as long as the copying, as the knob
 * `copyReturns` says.
 */
export function copyFile(router: Router, { path, sizeBytes }: FileEntry, to: string): number {
  const { backing, clock, delays, files, knobs, timing } = router;
  const share = knobs.copy === "reflink";
  const bytes = share ? 0n : knobs.allocation === "full" ? sizeBytes : backing.allocatedBytes(path);
  const usualMs = Number(bytes * msPerGibibyte / gibibyte);
  const ms = Math.max(delays.copyMs, timing.draw([usualMs, usualMs]));
  router.assertSpace(to, bytes);
  const finish = files.startCopy(path, to, share);
  if (ms === 0) finish();
  else clock.timer(ms, () => leaveWhenFull(finish));
  return knobs.copyReturns === "at-once" ? 0 : ms;
}

/** Nobody is left to be told that there was no space for it: the copy stays as it is. */
function leaveWhenFull(finish: () => void): void {
  try {
    finish();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
}
