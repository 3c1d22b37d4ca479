import { runLimited } from "../../async/deadline.ts";
import { lookWide } from "../inventory.ts";
import type { ControllerWorld } from "../deps.ts";

/** How long a look may take, and how long the next one waits after one that failed, in milliseconds. */
const lookMs = 60_000;
const pausesMs = [2_000, 5_000, 10_000, 30_000];

/**
 * Shows once who holds which volume, for whatever changed while no controller was there to show it. Tries again until the
 * router and the cluster have answered; ends early with the signal.
 *
 * @param readObjects reads the cluster's objects, so that only those that differ are written
 */
export async function showAtStart(
  world: ControllerWorld,
  readObjects: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      await runLimited(
        world.clock,
        { name: "show-at-start", timeoutMs: lookMs, signal },
        async (context) => {
          await readObjects(context.signal);
          const { turn, volumes } = await lookWide(world, context);
          world.projection.showAll(turn, volumes);
        },
      );
      return;
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof Error ? error.message : String(error);
      if (failures === 0) {
        world.notes.warn("cannot show yet who holds which volume; it is tried again", { reason });
      }
      await world.clock.sleep(pausesMs[Math.min(failures, pausesMs.length - 1)]!, signal).catch(() => {
        // Only the signal ends a sleep, and the loop asks it.
      });
    }
  }
}
