import { withDeadline } from "../../async/deadline.ts";
import { isRetried, VolumeError } from "../../volume/errors.ts";
import { placesOf } from "../../volume/model/staging/here.ts";
import type { CallContext, Clock } from "../../volume/ports/system.ts";
import { connectedNqns, mountPoints, whatIsLeft } from "../connections/observe.ts";
import type { NodeDeps } from "../deps.ts";
import { isAnyMounted } from "../mount_table.ts";

/** How long the look at what is left may take, in milliseconds. */
const lookMs = 10_000;

/**
 * Runs a call. A failure stays final only if nothing of the volume is left on this node: a kubelet takes down only what
 * was left by a call that it may repeat (`isFinalError` in its `csi_client.go`). Otherwise the error becomes
 * `unavailable`, with its text and cause.
 *
 * @param isClear whether nothing is left; in doubt, something is
 */
export async function settled<T>(
  clock: Clock,
  context: CallContext,
  isClear: (context: CallContext) => Promise<boolean>,
  work: () => T | Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isRetried(error) || await holds(clock, context, isClear)) throw error;
    if (VolumeError.is(error)) throw new VolumeError("unavailable", error.message, { cause: error });
    const fault = new VolumeError(
      "internal",
      "Cannot finish because of a fault of this driver: see its log",
      {
        cause: error,
      },
    );
    throw new VolumeError("unavailable", fault.message, { cause: fault });
  }
}

/** The call itself may be over. */
async function holds(
  clock: Clock,
  { requestId }: CallContext,
  isClear: (context: CallContext) => Promise<boolean>,
): Promise<boolean> {
  const own = { requestId, signal: new AbortController().signal };
  try {
    return await withDeadline(clock, own, lookMs, "look at what is left of the volume", isClear);
  } catch {
    // Whatever was wrong: it is not known that nothing is left.
    return false;
  }
}

/** Runs a stage, or the parsing of its request: a failure is final while nothing of the volume is left on this node. */
export async function settledStage<T>(
  deps: NodeDeps,
  at: { readonly volumeId: string; readonly stagingPath: string },
  context: CallContext,
  work: () => T | Promise<T>,
): Promise<T> {
  return await settled(deps.clock, context, (looking) => isNothingLeft(deps, at, looking), work);
}

/** Runs a publish, or the parsing of its request: a failure is final while nothing is mounted at its target. */
export async function settledPublish<T>(
  deps: NodeDeps,
  targetPath: string,
  context: CallContext,
  work: () => T | Promise<T>,
): Promise<T> {
  return await settled(deps.clock, context, async () => !await isAnyMounted(deps, [targetPath]), work);
}

/** Whether nothing of the volume is on this node: no connection, no map, and no mount at any of its paths. */
async function isNothingLeft(
  deps: NodeDeps,
  { volumeId, stagingPath }: { readonly volumeId: string; readonly stagingPath: string },
  context: CallContext,
): Promise<boolean> {
  const nqns = await connectedNqns(deps, volumeId, context);
  if (nqns.length > 0) return false;
  const stagingState = await deps.stagingStore.findUndamaged(volumeId);
  const recorded = stagingState === undefined ? [] : placesOf(stagingState);
  const points = await mountPoints(deps, [...new Set([stagingPath, ...recorded])]);
  return await whatIsLeft(deps, { volumeId, nqns }, points, context) === undefined;
}
