import type { Clock } from "../../volume/ports/ports.ts";
import { ros } from "../../routeros/console/command.ts";
import { findLeftovers, type Leftover, type ScratchPlace } from "./leftovers.ts";
import type { Line } from "./session.ts";

/** How often it is looked whether everything is gone, and how long is waited between, in milliseconds. */
const rounds = 8;
const pauseMs = 2000;
/** How long the router gets for a command that was given up, in milliseconds: it may still make something. */
const lateMs = 3000;

/** What a clean-up needs. */
export interface CleanUpOptions {
  readonly line: Line;
  readonly place: ScratchPlace;
  readonly clock: Clock;
  /** Whether some command ended without a word, and may still run. */
  readonly mayComeLate: boolean;
  say(text: string): void;
}

/**
 * Removes everything that probes have made, and looks whether it is gone. What the router refuses to remove is tried
 * again a little later: something else may have to go first.
 *
 * @returns what is left
 * @throws {VolumeError} when the router cannot be asked
 */
export async function cleanUp(options: CleanUpOptions): Promise<readonly Leftover[]> {
  const { line, place, clock, mayComeLate, say } = options;
  if (mayComeLate) await clock.sleep(lateMs);
  let left = await findLeftovers(line, place);
  const refusals = new Map<string, string>();
  for (let round = 1; left.length > 0 && round <= rounds; round++) {
    if (round > 1) await clock.sleep(pauseMs);
    for (const { what, remove } of left) {
      const { done, words } = await line.run([remove], [ros`:len ${"x"}`]);
      if (!done) refusals.set(what, words);
    }
    left = await findLeftovers(line, place);
  }
  for (const { what } of left) {
    say(`cannot remove ${what}: ${refusals.get(what) ?? "it stays without a word"}`);
  }
  return left;
}

/** What a person types to remove what is left. */
export function byHand(left: readonly Leftover[]): string[] {
  return left.map(({ remove }) => remove.text);
}
