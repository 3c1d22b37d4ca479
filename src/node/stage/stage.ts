import { type Capability, isReadOnlyMode, kindName } from "../../volume/model/capabilities.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { MissingPath, MountEntry, ProvenDevice } from "../../volume/ports/node_ports.ts";
import {
  type ConnectionSettings,
  type Intent,
  newState,
  seenDevice,
  type StagingState,
  withHere,
  withUniqueId,
} from "../../volume/model/staging/state.ts";
import { contentFor } from "../../volume/model/staging/content.ts";
import { parsePublishContext, type PublishContext } from "../../volume/model/publish_context.ts";
import { type NodeParameters, parseNodeParameters } from "./node_parameters.ts";
import { bindsOf, isAnyMounted, isDeleted, mountPointOf, mountsAt } from "../mount_table.ts";
import { holdProven, prove } from "../connections/device.ts";
import { targetOf } from "../connections/target.ts";
import { findMultipath, type VolumeMap } from "../chain/chain.ts";
import { growMap, removeOwnMap } from "../chain/map.ts";
import { attachPath } from "../layer/attach_path.ts";
import { choosesLayer } from "../layer/choose_layer.ts";
import type { Fencing } from "../fencing/fencing.ts";
import { assertRenewable, findStaged, isRenewed } from "./new_identity.ts";
import { parsePassphrases, type Passphrases } from "../../volume/model/encryption.ts";
import { unlock, type Unlocking } from "../encryption/unlock.ts";
import { parseMountFlags } from "../../volume/model/filesystem/mount_flags.ts";
import { assertStagingFree } from "../publish/target_paths.ts";
import { stageDevice, type Staging } from "./stage_device.ts";
import { connectedNqns, disconnectUnrecorded, disconnectUnused } from "../connections/teardown.ts";
import { dropOlder, endLeft } from "./earlier_stage.ts";
import { isNothingLeft, settled } from "./settled.ts";
import { withUndo } from "./undo.ts";
import type { NodeDeps } from "../deps.ts";

/** The fields of NodeStageVolume. */
export interface StageRequest {
  readonly volumeId: string;
  readonly stagingPath: string;
  readonly capability: Capability;
  readonly mountFlags: readonly string[];
  readonly publishContext: Readonly<Record<string, string>>;
  readonly volumeContext: Readonly<Record<string, string>>;
  /** Used for encrypted volumes only. @default {none} */
  readonly secrets?: Readonly<Record<string, string>>;
}

/**
 * Brings a volume onto this node: state file, connect, find, prove, and then the file system or the device file. Steps
 * that are done already are verified and not repeated; a failure undoes what this call did. What was staged in another way
 * is begun anew, unless it is in use.
 *
 * @throws {VolumeError} precondition when its device may not be used as it is, or it was published to another machine;
 *   unavailable when anything of it is still on this node after a failure
 */
export async function stageVolume(
  deps: NodeDeps,
  fencing: Fencing,
  request: StageRequest,
  context: CallContext,
): Promise<void> {
  const isClear = (looking: CallContext) => isNothingLeft(deps, request, looking);
  await settled(deps.clock, context, isClear, () => stage(deps, fencing, request, context));
}

async function stage(
  deps: NodeDeps,
  fencing: Fencing,
  request: StageRequest,
  context: CallContext,
): Promise<void> {
  const { capability, volumeId, volumeContext } = request;
  const publish = parsePublishContext(request.publishContext, volumeId, volumeContext);
  assertThisMachine(deps, volumeId, publish);
  const filesystem = capability.access === "mount" ? capability.filesystem : undefined;
  const given = parseNodeParameters(volumeContext, filesystem);
  const parameters = publish.needsLayer ? { ...given, deviceLayer: "multipath" as const } : given;
  assertSameEncryption(volumeId, publish, parameters);
  const passphrases = publish.encrypted ? parsePassphrases(request.secrets ?? {}) : undefined;
  const plain = intentOf(request, publish, parameters.connection);
  const chooseLayer = () => withLayer(deps, volumeId, plain, parameters, context);
  const wanted = await chooseLayer();
  const known = await dropOlder(deps, fencing, { volumeId, wanted, chooseLayer }, context);
  assertLayered(publish, volumeId, known?.intent ?? wanted);
  await withUndo(deps.clock, context, async (undo) => {
    // A node that may write may replay the log, even if the mount is to be read-only.
    const mayReplay = publish.mayReplay || !(publish.readOnly || isReadOnlyMode(capability.mode));
    const staging: Staging = { deps, publish, mayReplay, parameters, undo, context };
    if (known?.here.staged === false) {
      // After a final error nothing would ever be asked to take down what a stage has left that ended halfway.
      undo.add("take down what was left", (undoing) => endLeft(deps, known, undoing));
    }
    const stagingState = known ?? await remember(staging, await recall(deps, volumeId, wanted));
    const mountPoint = await ensureStagingFolder(staging, stagingState);
    const below = await connect(staging, stagingState);
    const unlocking = { ...staging, ...below, passphrases, isSoleWriter: isSoleWriter(request), mountPoint };
    const { device, unlocked, sameDevice, release } = await holdUsed(unlocking, stagingState);
    await refuseWhileBound(staging, unlocked, device);
    // This state is written with the next step. Until then the recorded NQN must lead to whatever has to be taken down.
    const located = locate(unlocked, device, below.below);
    const ready = await stageDevice(
      { ...staging, device, sameDevice, renewed: below.renewed, mountPoint },
      located,
      filesystem,
    );
    context.signal.throwIfAborted();
    // Its router offers this epoch, so every other one is over.
    await deps.stagingStore.known.forget(volumeId, { but: publish.epoch });
    await deps.stagingStore.write(withHere(ready, { staged: true }));
    await release();
    if (below.lacksPath) deps.pathWatch?.lacking();
  });
}

/**
 * Throws unless record and PersistentVolume agree, as the controller has seen them: plain text must not go where cipher
 * text is expected, nor the other way round.
 *
 * @throws {VolumeError} invalid
 */
function assertSameEncryption(
  volumeId: string,
  { encrypted }: PublishContext,
  { encryption }: NodeParameters,
): void {
  if (encrypted === encryption.encrypted) return;
  throw new VolumeError(
    "invalid",
    `Cannot stage the volume because its volume context says encrypted=${encryption.encrypted}, and it was published as ` +
      `encrypted=${encrypted}: volume=${volumeId}`,
  );
}

/** Whether no other node can have the volume meanwhile, and this one may write. */
function isSoleWriter({ capability: { mode } }: StageRequest): boolean {
  return mode.startsWith("single-node-") && !isReadOnlyMode(mode);
}

/** How often the kernel reconnects, in seconds. Waiting I/O cannot go on sooner. */
const layerReconnectDelay = 2;
/**
 * After how long the kernel's initiator fails requests that it could not send, in seconds: before it reconnects.
 * Otherwise it would send them to whatever namespace the target shows then, before it has checked which one that is.
 */
const layerFastIoFailTmo = 1;

/** Records the connection's parameters where the node service has to make the connection again by itself. */
async function withLayer(
  deps: NodeDeps,
  volumeId: string,
  plain: Intent,
  { connection, deviceLayer }: NodeParameters,
  context: CallContext,
): Promise<Intent> {
  const { nqn, map } = plain;
  // Writes to an encrypted volume do not wait: a mapping has the name of the map.
  if (map === "crypt") return plain;
  if ((deviceLayer ?? deps.settings.deviceLayer ?? "none") === "none") return plain;
  // A volume that is connected is used as it is, with a map or without.
  const isKnown = (await deps.stagingStore.find(volumeId))?.intent.nqn === nqn;
  if (isKnown && (await connectedNqns(deps, volumeId, context)).includes(nqn)) return plain;
  if (!await choosesLayer(deps, volumeId, deviceLayer, context)) return plain;
  const { reconnectDelay = layerReconnectDelay, fastIoFailTmo = layerFastIoFailTmo } = connection;
  return { ...plain, map: "multipath", connection: { ...connection, reconnectDelay, fastIoFailTmo } };
}

/**
 * Throws if this is not the machine that the volume was published to. Two machines may have one node name: a clone, or
 * a new machine beside the one that it replaces. Host NQNs follow the name, so the router cannot distinguish the
 * machines.
 *
 * @throws {VolumeError} precondition when the volume was published to another machine
 */
function assertThisMachine(
  { machine, settings: { nodeId } }: NodeDeps,
  volumeId: string,
  publish: PublishContext,
): void {
  if (publish.machine === undefined || machine.is(publish.machine) !== false) return;
  throw new VolumeError(
    "precondition",
    `Cannot stage the volume because it was published to another machine of this node's name: volume=${volumeId} ` +
      `node=${nodeId} machine=${publish.machine}; delete the pods of this node that use it, so that it is detached and ` +
      "published anew, and switch the other machine off or give it another name",
  );
}

/**
 * Throws if the volume lacks a layer that the controller relies on: a volume that was connected without a layer stays
 * so.
 *
 * @throws {VolumeError} precondition when the volume needs a layer and has none
 */
function assertLayered({ needsLayer }: PublishContext, volumeId: string, { map }: Intent): void {
  if (!needsLayer || map === "multipath") return;
  throw new VolumeError(
    "precondition",
    `Cannot stage the volume because it is staged without its device layer: volume=${volumeId}; delete the pods of this ` +
      "node that use it, so that it is unstaged first",
  );
}

function intentOf(
  request: StageRequest,
  publish: PublishContext,
  connection: ConnectionSettings,
): Intent {
  const { readOnly, flags } = parseMountFlags(request.mountFlags);
  return {
    nqn: publish.nqn,
    epoch: publish.epoch,
    mayFormat: publish.mayFormat,
    addresses: publish.addresses,
    port: publish.port,
    connection,
    ...publish.encrypted ? { map: "crypt" } : {},
    kind: kindName(request.capability),
    readOnly: readOnly || publish.readOnly || isReadOnlyMode(request.capability.mode),
    mountFlags: flags,
    stagingPath: request.stagingPath,
    namespaceBytes: publish.sizeBytes,
  };
}

/**
 * The wanted state, with what this node knows since an earlier stage of the epoch.
 *
 * @throws {VolumeError} precondition when that is damaged, and the context does not forbid a format by itself
 */
async function recall(
  { stagingStore: { known: store } }: NodeDeps,
  volumeId: string,
  wanted: Intent,
): Promise<StagingState> {
  const known = await (wanted.mayFormat ? store.find(volumeId) : store.findUndamaged(volumeId));
  const unknown = newState(volumeId, wanted);
  return known?.epoch === wanted.epoch ? { ...unknown, content: contentFor(wanted, known.content) } : unknown;
}

/**
 * Writes the state file. After a failure it stays while a connection is left that this call has made, because unstaging goes
 * by it.
 */
async function remember(
  { deps, undo, context }: Staging,
  wanted: StagingState,
): Promise<StagingState> {
  const { stagingStore } = deps;
  const wasConnected = (await deps.connector.connected(context)).includes(wanted.intent.nqn);
  undo.add("forget the volume", async (undoing) => {
    const stagingState = await stagingStore.find(wanted.volumeId);
    const connected = await deps.connector.connected(undoing);
    if (stagingState !== undefined && (wasConnected || !connected.includes(stagingState.intent.nqn))) {
      await stagingStore.end(stagingState);
    }
  });
  return await stagingStore.write(wanted);
}

/** Returns the staging path as the kernel writes it for a mount point. */
async function ensureStagingFolder(staging: Staging, stagingState: StagingState): Promise<string> {
  const { deps, undo, context } = staging;
  const { volumeId, intent: { stagingPath: path } } = stagingState;
  const [mountPoint] = await Promise.all([
    mountPointOf(deps, path),
    assertStagingFree(deps.stagingStore, volumeId, path),
  ]);
  const mounted = mountsAt(await deps.mounts.table(), mountPoint);
  if (mounted.length > 0) return mountPoint; // It is a folder. A stat would have to ask the file system that is mounted there.
  const info = await deps.paths.ownInfo(path, context);
  if (info?.kind === "directory") return mountPoint;
  if (info !== undefined) {
    throw new VolumeError(
      "precondition",
      `Cannot stage because the staging path is not a folder: path=${path}`,
    );
  }
  undo.add("remove the staging folder", () => deps.paths.removeEmptyFolder(path));
  await deps.paths.makeFolder(path, 0o750);
  return mountPoint;
}

/**
 * Connects and proves the device; puts a device layer on it. Where checksums are requested, a connection that was there
 * before counts only once the state file names its device. Until then it may be one without checksums, which an earlier
 * call met and could not end, so it is made again.
 *
 * @returns `uniqueId` is the one that an earlier attempt saw, and `renewed` says whether the device has another one now;
 *   `sameDevice` says whether it is the one on which something was begun
 */
async function connect(
  { deps, publish, undo, context }: Staging,
  stagingState: StagingState,
): Promise<ConnectedDevice> {
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

/** A connected device, proven. */
interface ConnectedDevice {
  readonly below: ProvenDevice;
  readonly uniqueId: string | undefined;
  readonly renewed: boolean;
  readonly lacksPath: boolean;
}

/** Opens an encrypted volume, and holds the device through which the volume is used. */
async function holdUsed(
  unlocking: Staging & ConnectedDevice & Omit<Unlocking, "passphrases" | "sameDevice"> & {
    readonly passphrases: Passphrases | undefined;
  },
  stagingState: StagingState,
) {
  const { deps, below, uniqueId, passphrases, undo, context } = unlocking;
  const isSame = (device: ProvenDevice) =>
    device.uniqueId === uniqueId && device.sizeBytes === seenDevice(stagingState)?.sizeBytes;
  const { device: first, stagingState: unlocked } = passphrases === undefined
    ? { device: below, stagingState }
    : await unlock({ ...unlocking, passphrases, sameDevice: isSame(below) }, stagingState);
  const { device, release } = await holdProven(deps, first, undo, context);
  return { device, unlocked, release, sameDevice: isSame(device) };
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
  const uses = stagingState.intent.kind === "block"
    ? [
      ...binds.filter((entry) => !isOwn(entry)),
      ...table.filter((entry) => entry.deviceNumber === device.deviceNumber),
    ]
    : binds;
  const [use] = uses;
  if (use === undefined) return;
  throw new VolumeError(
    "in-use",
    `Cannot stage the volume because its device is ${binds.includes(use) ? "bound" : "mounted"} elsewhere: ` +
      `volume=${stagingState.volumeId} device=${device.path} path=${use.mountPoint}`,
  );
}

/** Records the current device. */
function locate(stagingState: StagingState, device: ProvenDevice, below: ProvenDevice): StagingState {
  const { deviceNumber, uniqueId, sizeBytes } = device;
  const { intent, ...rest } = withUniqueId(stagingState, uniqueId);
  const located = { ...rest, intent: { ...intent, namespaceBytes: below.sizeBytes } };
  return withHere(located, { device: { deviceNumber, uniqueId, sizeBytes } });
}
