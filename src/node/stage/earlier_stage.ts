import { VolumeError } from "../../volume/errors.ts";
import { beginAnew, isAllowed } from "../../volume/model/filesystem/content.ts";
import type { PublishContext } from "../../volume/model/publish_context.ts";
import { stagingDifference, type StagingState } from "../../volume/model/staging_state.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { connectedNqns, type Teardown, tearDown } from "../connections/teardown.ts";
import type { NodeDeps } from "../deps.ts";
import type { Fencing } from "../fencing/fencing.ts";
import { isAnyMounted } from "../mount_table.ts";

/** How a volume is wanted now. */
export interface Wish {
  /** With the layer that it is to have as long as it stays connected. */
  readonly wanted: StagingState;
  /** Chooses its layer anew, once it is connected no more. */
  chooseLayer(): Promise<StagingState>;
}

/**
 * Returns the state of the same epoch, if there is one. It first takes down any other epoch: that device is fenced, and
 * binds of it no longer show this volume.
 */
export async function dropOlder(
  deps: NodeDeps,
  fencing: Fencing,
  publish: PublishContext,
  { wanted, chooseLayer }: Wish,
  context: CallContext,
): Promise<StagingState | undefined> {
  const { stagingStore } = deps;
  const stagingState = await stagingStore.find(wanted.volumeId);
  const isCurrent = stagingState?.epoch === publish.epoch && stagingState.nqn === publish.nqn;
  const connected = await connectedNqns(deps, wanted.volumeId, context);
  const older = new Set(connected.filter((nqn) => nqn !== publish.nqn));
  if (stagingState !== undefined && !isCurrent) older.add(stagingState.nqn);
  if (older.size > 0) {
    const left = isCurrent ? undefined : stagingState;
    const stagingPaths = left === undefined ? [] : [left.stagingPath];
    const volume = { volumeId: wanted.volumeId, nqns: [...older], stagingPaths, stagingState: left };
    await fencing.release(volume, context, { publishedNqn: publish.nqn });
    await tearDown(deps, volume, context);
    if (left !== undefined) await stagingStore.end(left);
  }
  if (stagingState === undefined || !isCurrent) return undefined;
  const difference = stagingDifference(stagingState, wanted);
  if (difference === undefined) {
    const { addresses, port } = publish;
    const same = { ...stagingState, mayFormat: isAllowed(stagingState, wanted), addresses, port };
    if (connected.includes(publish.nqn) || isSameLayer(same, wanted)) return same;
    const { map: _map, ...rest } = same;
    const { map, connection } = wanted;
    return await stagingStore.write({ ...rest, ...map === undefined ? {} : { map }, connection });
  }
  // After a reboot of the node only the record is left.
  const targetPaths = stagingState.published.map(({ targetPath }) => targetPath);
  const isHere = connected.includes(stagingState.nqn) ||
    await isAnyMounted(deps, [stagingState.stagingPath, ...targetPaths]);
  if (isHere) await takeDownUnused(deps, stagingState, wanted, difference, context);
  return await stagingStore.write(beginAnew(stagingState, await chooseLayer()));
}

/**
 * Takes down what is staged in another way than it is wanted now: what a stage has left that ended halfway, or what no pod
 * has any more. A kubelet that wants the volume for a new pod, with edited mount options, never unstages it first.
 *
 * @throws {VolumeError} in-use when a pod or anything else has it; exists-incompatible when it is staged at another path,
 *   which somebody may still rely on
 */
async function takeDownUnused(
  deps: NodeDeps,
  stagingState: StagingState,
  { volumeId, stagingPath }: StagingState,
  difference: string,
  context: CallContext,
): Promise<void> {
  const refused = (kind: "exists-incompatible" | "in-use", why: string) =>
    new VolumeError(
      kind,
      `Cannot stage the volume because it is staged in another way: volume=${volumeId} ${difference}${why}`,
    );
  const isElsewhere = stagingState.stagingPath !== stagingPath;
  if (stagingState.staged && isElsewhere) throw refused("exists-incompatible", "");
  try {
    await tearDown(deps, teardownOf(stagingState), context);
  } catch (error) {
    if (!VolumeError.is(error, "in-use")) throw error;
    throw refused("in-use", `; and it is in use: ${error.message}`);
  }
}

function isSameLayer(one: StagingState, other: StagingState): boolean {
  return one.map === other.map && JSON.stringify(one.connection) === JSON.stringify(other.connection);
}

/** Takes down what an earlier stage of the epoch has left that ended halfway, so that no pod has it, and ends its record. */
export async function endLeft(
  deps: NodeDeps,
  left: StagingState,
  context: CallContext,
): Promise<void> {
  const { stagingStore } = deps;
  const stagingState = await stagingStore.find(left.volumeId) ?? left;
  await tearDown(deps, teardownOf(stagingState), context);
  await stagingStore.end(stagingState);
}

function teardownOf(stagingState: StagingState): Teardown {
  const { volumeId, nqn, stagingPath } = stagingState;
  return { volumeId, nqns: [nqn], stagingPaths: [stagingPath], stagingState };
}
