import type { DeviceUser } from "../../volume/model/host/device_user.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { MissingPath, MountEntry, ProvenDevice } from "../../volume/ports/node_ports.ts";
import { seenDevice, type StagingState, withHere, withUniqueId } from "../../volume/model/staging/state.ts";
import { usersOf } from "../../volume/rules/host/device_users.ts";
import { findMultipath, othersBelow, readChain, type VolumeMap } from "../chain/chain.ts";
import { growMap, removeOwnMap } from "../chain/map.ts";
import { holdProven, prove } from "../connections/device.ts";
import { refuseUsers } from "../connections/observe.ts";
import { targetOf } from "../connections/target.ts";
import { disconnectUnrecorded, disconnectUnused } from "../connections/teardown.ts";
import { unlock } from "../encryption/unlock.ts";
import { attachPath } from "../layer/attach_path.ts";
import { bindsOf, isAnyMounted, isDeleted, mountUser } from "../mount_table.ts";
import type { NodeDeps } from "../deps.ts";
import { assertRenewable, findStaged, isRenewed } from "./new_identity.ts";
import type { RaisedDevice, Staging } from "./stage_device.ts";

/** A volume whose device in use is there. */
interface Raised {
  readonly raised: RaisedDevice;
  /** With that device; not yet written. */
  readonly stagingState: StagingState;
  /** Ends what keeps the device open. */
  readonly release: () => Promise<void>;
  /** Whether an address has no path yet. */
  readonly lacksPath: boolean;
}

/**
 * Brings up connection, namespace and map, each only as far as it is not there, and proves them. The device in use stays open:
 * its name and its number go to no other device until `release()` or the end of the call.
 *
 * @throws {VolumeError} identity-mismatch when what is there is not the volume; in-use while somebody else has the device
 */
export async function raise(
  staging: Staging & { readonly mountPoint: string },
  begun: StagingState,
): Promise<Raised> {
  const { deps, passphrases, undo, context } = staging;
  const { below, uniqueId, renewed, lacksPath } = await connect(staging, begun);
  const isSame = (device: ProvenDevice) =>
    device.uniqueId === uniqueId && device.sizeBytes === seenDevice(begun)?.sizeBytes;
  const { device: used, stagingState: unlocked } = passphrases === undefined
    ? { device: below, stagingState: begun }
    : await unlock({ ...staging, passphrases, below, sameDevice: isSame(below) }, begun);
  const { device, release } = await holdProven(deps, used, undo, context);
  // What was staged was so on the device of then. The node may have taken this one since it appeared.
  const isAnother = device.deviceNumber !== begun.here.device?.deviceNumber ||
    (renewed && begun.intent.map !== "multipath");
  const current = isAnother ? withHere(unlocked, { staged: false }) : unlocked;
  if (!current.here.staged) await refuseWhileTaken(staging, device);
  await refuseWhileBound(staging, current, device);
  return {
    raised: { device, sameDevice: isSame(device), renewed },
    stagingState: locate(current, device, below),
    release,
    lacksPath,
  };
}

/**
 * Connects and proves the device; puts a device layer on it. Where checksums are requested, a connection that was there
 * before counts only once the state file names its device. Until then it may be one without checksums, which an earlier
 * call met and could not end, so it is made again.
 */
async function connect(
  { deps, publish, undo, context }: Staging,
  stagingState: StagingState,
): Promise<Connected> {
  const { connector } = deps;
  const { nqn } = publish;
  let wasConnected = (await connector.connected(context)).includes(nqn);
  const { intent: { connection: { digests = [] } }, here } = stagingState;
  if (wasConnected && here.device === undefined && digests.length > 0) {
    await disconnectUnrecorded(deps, nqn, context);
    wasConnected = false;
  }
  // I/O that waits in a map waits for this very connection, so it is not undone then.
  if (!wasConnected && await findMultipath(deps, nqn) === undefined) {
    undo.add("disconnect", (undoing) => disconnectUnused(deps, nqn, undoing));
  }
  let missing: readonly MissingPath[];
  try {
    missing = await connector.connect(targetOf(stagingState.intent), context);
    if (!wasConnected) deps.events.occurred({ kind: "connected", outcome: "ok" });
  } catch (error) {
    deps.events.occurred({ kind: "connected", outcome: "failed" });
    throw error;
  }
  const { namespaceBytes } = stagingState.intent;
  const sizeBytes = namespaceBytes > publish.sizeBytes ? namespaceBytes : publish.sizeBytes;
  const found = await findStaged(deps, nqn, wasConnected, context);
  const renewed = isRenewed(stagingState, found);
  if (renewed) await assertRenewable(deps, stagingState, found, context);
  const uniqueId = renewed ? found.uniqueId : seenDevice(stagingState)?.uniqueId;
  const below = await prove(deps, found, { nqn, sizeBytes, uniqueId }, context);
  const first = stagingState.intent.map !== "multipath"
    ? below
    : await putMap({ deps, undo, context }, stagingState, below);
  return { below: first, uniqueId, renewed, lacksPath: missing.length > 0 };
}

/** A connected volume. */
interface Connected {
  /** The namespace, or the map that lets writes wait. */
  readonly below: ProvenDevice;
  /** The one that an earlier attempt saw, or with which the device has come back. */
  readonly uniqueId: string | undefined;
  readonly renewed: boolean;
  readonly lacksPath: boolean;
}

/** Puts the map in place. A map that existed before this call stays when the call fails: I/O may wait in it. */
async function putMap(
  { deps, undo, context }: Pick<Staging, "deps" | "undo" | "context">,
  stagingState: StagingState,
  below: ProvenDevice,
): Promise<ProvenDevice> {
  const { volumeId, intent: { nqn } } = stagingState;
  const there = await findMultipath(deps, nqn);
  if (there === undefined) {
    undo.add("remove the map", (on) => removeOwnMap(deps, { volumeId, nqns: [nqn] }, on));
  }
  const hasFailed = there !== undefined && await wasGivenUp(deps, stagingState, there, context);
  await attachPath(deps, stagingState, below, context, { hasFailed });
  // The volume may have grown while it was not staged.
  return await growMap(deps, "multipath", below, context);
}

/** Whether the map of an interrupted stage is unused and its I/O fails or waits, which would go on forever. */
async function wasGivenUp(
  deps: NodeDeps,
  { intent: { stagingPath }, here: { staged, published } }: StagingState,
  map: VolumeMap,
  context: CallContext,
): Promise<boolean> {
  if (staged || published.length > 0 || map.sizeBytes === 0n) return false;
  if (await isAnyMounted(deps, [stagingPath])) return false;
  const { queues, failed } = await deps.maps!.table(map, context);
  return !queues || failed;
}

/**
 * Throws while the device is bound elsewhere. A bind outlives its device and then shows the next device of the same
 * number, so its user would write to this volume. So would a process that has mounted a volume which is to be handed
 * out as a raw device.
 */
async function refuseWhileBound(
  { deps, context }: Staging,
  stagingState: StagingState,
  device: ProvenDevice,
): Promise<void> {
  const own = await Promise.all(
    stagingState.here.published.map((target) => deps.paths.mountPoint(target.targetPath)),
  );
  // The kubelet binds the device node once more for each pod, at paths that it passes to no call. Such binds are its
  // own if the volume is staged on this very device.
  const isSame = stagingState.here.staged && stagingState.here.device?.deviceNumber === device.deviceNumber;
  const isOwn = (entry: MountEntry) => own.includes(entry.mountPoint) || (isSame && !isDeleted(entry));
  const table = await deps.mounts.table();
  const binds = await bindsOf(deps.paths, table, device, context);
  const used = stagingState.intent.kind === "block" ? binds.filter((entry) => !isOwn(entry)) : binds;
  const mounts = table.filter((entry) => entry.deviceNumber === device.deviceNumber);
  refuseUsers("stage", stagingState.volumeId, [
    ...used.map(({ mountPoint: at }): DeviceUser => ({ device: device.path, by: "bind", at })),
    ...stagingState.intent.kind === "block" ? mounts.map(mountUser) : [],
  ]);
}

/**
 * Throws while the node has mounted a partition of this device, or made a device of its own of it, as LVM, md and
 * multipath do where they find what a workload wrote: node and workload would both write. A volume that is staged stays
 * with its pods; health tells.
 */
async function refuseWhileTaken(
  { deps, volumeId, context }: Pick<Staging, "deps" | "volumeId" | "context">,
  device: ProvenDevice,
): Promise<void> {
  const users = await usersOf(deps, device, "shown", context);
  // Mounts and binds of the device itself are the stage's own, or refused for what they are.
  const taken = users.filter(({ by, device: at }) => at !== device.path || by === "layer" || by === "swap");
  // The kernel lets several maps share the namespace, this driver's among them.
  const below = await othersBelow(deps, await readChain(deps, device.nqn, context));
  refuseUsers("stage", volumeId, [...taken, ...below]);
}

/** Records the current device. */
function locate(stagingState: StagingState, device: ProvenDevice, below: ProvenDevice): StagingState {
  const { deviceNumber, uniqueId, sizeBytes } = device;
  const { intent, ...rest } = withUniqueId(stagingState, uniqueId);
  const located = { ...rest, intent: { ...intent, namespaceBytes: below.sizeBytes } };
  return withHere(located, { device: { deviceNumber, uniqueId, sizeBytes } });
}
