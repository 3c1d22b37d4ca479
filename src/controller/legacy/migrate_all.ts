import { assertSettled } from "../../volume/rules/absence.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import { judgeOwnership } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { readSlot } from "../records/view.ts";
import { untilDone } from "../until_done.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";
import { type Attachments, claimFrom, migrate, readAttachments } from "./migrate.ts";

/** How long all of it may take, in milliseconds. */
const sweepMs = 600_000;

/** What came of taking all of them over. */
export interface TakeOver {
  readonly taken: number;
  /** Whether another try may take more over: a call had one, or a command failed. A doubt is for a person. */
  readonly mayTakeMore: boolean;
}

/**
 * Takes over every volume of the legacy driver that a PersistentVolume of this cluster names; any other is left alone. What
 * leaves a doubt is told, and stays as it is. Nothing on the router changes but comments, and exports of which it has
 * forgotten that they were withdrawn.
 *
 * @throws {VolumeError} unavailable when the router or the cluster cannot be asked, or the router has only just booted
 */
export async function migrateAll(deps: ControllerDeps, context: CallContext): Promise<TakeOver> {
  const call = { ...deps, context };
  const { clusterView, store, settings } = deps;
  const inventory = await store.inventory(context);
  // A router that is still booting shows some of them later.
  assertSettled(inventory, settings.settleMs);
  const earlier = inventory.volumes.filter((stored) =>
    judgeOwnership(stored, settings.cluster).state === "earlier-driver"
  );
  if (clusterView === undefined || earlier.length === 0) return { taken: 0, mayTakeMore: false };
  // Once for all: whoever gets or loses one meanwhile does so by a call, which takes it over before anything else.
  const known = await readAttachments(clusterView, context);
  const named = new Set(known.volumes.map(({ volumeId }) => volumeId));
  const outcomes: Outcome[] = [];
  for (const { id } of earlier) if (named.has(id)) outcomes.push(await tryOne(call, id, known));
  return {
    taken: outcomes.filter((one) => one === "taken").length,
    mayTakeMore: outcomes.includes("later"),
  };
}

type Outcome = "taken" | "later" | "left";

async function tryOne(call: ControllerCall, id: string, known: Attachments): Promise<Outcome> {
  // A call that changes the volume takes it over itself.
  const release = call.locks.tryTake([id], "take-over");
  if (release === undefined) return "later";
  try {
    const view = await readSlot(call, id);
    if (!isLegacy(call, view.volume)) return "left";
    await migrate(call, view, claimFrom(known, id, call.clock.now()));
    return "taken";
  } catch (error) {
    call.context.signal.throwIfAborted();
    const reason = messageOf(error);
    call.notes.warn("cannot take over a volume of the legacy driver", { volume: id, reason });
    return VolumeError.is(error) && error.kind !== "precondition" ? "later" : "left";
  } finally {
    release();
  }
}

function isLegacy(deps: ControllerDeps, stored: StoredVolume | undefined): stored is StoredVolume {
  return stored !== undefined && judgeOwnership(stored, deps.settings.cluster).state === "earlier-driver";
}

/** Takes over at the start what can be, trying again until the router and the cluster have answered. */
export async function migrateAtStart(deps: ControllerDeps, signal: AbortSignal): Promise<void> {
  const complaint = "cannot take over all volumes yet";
  await untilDone(
    deps,
    { name: "take-over-at-start", timeoutMs: sweepMs, complaint },
    signal,
    async (context) => {
      const { taken, mayTakeMore } = await migrateAll(deps, context);
      if (taken > 0) deps.notes.warn("took over volumes from the legacy driver", { volumes: taken });
      if (mayTakeMore) throw new VolumeError("unavailable", "some could not be taken over yet");
    },
  );
}
