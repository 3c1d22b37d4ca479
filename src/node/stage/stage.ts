import { type Capability, isReadOnlyMode, kindName } from "../../volume/model/capabilities.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext, MountEntry, ProvenDevice, Target } from "../../volume/ports/ports.ts";
import { beginAnew, stagingDifference, type Stash } from "../../volume/model/staging_state.ts";
import { parsePublishContext, parseVolumeContext, type PublishContext } from "./contexts.ts";
import { bindsOf } from "../publish/binds.ts";
import { awaitDevice, holdProven, prove } from "../connections/device.ts";
import type { Fencing } from "../fencing/fencing.ts";
import { parseMountFlags } from "../publish/mount_flags.ts";
import { isDeleted, mountsAt, mountsOf } from "../mount_table.ts";
import { assertStagingFree } from "../publish/target_paths.ts";
import { wantsReadOnlyDevice } from "./read_only.ts";
import { stageBlock } from "./stage_block.ts";
import { stageFilesystem } from "./stage_filesystem.ts";
import type { Staging } from "./staging.ts";
import { stagingPoint } from "./mount_point.ts";
import { Stashes } from "./staging_store.ts";
import { connectedNqns, disconnectUnused, recordedNumbers, tearDown } from "../connections/teardown.ts";
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
  const publish = parsePublishContext(request.publishContext, request.volumeId, request.volumeContext);
  const filesystem = request.capability.access === "mount" ? request.capability.filesystem : undefined;
  const parameters = parseVolumeContext(request.volumeContext, filesystem);
  const wanted = newStash(request, publish);
  const stashes = new Stashes(world);
  const known = await dropOlder(world, fencing, stashes, publish, wanted, context);
  await withUndo(world.clock, context, async (undo) => {
    const staging: Staging = { world, stashes, publish, parameters, undo, context };
    const stash = known ?? await remember(staging, wanted);
    await assertStagingFree(stashes, stash.volumeId, stash.stagingPath);
    const point = await ensureStagingFolder(staging, stash.stagingPath);
    const { device, letGo, sameDevice } = await connect(staging, stash);
    await refuseWhileBound(staging, stash, device);
    // Written with the next step that goes by it: until then the NQN leads to whatever is to be taken down.
    const located = locate(stash, device);
    await world.devices.setReadOnly(device, wantsReadOnlyDevice(located), context);
    const ready = filesystem === undefined
      ? await stageBlock(staging, located, device, point)
      : await stageFilesystem(staging, located, device, { filesystem, sameDevice, point });
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
    const volume = {
      volumeId: wanted.volumeId,
      nqns: [...older],
      stagingPaths: left === undefined ? [] : [left.stagingPath],
    };
    await fencing.release({ ...volume, stash: left, publishedNqn: publish.nqn }, context);
    await tearDown(world, {
      ...volume,
      deviceNumbers: left && recordedNumbers(left),
      publishedPaths: left?.published.map((target) => target.targetPath) ?? [],
      mayHoldDeviceFile: left?.kind === "block",
      begun: async () => left && await stashes.write({ ...left, staged: false }),
    }, context);
  }
  if (stash === undefined || !isCurrent) return undefined;
  const difference = stagingDifference(stash, wanted);
  if (difference === undefined) return { ...stash, addresses: publish.addresses, port: publish.port };
  // Only the memory of an unfinished file system is here.
  const isHere = stash.staged || connected.includes(stash.nqn) || await isMounted(world, stash);
  if (!isHere) return beginAnew(stash, wanted);
  throw new VolumeError(
    "exists-incompatible",
    `Cannot stage the volume as it is staged in another way: volume=${wanted.volumeId} ${difference}`,
  );
}

async function isMounted(world: NodeWorld, stash: Stash): Promise<boolean> {
  const point = await world.paths.mountPoint(stash.stagingPath);
  return mountsAt(await world.mounts.table(), point).length > 0;
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
async function ensureStagingFolder(staging: Staging, path: string): Promise<string> {
  const { world, undo, context } = staging;
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
  const wasConnected = (await connector.connected(context)).includes(publish.nqn);
  if (!wasConnected) undo.add("disconnect", (undoing) => disconnectUnused(world, publish.nqn, undoing));
  const target: Target = {
    nqn: publish.nqn,
    addresses: publish.addresses,
    port: publish.port,
    sizeBytes: publish.sizeBytes,
    ...parameters.connection,
  };
  try {
    await connector.connect(target, context);
    if (!wasConnected) world.events.happened({ kind: "connected", outcome: "ok" });
  } catch (error) {
    world.events.happened({ kind: "connected", outcome: "failed" });
    throw error;
  }
  const sizeBytes = stash.sizeBytes > publish.sizeBytes ? stash.sizeBytes : publish.sizeBytes;
  const found = await awaitDevice(world, publish.nqn, 0n, context);
  const uniqueId = stash.device?.uniqueId;
  const first = await prove(world, found, { nqn: publish.nqn, sizeBytes, uniqueId }, context);
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
