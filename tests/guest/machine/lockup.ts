import { setTimeout as delay } from "node:timers/promises";
import type { Guest } from "../kit/guest.ts";
import type { Bench } from "../kit/suite.ts";

/** How long the kernel says that a processor has been stuck before nobody waits for it, in seconds: a starved one ends. */
const stuckSeconds = 60;
const lookEveryMs = 2_000;

/** Whether a console says that a processor has been stuck for too long. */
export function isLockedUp(console: string): boolean {
  return console.matchAll(/soft lockup - CPU#\d+ stuck for (\d+)s/g)
    .some(([, seconds]) => Number(seconds) >= stuckSeconds);
}

/**
 * Starts what is to run in a guest, and once more after its power was cut, where its processors wait for each other for
 * good: an emulator with two of them does that now and then, and so far only while a kubelet starts.
 */
export async function startDespiteLockup(
  bench: Bench,
  guest: Guest,
  start: () => Promise<void>,
): Promise<void> {
  const before = (await guest.console()).length;
  const looking = new AbortController();
  const { signal } = looking;
  const lockedUp = async () => {
    while (!isLockedUp((await guest.console()).slice(before))) {
      await delay(lookEveryMs, undefined, { signal });
    }
    return true;
  };
  try {
    if (!await Promise.race([start().then(() => false), lockedUp()])) return;
  } finally {
    looking.abort();
  }
  await bench.keep(
    `the state of ${guest.name}, which is locked up,`,
    `lockup-${guest.name}`,
    await guest.registers(),
  );
  bench.report.say(
    `the processors of ${guest.name} wait for each other: its power is cut, and it starts again`,
  );
  await guest.cutPower();
  await guest.boot();
  await start();
}
