import { VolumeError } from "../../volume/errors.ts";
import { type Intent, type StagingState, withHere } from "../../volume/model/staging/state.ts";
import { stagingDifference } from "../../volume/model/staging/intent.ts";
import { placesOf, targetsOf } from "../../volume/model/staging/here.ts";
import { beginAnew } from "../../volume/model/staging/content.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { findMap } from "../chain/chain.ts";
import { connectedNqns, type Teardown } from "../connections/observe.ts";
import { tearDown } from "../connections/teardown.ts";
import type { NodeDeps } from "../deps.ts";
import type { Fencing } from "../fencing/fencing.ts";
import { isGivenUp } from "../layer/queueing.ts";
import { isAnyMounted } from "../mount_table.ts";
import { chooseLayer, type StageWish } from "./wish.ts";

/**
 * Returns the state of the same epoch, if there is one. It first takes down any other epoch: that device is fenced, and
 * binds of it no longer show this volume.
 *
 * @param wanted with the map that it is to have as long as it stays connected
 */
export async function dropOlder(
  deps: NodeDeps,
  fencing: Fencing,
  wish: StageWish,
  wanted: Intent,
  context: CallContext,
): Promise<StagingState | undefined> {
  const { stagingStore } = deps;
  const { volumeId } = wish;
  const stagingState = await stagingStore.find(volumeId);
  const isCurrent = stagingState?.intent.epoch === wanted.epoch && stagingState.intent.nqn === wanted.nqn;
  const connected = await connectedNqns(deps, volumeId, context);
  const older = new Set(connected.filter((nqn) => nqn !== wanted.nqn));
  if (stagingState !== undefined && !isCurrent) older.add(stagingState.intent.nqn);
  if (older.size > 0) {
    const left = isCurrent ? undefined : stagingState;
    const stagingPaths = left === undefined ? [] : [left.intent.stagingPath];
    const volume = { volumeId, nqns: [...older], stagingPaths, stagingState: left };
    await fencing.release(volume, context, { publishedNqn: wanted.nqn });
    await tearDown(deps, volume, context);
    if (left !== undefined) await stagingStore.end(left);
  }
  if (stagingState === undefined || !isCurrent) return undefined;
  // After a reboot of the node only the record is left, and what it says of a finished stage is over.
  const isHere = connected.includes(wanted.nqn) || await findMap(deps, volumeId) !== undefined ||
    await isAnyMounted(deps, placesOf(stagingState));
  const difference = stagingDifference(stagingState.intent, wanted) ??
    await lossOfUnused(deps, stagingState, context);
  if (difference === undefined) {
    const { addresses, port, map, connection } = wanted;
    const mayFormat = stagingState.intent.mayFormat || wanted.mayFormat;
    const same = { ...stagingState.intent, mayFormat, addresses, port };
    if (connected.includes(wanted.nqn)) return { ...stagingState, intent: same };
    const { map: _map, ...rest } = same;
    const intent = { ...rest, ...map === undefined ? {} : { map }, connection };
    const staged = stagingState.here.staged && isHere;
    return await stagingStore.write(withHere({ ...stagingState, intent }, { staged }));
  }
  if (isHere) await takeDownUnused(deps, fencing, stagingState, wanted, difference, context);
  return await stagingStore.write(beginAnew(stagingState, await chooseLayer(deps, wish, context)));
}

/**
 * What makes a volume that no pod has useless as it is staged, for people; undefined where nothing does. Its map fails I/O for
 * good once the wait for its device was given up, also when that is back.
 */
async function lossOfUnused(
  deps: NodeDeps,
  stagingState: StagingState,
  context: CallContext,
): Promise<string | undefined> {
  if (!await isGivenUp(deps, stagingState.intent.nqn, context)) return undefined;
  return await isAnyMounted(deps, targetsOf(stagingState)) ? undefined : "its writes were given up";
}

/**
 * Takes down what is staged in another way than it is wanted now: what a stage has left that ended halfway, or what no pod
 * has any more. A kubelet that wants the volume for a new pod, with edited mount options, never unstages it first.
 *
 * @throws {VolumeError} in-use when a pod or anything else has it; exists-incompatible when it is staged at another path,
 *   which somebody may still rely on; unavailable while its target is away and may come back
 */
async function takeDownUnused(
  deps: NodeDeps,
  fencing: Fencing,
  stagingState: StagingState,
  { nqn, stagingPath }: Intent,
  difference: string,
  context: CallContext,
): Promise<void> {
  const { volumeId } = stagingState;
  const refused = (kind: "exists-incompatible" | "in-use", why: string) =>
    new VolumeError(
      kind,
      `Cannot stage the volume because it is staged in another way: volume=${volumeId} ${difference}${why}`,
    );
  const isElsewhere = stagingState.intent.stagingPath !== stagingPath;
  if (stagingState.here.staged && isElsewhere) throw refused("exists-incompatible", "");
  const volume = teardownOf(stagingState);
  await fencing.release(volume, context, { publishedNqn: nqn });
  try {
    await tearDown(deps, volume, context);
  } catch (error) {
    if (!VolumeError.is(error, "in-use")) throw error;
    throw refused("in-use", `; and it is in use: ${error.message}`);
  }
}

/**
 * Takes down what an earlier stage of the epoch has left that ended halfway, so that no pod has it, and ends its record.
 *
 * @throws {VolumeError} in-use; unavailable while its target is away and may come back
 */
export async function endLeft(
  deps: NodeDeps,
  fencing: Fencing,
  left: StagingState,
  context: CallContext,
): Promise<void> {
  const { stagingStore } = deps;
  const stagingState = await stagingStore.find(left.volumeId) ?? left;
  const volume = teardownOf(stagingState);
  await fencing.release(volume, context, { publishedNqn: stagingState.intent.nqn });
  await tearDown(deps, volume, context);
  await stagingStore.endFailed(stagingState);
}

function teardownOf(stagingState: StagingState): Teardown {
  const { volumeId, intent: { nqn, stagingPath } } = stagingState;
  return { volumeId, nqns: [nqn], stagingPaths: [stagingPath], stagingState };
}
