import { VolumeError } from "../../volume/errors.ts";
import { inUse, isInUse } from "../../volume/model/host/device_user.ts";
import { parseExportNqn } from "../../volume/model/nqn.ts";
import { withHere } from "../../volume/model/staging/state.ts";
import type { DeviceNode } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { usersOf } from "../../volume/rules/host/device_users.ts";
import { removeOwnMap } from "../chain/map.ts";
import { mountsAt } from "../mount_table.ts";
import type { NodeDeps } from "../deps.ts";
import { unmountLast } from "./last_unmount.ts";
import { endLivingFilesystem } from "./living_filesystem.ts";
import {
  assertUnused,
  type Observation,
  observe,
  refuseUsers,
  type Teardown,
  whatIsLeft,
} from "./observe.ts";

/**
 * Returns the content of the file that names the device; undefined when there is none. Reading a link or a device may
 * never end.
 */
export async function readDeviceFile(
  deps: NodeDeps,
  path: string,
  context: CallContext,
): Promise<string | undefined> {
  const info = await deps.paths.info(path, context);
  return info?.kind === "file" ? await deps.paths.readFile(path) : undefined;
}

/** The name of the file in the staging folder that names the device of a raw block volume. */
export const deviceFileName = "device";

/**
 * Takes a volume off this node: refuses while it is in use, then unmounts, flushes and disconnects. It returns only
 * when neither the mount table nor the connector shows the volume.
 *
 * It goes by what the kernel shows, so it can be repeated after any failure.
 *
 * @throws {VolumeError} in-use when the volume is published, bound, mounted elsewhere or open; precondition when
 *   something else is mounted at the staging path
 */
export async function tearDown(deps: NodeDeps, volume: Teardown, context: CallContext): Promise<void> {
  const seen = await observe(deps, volume, "open", context);
  await assertUnused(deps, volume, seen);
  const { stagingState } = volume;
  // From here on the volume must not be published, even if this call fails later.
  if (stagingState !== undefined) await deps.stagingStore.write(withHere(stagingState, { staged: false }));
  await lower(deps, volume, seen, context);
}

/** From the top down to nothing, which is read back. */
async function lower(
  deps: NodeDeps,
  volume: Teardown,
  { devices, points }: Observation,
  context: CallContext,
): Promise<void> {
  const { stagingState, stagingPaths, nqns } = volume;
  // The staging path of a mounted volume holds the volume's own files, so the device file is not looked for there.
  if (stagingState === undefined || stagingState.intent.kind === "block") {
    await removeDeviceFiles(deps, stagingPaths, points, context);
  }
  for (const mountPoint of points) {
    context.signal.throwIfAborted();
    await unmountLast(deps, mountPoint, context);
  }
  await refuseWhileClaimed(deps, volume, devices, context);
  await removeOwnMap(deps, volume, context);
  for (const nqn of nqns) {
    context.signal.throwIfAborted();
    await disconnect(deps, nqn, context);
  }
  const left = await whatIsLeft(deps, volume, points, context);
  if (left === undefined) return;
  throw new VolumeError(
    "unavailable",
    `Cannot finish unstaging the volume because a part of it is still here: volume=${volume.volumeId} ${left}`,
  );
}

/**
 * Undoes a connect. A device stays connected if it could not be unmounted before, or is mounted where this process
 * cannot see it: its unwritten data would be lost silently.
 *
 * @throws {VolumeError} in-use while the device is mounted or claimed
 */
export async function disconnectUnused(deps: NodeDeps, nqn: string, context: CallContext): Promise<void> {
  await disconnectFree(deps, nqn, "claimed", context);
}

/**
 * Disconnects what was connected without a record, like {@linkcode disconnectUnused}. Nothing says here that no pod has it,
 * and a raw device is used without a mount and without a claim: so it also stays while it is bound or open anywhere.
 *
 * @throws {VolumeError} in-use while the device is mounted, claimed, bound or open
 */
export async function disconnectUnrecorded(deps: NodeDeps, nqn: string, context: CallContext): Promise<void> {
  await disconnectFree(deps, nqn, "unused", context);
}

async function disconnectFree(
  deps: NodeDeps,
  nqn: string,
  depth: "claimed" | "unused",
  context: CallContext,
): Promise<void> {
  await refuseUsed(deps, nqn, depth, context);
  await disconnect(deps, nqn, context);
}

/**
 * Throws unless a connection may be ended that no state file names.
 *
 * @throws {VolumeError} in-use
 */
export async function refuseUsed(
  deps: NodeDeps,
  nqn: string,
  depth: "claimed" | "unused",
  context: CallContext,
): Promise<void> {
  const { users } = await observe(deps, exportOf(deps, nqn), depth, context);
  context.signal.throwIfAborted();
  const inTheWay = users.filter(({ by }) => depth === "unused" || by !== "bind");
  if (!isInUse(inTheWay)) return;
  throw inUse(inTheWay, (words) => `Cannot disconnect because the device is in use: nqn=${nqn} ${words}`);
}

/** Removes the map of an unused subsystem, and then disconnects it. */
async function disconnect(deps: NodeDeps, nqn: string, context: CallContext): Promise<void> {
  await removeOwnMap(deps, exportOf(deps, nqn), context);
  await deps.connector.disconnect(nqn, context);
}

/** One export alone. One that names no volume has no map. */
function exportOf({ settings }: NodeDeps, nqn: string): Teardown {
  const volumeId = parseExportNqn(nqn, settings.nqnPrefix)?.volumeId ?? nqn;
  return { volumeId, nqns: [nqn], stagingPaths: [], stagingState: undefined };
}

/**
 * After this driver's mounts are gone, a claim belongs to another user: a mount in another namespace, or what a node that
 * scans raw devices has made of a workload's data.
 */
async function refuseWhileClaimed(
  deps: NodeDeps,
  volume: Teardown,
  found: readonly DeviceNode[],
  context: CallContext,
): Promise<void> {
  for (const device of found) {
    let users = await usersOf(deps, device, "claimed", context);
    if (await endLivingFilesystem(deps, volume.stagingState, device, users, context)) {
      users = await usersOf(deps, device, "claimed", context);
    }
    context.signal.throwIfAborted();
    refuseUsers("unstage", volume.volumeId, users.filter(({ by }) => by !== "bind"));
  }
}

async function removeDeviceFiles(
  deps: NodeDeps,
  stagingPaths: readonly string[],
  points: readonly string[],
  context: CallContext,
): Promise<void> {
  const table = await deps.mounts.table();
  for (const [at, stagingPath] of stagingPaths.entries()) {
    if (mountsAt(table, points[at]!).length > 0) continue;
    const path = `${stagingPath}/${deviceFileName}`;
    const info = await deps.paths.info(path, context);
    if (info !== undefined && info.kind !== "file") continue;
    const text = await deps.paths.readFile(path);
    // A staging that was killed may have left an unfinished temporary file of it.
    if (text === undefined || text.startsWith("/dev/")) await deps.paths.removeFile(path);
  }
}
