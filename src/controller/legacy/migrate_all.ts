import { assertSettled } from "../../volume/rules/absence.ts";
import { judgeOwnership } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { inBackground } from "../background.ts";
import { ownStem } from "../load.ts";
import { type Attachments, claimFrom, readAttachments, takeOver } from "./migrate.ts";
import type { ControllerCall, ControllerWorld } from "../deps.ts";

/** How long all of it may take, and how long the next try waits after one that failed, in milliseconds. */
const sweepMs = 600_000;
const pausesMs = [2_000, 5_000, 10_000, 30_000];

/**
 * Takes over every volume of the earlier driver that a PersistentVolume of this cluster names; any other is left alone. What
 * leaves a doubt is told, and stays as it is. Nothing on the router changes but comments, and exports of which it has
 * forgotten that they were withdrawn.
 *
 * @returns how many were taken over
 * @throws {VolumeError} unavailable when the router or the cluster cannot be asked, or the router has only just booted
 */
export async function takeOverAll(world: ControllerWorld, context: CallContext): Promise<number> {
  const call = { ...world, context };
  const { clusterView, store, settings } = world;
  const inventory = await store.inventory(context);
  // A router that is still booting shows some of them later.
  assertSettled(inventory, settings.settleMs);
  const earlier = inventory.volumes.filter((stored) =>
    judgeOwnership(stored, settings.cluster).state === "earlier-driver"
  );
  if (clusterView === undefined || earlier.length === 0) return 0;
  // Once for all: whoever gets or loses one meanwhile does so by a call, which takes it over before anything else.
  const known = await readAttachments(clusterView, context);
  const named = new Set(known.volumes.map(({ volumeId }) => volumeId));
  let taken = 0;
  for (const { id } of earlier) {
    if (!named.has(id)) continue;
    if (await tryOne(call, id, known)) taken++;
  }
  return taken;
}

async function tryOne(call: ControllerCall, id: string, known: Attachments): Promise<boolean> {
  // A call that changes the volume takes it over itself.
  const release = call.locks.tryTake([id], "take-over");
  if (release === undefined) return false;
  try {
    const view = await call.store.view(id, ownStem(call, id), call.context);
    if (!isEarlier(call, view.volume)) return false;
    await takeOver(call, view, view.volume, claimFrom(known, id, call.clock.now()));
    return true;
  } catch (error) {
    call.context.signal.throwIfAborted();
    const reason = error instanceof Error ? error.message : String(error);
    call.notes.warn("a volume of the earlier driver is not taken over", { volume: id, reason });
    return false;
  } finally {
    release();
  }
}

function isEarlier(world: ControllerWorld, stored: StoredVolume | undefined): stored is StoredVolume {
  return stored !== undefined && judgeOwnership(stored, world.settings.cluster).state === "earlier-driver";
}

/** Takes over at the start what can be, trying again until the router and the cluster have answered. */
export async function takeOverAtStart(world: ControllerWorld, signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      const about = { name: "take-over-at-start", timeoutMs: sweepMs, signal };
      const taken = await inBackground(world.clock, about, (context) => takeOverAll(world, context));
      if (taken > 0) world.notes.warn("took volumes over from the earlier driver", { volumes: taken });
      return;
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof Error ? error.message : String(error);
      if (failures === 0) {
        world.notes.warn("cannot tell yet which volumes to take over; it is tried again", { reason });
      }
      await world.clock.sleep(pausesMs[Math.min(failures, pausesMs.length - 1)]!, signal).catch(() => {
        // Only the signal ends a sleep, and the loop asks it.
      });
    }
  }
}
