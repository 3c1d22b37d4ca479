import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { MountEntry } from "../../volume/ports/node_ports.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import { placesOf, recordedNumbers, targetsOf } from "../../volume/model/staging/here.ts";
import { isDeleted, isOnBlockDevice } from "../mount_table.ts";
import { findMap, readChain } from "../chain/chain.ts";
import type { StagingStore } from "../state/staging_store.ts";
import { connectedNqns } from "../connections/observe.ts";
import type { NodeDeps } from "../deps.ts";

/**
 * Refuses a staging path at which another volume is staged, or that overlaps a path of another volume.
 *
 * @throws {VolumeError} precondition when it does
 */
export async function assertStagingFree(
  stagingStore: StagingStore,
  volumeId: string,
  path: string,
): Promise<void> {
  const others = await stagingStore.others(volumeId);
  const owner = others.find((other) => placesOf(other).some((location) => overlaps(path, location)));
  if (owner === undefined) return;
  throw new VolumeError(
    "precondition",
    `Cannot use the staging path because another volume uses it: volume=${volumeId} path=${path} ` +
      `staged=${owner.volumeId}`,
  );
}

/**
 * Refuses a target path that covers a staging path, or lies in one or in another target: the volume would be published
 * over itself or another, or its folder created among a workload's files.
 *
 * @throws {VolumeError} invalid when it does
 */
export async function assertTargetApart(
  stagingStore: StagingStore,
  stagingState: StagingState,
  targetPath: string,
): Promise<void> {
  const all = [stagingState, ...await stagingStore.others(stagingState.volumeId)];
  const locations = all.flatMap((each) => placesOf(each));
  // The target itself is checked in the mount table: this volume may be there, or nothing any more.
  const stagings = all.map(({ intent: { stagingPath } }) => stagingPath);
  const near = stagings.find((staging) => staging === targetPath) ??
    locations.find((location) => location !== targetPath && overlaps(targetPath, location));
  if (near === undefined) return;
  throw new VolumeError(
    "invalid",
    `Cannot publish the volume because its target overlaps another path of a volume: volume=${stagingState.volumeId} ` +
      `path=${targetPath} place=${near}`,
  );
}

function overlaps(one: string, other: string): boolean {
  return isWithin(one, other) || isWithin(other, one);
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

/**
 * Refuses to unmount anything at a target that is not this volume. Without a record of the volume it refuses only what
 * certainly belongs to another: a pod has to be able to end.
 *
 * @throws {VolumeError} precondition when it is a staging path, another volume's target or some other mount
 */
export async function assertMayUnmount(
  deps: NodeDeps,
  { volumeId, targetPath }: { readonly volumeId: string; readonly targetPath: string },
  mounted: readonly MountEntry[],
  context: CallContext,
): Promise<void> {
  const refuse = (why: string): never => {
    throw new VolumeError(
      "precondition",
      `Cannot unpublish the volume because ${why}: volume=${volumeId} path=${targetPath}`,
    );
  };
  const stagingState = await deps.stagingStore.findUndamaged(volumeId);
  const others = await deps.stagingStore.others(volumeId);
  const staged = [stagingState, ...others].find((each) => each?.intent.stagingPath === targetPath);
  if (staged !== undefined) refuse(`${staged.volumeId} is staged there`);
  const foreign = mounted.find((entry) => !isOnBlockDevice(entry) && !isNodeBind(entry));
  if (foreign !== undefined) refuse(`something else is mounted there: type=${foreign.filesystem}`);
  if (stagingState !== undefined && isPublishedAt(stagingState, targetPath)) return;
  const owner = others.find((other) => isPublishedAt(other, targetPath));
  if (owner !== undefined) refuse(`${owner.volumeId} is published there`);
  // A record that was begun after another was lost, and names no device yet, says no more than none.
  if (stagingState === undefined || recordedNumbers(stagingState.here).length === 0) return;
  const nqns = await connectedNqns(deps, volumeId, context);
  const chains = await Promise.all(nqns.map((nqn) => readChain(deps, nqn, context)));
  // A map outlasts the connection below it, and has the volume's name.
  const devices = [await findMap(deps, volumeId), ...chains.map(({ namespace }) => namespace)];
  const own = [...recordedNumbers(stagingState.here), ...devices.map((device) => device?.deviceNumber)];
  for (const entry of mounted) {
    // The kernel removes a node with its device: what it showed is gone, and nobody's any more.
    if (isNodeBind(entry) && isDeleted(entry)) continue;
    const number = await shownDevice(deps, entry, context);
    if (number === undefined || own.includes(number)) continue;
    refuse(`it was never published there, and another device is: device=${number}`);
  }
}

function isPublishedAt(stagingState: StagingState, targetPath: string): boolean {
  return targetsOf(stagingState).includes(targetPath);
}

/** Whether the entry binds a device node: a node is only a part of the file system that it lies in. */
function isNodeBind(entry: MountEntry): boolean {
  return ["devtmpfs", "tmpfs"].includes(entry.filesystem) && entry.root !== "/";
}

/** The number of the device that is mounted or bound there. */
async function shownDevice(
  deps: NodeDeps,
  entry: MountEntry,
  context: CallContext,
): Promise<string | undefined> {
  if (isOnBlockDevice(entry)) return entry.deviceNumber;
  return (await deps.paths.info(entry.mountPoint, context))?.deviceNumber;
}
