import { type Capability, isReadOnlyMode, kindName } from "../../volume/model/capabilities.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { MountEntry, ProvenDevice } from "../../volume/ports/node_ports.ts";
import { beginAnew, stagingDifference, type Stash } from "../../volume/model/staging_state.ts";
import { parsePublishContext, parseVolumeContext, type PublishContext } from "./contexts.ts";
import { bindsOf, isAnyMounted, isDeleted, mountsAt, mountsOf, stagingPoint } from "../mount_table.ts";
import { awaitDevice, holdProven, prove } from "../connections/device.ts";
import type { Fencing } from "../fencing/fencing.ts";
import { parseMountFlags } from "../publish/mount_flags.ts";
import { assertStagingFree } from "../publish/target_paths.ts";
import { stageDevice, type Staging } from "./stage_device.ts";
import { Stashes } from "./staging_store.ts";
import { connectedNqns, disconnectUnused, tearDown } from "../connections/teardown.ts";
import { withUndo } from "./undo.ts";
import type { NodeWorld } from "../deps.ts";

/** What NodeStageVolume asks for. */
export interface StageRequest {
  readonly volumeId: string;
  readonly stagingPath: string;
  readonly capability: Capability;
  readonly mountFlags: readonly string[];
  readonly publishContext: Readonly<Record<string, string>>;
  readonly volumeContext: Readonly<Record<string, string>>;
}

/**
 * Brings a volume onto this node: state file, connect, find, prove, and then the file system or the device file.
 * Whatever is done already is verified and not done again; a failure undoes what this call did.
 *
 * @throws {VolumeError} exists-incompatible when it is staged in another way; in-use when an older epoch of it is still
 * published; precondition when its device may not be used as it is
 */
export async function stageVolume(
  world: NodeWorld,
  fencing: Fencing,
  request: StageRequest,
  context: CallContext,
): Promise<void> {
  const { capability, volumeId, volumeContext } = request;
  const publish = parsePublishContext(request.publishContext, volumeId, volumeContext);
  const filesystem = capability.access === "mount" ? capability.filesystem : undefined;
  const parameters = parseVolumeContext(volumeContext, filesystem);
  const wanted = newStash(request, publish);
  const stashes = new Stashes(world);
  const known = await dropOlder(world, fencing, stashes, publish, wanted, context);
  await withUndo(world.clock, context, async (undo) => {
    const staging: Staging = { world, stashes, publish, parameters, undo, context };
    const stash = known ?? await remember(staging, wanted);
    const point = await ensureStagingFolder(staging, stash);
    const { device, sameDevice, letGo } = await connect(staging, stash);
    await refuseWhileBound(staging, stash, device);
    // Written with the next step that goes by it: until then the NQN leads to whatever is to be taken down.
    const located = locate(stash, device);
    const ready = await stageDevice({ ...staging, device, sameDevice, point }, located, filesystem);
    context.signal.throwIfAborted();
    await stashes.write({ ...ready, staged: true });
    await letGo();
  });
}

function newStash(request: StageRequest, publish: PublishContext): Stash {
  const { readOnly, flags } = parseMountFlags(request.mountFlags);
  return {
    volumeId: request.volumeId,
    nqn: publish.nqn,
    epoch: publish.epoch,
    addresses: publish.addresses,
    port: publish.port,
    kind: kindName(request.capability),
    readOnly: readOnly || publish.readOnly || isReadOnlyMode(request.capability.mode),
    mountFlags: flags,
    stagingPath: request.stagingPath,
    sizeBytes: publish.sizeBytes,
    device: undefined,
    mkfs: "none",
    everMounted: false,
    mountedAs: undefined,
    rootOpened: false,
    staged: false,
    published: [],
  };
}

/**
 * The state of this same epoch, if there is one. What is left of any other epoch is taken down first: its device is
 * fenced, and what was bound from it is not this volume any more.
 */
async function dropOlder(
  world: NodeWorld,
  fencing: Fencing,
  stashes: Stashes,
  publish: PublishContext,
  wanted: Stash,
  context: CallContext,
): Promise<Stash | undefined> {
  const stash = await stashes.find(wanted.volumeId);
  const isCurrent = stash?.epoch === publish.epoch && stash.nqn === publish.nqn;
  const connected = await connectedNqns(world, wanted.volumeId, context);
  const older = new Set(connected.filter((nqn) => nqn !== publish.nqn));
  if (stash !== undefined && !isCurrent) older.add(stash.nqn);
  if (older.size > 0) {
    const left = isCurrent ? undefined : stash;
    const stagingPaths = left === undefined ? [] : [left.stagingPath];
    const volume = { volumeId: wanted.volumeId, nqns: [...older], stagingPaths, stash: left };
    await fencing.release(volume, context, publish.nqn);
    await tearDown(world, volume, context);
  }
  if (stash === undefined || !isCurrent) return undefined;
  const difference = stagingDifference(stash, wanted);
  if (difference === undefined) return { ...stash, addresses: publish.addresses, port: publish.port };
  // Only the memory of an unfinished file system is here.
  const isHere = stash.staged || connected.includes(stash.nqn) ||
    await isAnyMounted(world, [stash.stagingPath]);
  if (!isHere) return beginAnew(stash, wanted);
  throw new VolumeError(
    "exists-incompatible",
    `Cannot stage the volume as it is staged in another way: volume=${wanted.volumeId} ${difference}`,
  );
}

/**
 * Kept after a failure while the volume is connected, because unstaging goes by it, and once mkfs was started, because
 * nobody else knows that what is on the device is an unfinished one.
 */
async function remember({ world, stashes, undo }: Staging, wanted: Stash): Promise<Stash> {
  undo.add("forget the volume", async (undoing) => {
    const stash = await stashes.find(wanted.volumeId);
    const connected = await world.connector.connected(undoing);
    if (stash?.mkfs === "none" && !connected.includes(stash.nqn)) await stashes.remove(wanted.volumeId);
  });
  return await stashes.write(wanted);
}

/** Answers what the kernel calls it when something is mounted there. */
async function ensureStagingFolder(staging: Staging, stash: Stash): Promise<string> {
  const { world, stashes, undo, context } = staging;
  const { volumeId, stagingPath: path } = stash;
  await assertStagingFree(stashes, volumeId, path);
  const point = await stagingPoint(world, path);
  const mounted = mountsAt(await world.mounts.table(), point);
  if (mounted.length > 0) return point; // It is a folder, and looking at it would ask what is mounted there.
  const info = await world.paths.ownInfo(path, context);
  if (info?.kind === "directory") return point;
  if (info !== undefined) {
    throw new VolumeError("precondition", `Cannot stage as the staging path is not a folder: path=${path}`);
  }
  undo.add("remove the staging folder", () => world.paths.removeEmptyFolder(path));
  await world.paths.makeFolder(path, 0o750);
  return point;
}

/** Connects, proves and holds; `sameDevice` says whether it is the device that an earlier attempt saw. */
async function connect(
  { world, publish, parameters, undo, context }: Staging,
  stash: Stash,
): Promise<{ device: ProvenDevice; letGo: () => Promise<void>; sameDevice: boolean }> {
  const { connector } = world;
  const { nqn, addresses, port } = publish;
  const wasConnected = (await connector.connected(context)).includes(nqn);
  if (!wasConnected) undo.add("disconnect", (undoing) => disconnectUnused(world, nqn, undoing));
  try {
    const target = { nqn, addresses, port, sizeBytes: publish.sizeBytes, ...parameters.connection };
    await connector.connect(target, context);
    if (!wasConnected) world.events.happened({ kind: "connected", outcome: "ok" });
  } catch (error) {
    world.events.happened({ kind: "connected", outcome: "failed" });
    throw error;
  }
  const sizeBytes = stash.sizeBytes > publish.sizeBytes ? stash.sizeBytes : publish.sizeBytes;
  const found = await awaitDevice(world, nqn, 0n, context);
  const uniqueId = stash.device?.uniqueId;
  const first = await prove(world, found, { nqn, sizeBytes, uniqueId }, context);
  const { device, letGo } = await holdProven(world, first, undo, context);
  const sameDevice = device.uniqueId === uniqueId && device.sizeBytes === stash.device?.sizeBytes;
  return { device, letGo, sameDevice };
}

/**
 * A bind outlives its device and then shows the next one of the same number: whoever has it would write to this volume.
 * So would whoever has mounted what is to be handed out as a raw device.
 */
async function refuseWhileBound(
  { world, context }: Staging,
  stash: Stash,
  device: ProvenDevice,
): Promise<void> {
  const own = await Promise.all(stash.published.map((target) => world.paths.mountPoint(target.targetPath)));
  // Since it was staged as this device, the kubelet has bound its node once more for each pod, and tells nobody where.
  const isSame = stash.staged && stash.device?.deviceNumber === device.deviceNumber;
  const isOwn = (entry: MountEntry) => own.includes(entry.mountPoint) || (isSame && !isDeleted(entry));
  const table = await world.mounts.table();
  const binds = await bindsOf(world, table, device, context);
  const uses = stash.kind === "block"
    ? [...binds.filter((entry) => !isOwn(entry)), ...mountsOf(table, new Set([device.deviceNumber]))]
    : binds;
  const [use] = uses;
  if (use === undefined) return;
  throw new VolumeError(
    "in-use",
    `Cannot stage the volume as its device is ${binds.includes(use) ? "bound" : "mounted"} elsewhere: ` +
      `volume=${stash.volumeId} device=${device.path} path=${use.mountPoint}`,
  );
}

/** Notes what the device is now. What an unfinished mkfs was started on stays on record, all but its number. */
function locate(stash: Stash, device: ProvenDevice): Stash {
  const { deviceNumber, uniqueId, sizeBytes } = device;
  if (stash.mkfs === "started" && stash.device !== undefined) {
    return { ...stash, device: { ...stash.device, deviceNumber } };
  }
  return { ...stash, device: { deviceNumber, uniqueId, sizeBytes }, sizeBytes };
}
