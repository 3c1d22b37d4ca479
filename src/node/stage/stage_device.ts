import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { DeviceProbe, MountEntry, ProvenDevice } from "../../volume/ports/node_ports.ts";
import type { FilesystemType } from "../../volume/model/capabilities.ts";
import { type Stash, wantsReadOnlyDevice } from "../../volume/model/staging_state.ts";
import { isOnBlockDevice, isReadOnlyMount, mountsAt, mountsOf, rootAnswers } from "../mount_table.ts";
import { proveAgain } from "../connections/device.ts";
import { deviceFileName, readDeviceFile } from "../connections/teardown.ts";
import type { NodeWorld } from "../deps.ts";
import type { NodeParameters, PublishContext } from "./contexts.ts";
import type { Stashes } from "./staging_store.ts";
import type { Undo } from "./undo.ts";
import { decideFormat } from "../../volume/rules/format.ts";

/** Everyone may write to the root of a file system that is new; from then on its owner decides. */
const newRootMode = 0o777;

/** A stage under way: what each of its steps works with. */
export interface Staging {
  readonly world: NodeWorld;
  readonly stashes: Stashes;
  readonly publish: PublishContext;
  readonly parameters: NodeParameters;
  readonly undo: Undo;
  readonly context: CallContext;
}

/** A stage whose device is connected, proven and held. */
interface DeviceStaging extends Staging {
  readonly device: ProvenDevice;
  /** Whether the device is the one that an earlier attempt saw. */
  readonly sameDevice: boolean;
  /** The staging path as the kernel writes it. */
  readonly point: string;
}

/**
 * Makes a proven device usable at the staging path: a file system is made where there never was one, checked, mounted
 * and grown; without a file system, the staging folder gets a file that names the device. The caller writes what the
 * answer says beyond what was written before the mount.
 *
 * @throws {VolumeError} precondition, in-use or identity-mismatch when what is there is not what should be
 */
export async function stageDevice(
  staging: DeviceStaging,
  stash: Stash,
  filesystem: FilesystemType | undefined,
): Promise<Stash> {
  const { world, device, context } = staging;
  await world.devices.setReadOnly(device, wantsReadOnlyDevice(stash), context);
  if (filesystem !== undefined) return await stageFilesystem(staging, stash, filesystem);
  await writeDeviceFile(staging, stash);
  return stash;
}

/** Names the device of a raw block volume in its staging folder. Nothing on the device is looked at. */
async function writeDeviceFile(
  { world, undo, context, device, point }: DeviceStaging,
  stash: Stash,
): Promise<void> {
  const [mounted] = mountsAt(await world.mounts.table(), point);
  if (mounted !== undefined) {
    throw new VolumeError(
      "precondition",
      `Cannot stage the block volume as something is mounted at its staging path: path=${stash.stagingPath} ` +
        `type=${mounted.filesystem}`,
    );
  }
  const path = `${stash.stagingPath}/${deviceFileName}`;
  if (await readDeviceFile(world, path, context) === device.path) return;
  undo.add("remove the device file", () => world.paths.removeFile(path));
  await world.paths.writeFile(path, device.path, 0o600);
}

async function stageFilesystem(
  staging: DeviceStaging,
  stash: Stash,
  filesystem: FilesystemType,
): Promise<Stash> {
  const { world, context, device, point } = staging;
  let current = stash;
  if (!await isMountedRight(staging, current)) {
    current = await prepareFilesystem(staging, current, filesystem);
    await mount(staging, current, filesystem);
  }
  if (current.mkfs === "done" && !current.rootOpened) {
    await world.paths.setMode(current.stagingPath, newRootMode);
    // Written with the end of staging: whoever is killed before that has handed it to nobody, and may do it again.
    current = { ...current, rootOpened: true };
  }
  const isNew = stash.mkfs === "none" && current.mkfs === "done"; // It fills the device that it was made on.
  if (!current.readOnly && !isNew) {
    await world.filesystems.grow(await proveAgain(world, device, context), filesystem, point, context);
  }
  return current;
}

/**
 * Whether the file system is mounted as it should be. What an earlier device or a failed file system left there is
 * unmounted if nobody uses it.
 */
async function isMountedRight(
  { world, context, device, point }: DeviceStaging,
  stash: Stash,
): Promise<boolean> {
  const table = await world.mounts.table();
  const entries = mountsAt(table, point);
  if (entries.length === 0) {
    refuseWhileMounted(mountsOf(table, new Set([device.deviceNumber])), stash);
    return false;
  }
  const isOnlyOne = entries.length === 1 && isRight(entries[0]!, stash, device);
  if (isOnlyOne && await rootAnswers(world, stash.stagingPath, context)) return true;
  const own = new Set([device.deviceNumber]);
  for (const entry of entries) {
    if (!isOnBlockDevice(entry) || !isOurs(entry, stash, device)) {
      throw new VolumeError(
        "precondition",
        `Cannot stage the volume as something else is mounted at its staging path: volume=${stash.volumeId} ` +
          `path=${point} device=${entry.deviceNumber} type=${entry.filesystem}`,
      );
    }
    own.add(entry.deviceNumber);
  }
  world.events.happened({ kind: "stale-mount", finder: "stage" });
  refuseWhileMounted(mountsOf(table, own).filter((entry) => entry.mountPoint !== point), stash);
  await world.mounts.unmount(point, context);
  return false;
}

function isRight(entry: MountEntry, stash: Stash, device: ProvenDevice): boolean {
  return entry.deviceNumber === device.deviceNumber && entry.filesystem === stash.kind &&
    entry.root === "/" &&
    isReadOnlyMount(entry) === stash.readOnly;
}

/** Of this device, or left by the device that the volume was before it came back under another number. */
function isOurs(entry: MountEntry, stash: Stash, device: ProvenDevice): boolean {
  return entry.filesystem === stash.kind &&
    (entry.deviceNumber === device.deviceNumber || stash.mountedAs === entry.deviceNumber);
}

function refuseWhileMounted(elsewhere: readonly MountEntry[], stash: Stash): void {
  const [entry] = elsewhere;
  if (entry === undefined) return;
  throw new VolumeError(
    "in-use",
    `Cannot stage the volume as it is mounted elsewhere: volume=${stash.volumeId} path=${entry.mountPoint}`,
  );
}

async function mount(
  { world, undo, context, device, point }: DeviceStaging,
  stash: Stash,
  filesystem: FilesystemType,
): Promise<void> {
  const proven = await proveAgain(world, device, context);
  undo.add("unmount", (undoing) => world.mounts.unmount(point, undoing));
  const options = { readOnly: stash.readOnly, flags: stash.mountFlags };
  await world.mounts.mountDevice(proven, point, filesystem, options, context);
  context.signal.throwIfAborted();
}

/**
 * Makes sure that there is a whole file system on the device, made now if that is safe, or checked; and writes down that
 * it is going to be mounted.
 *
 * @throws {VolumeError} precondition when the device is neither blank nor holds it, unavailable when that cannot be
 * told, busy when an earlier mkfs may still run
 */
async function prepareFilesystem(
  staging: DeviceStaging,
  stash: Stash,
  filesystem: FilesystemType,
): Promise<Stash> {
  const { world, publish, parameters, context, device, sameDevice } = staging;
  // What is found while it is still being made says nothing about what it will be.
  if (stash.mkfs === "started") await refuseWhileBusy(staging);
  const early = lookEarly(staging, stash);
  const probe = await probeDevice(staging);
  const seenFree = await early;
  const mayBeUnfinished = stash.mkfs === "started" && probe.signature.state === "found" &&
    probe.signature.type === filesystem;
  const decision = decideFormat({
    volumeId: stash.volumeId,
    wanted: filesystem,
    mayFormat: publish.mayFormat,
    sameEpoch: stash.epoch === publish.epoch,
    readOnly: stash.readOnly,
    sizeMatches: device.sizeBytes === publish.sizeBytes,
    probe,
    mkfs: stash.mkfs,
    sameDevice,
    everMounted: stash.everMounted,
    complete: mayBeUnfinished && await world.filesystems.isComplete(device, filesystem, context),
  });
  switch (decision.action) {
    case "refuse":
      world.events.happened({ kind: "format-refused", reason: decision.refusal });
      throw new VolumeError(decision.kind, decision.reason);
    case "format":
      return await format(staging, stash, filesystem, { again: false, seenFree });
    case "reformat-interrupted":
      return await format(staging, stash, filesystem, { again: true, seenFree });
    case "mount-existing":
      if (parameters.fsck === "preen" && !stash.readOnly) {
        await world.filesystems.check(await proveAgain(world, device, context), filesystem, context);
        context.signal.throwIfAborted();
      }
      return await staging.stashes.write(
        toBeMounted(mayBeUnfinished ? { ...stash, mkfs: "done" } : stash, device),
      );
  }
}

/** One state for the end of making it and the beginning of mounting it: nothing is decided otherwise in between. */
function toBeMounted(stash: Stash, device: ProvenDevice): Stash {
  return { ...stash, everMounted: true, mountedAs: device.deviceNumber };
}

async function probeDevice({ world, device, context }: DeviceStaging): Promise<DeviceProbe> {
  try {
    return await world.filesystems.probe(device, context);
  } catch (error) {
    if (VolumeError.is(error, "unavailable")) {
      world.events.happened({ kind: "format-refused", reason: "unreadable" });
    }
    throw error;
  }
}

async function format(
  staging: DeviceStaging,
  stash: Stash,
  filesystem: FilesystemType,
  { again, seenFree }: { readonly again: boolean; readonly seenFree: boolean },
): Promise<Stash> {
  const { world, parameters, context, device } = staging;
  const { filesystems } = world;
  await refuseWhileBusy(staging, seenFree);
  const started = await staging.stashes.write({ ...stash, mkfs: "started" });
  if (again) await filesystems.eraseEnds(await proveAgain(world, device, context), context);
  const options = { label: parameters.fsLabel, extra: parameters.mkfsOptions, lazy: !again };
  // What comes before can take long, and the tools go by the path.
  await filesystems.format(await proveAgain(world, device, context), filesystem, options, context);
  // Even if the call was cancelled meanwhile: the file system is there.
  const done = await staging.stashes.write(toBeMounted({ ...started, mkfs: "done" }, device));
  context.signal.throwIfAborted();
  return done;
}

/**
 * Whether nobody has a device open that is likely to be formatted: looked at while the tool runs that looks for signatures.
 * Where that one is met itself, or anybody else, or it cannot be told, one looks again later.
 */
async function lookEarly(
  { world, publish, context, device }: DeviceStaging,
  stash: Stash,
): Promise<boolean> {
  if (!publish.mayFormat || stash.readOnly || stash.mkfs !== "none") return false;
  try {
    return await world.devices.holder(device, context) === undefined;
  } catch (error) {
    if (context.signal.aborted || VolumeError.is(error)) return false;
    throw error;
  }
}

/**
 * A mkfs of an earlier process of this driver may have outlived it: it has the device open, and claimed. Having it open was
 * seen already, if it was: whatever outlived that process had begun long before this call.
 */
async function refuseWhileBusy(
  { world, context, device }: DeviceStaging,
  seenFree = false,
): Promise<void> {
  const holder = seenFree ? undefined : await world.devices.holder(device, context);
  const unclaimed = await world.devices.isUnclaimed(device, context);
  context.signal.throwIfAborted();
  if (unclaimed && holder?.certain !== true) return;
  world.events.happened({ kind: "format-refused", reason: "in-use" });
  throw new VolumeError(
    "busy",
    `Cannot format the device as it is in use, perhaps by an earlier attempt: device=${device.path} ` +
      `holder=${holder?.description ?? "unknown"}`,
  );
}
