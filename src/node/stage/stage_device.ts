import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { DeviceProbe, MountEntry, ProvenDevice } from "../../volume/ports/node_ports.ts";
import type { FilesystemType } from "../../volume/model/capabilities.ts";
import { type StagingState, wantsReadOnlyDevice } from "../../volume/model/staging_state.ts";
import { isOnBlockDevice, isReadOnlyMount, mountsAt, mountsOf, rootAnswers } from "../mount_table.ts";
import { proveAgain } from "../connections/device.ts";
import { deviceFileName, readDeviceFile } from "../connections/teardown.ts";
import type { NodeDeps } from "../deps.ts";
import type { NodeParameters, PublishContext } from "./contexts.ts";
import { settleLog } from "./log_replay.ts";
import { assertSameFilesystem } from "./new_identity.ts";
import type { StagingStore } from "./staging_store.ts";
import type { Undo } from "./undo.ts";
import { decideFormat } from "../../volume/rules/format.ts";

/** Everyone may write to the root of a file system that is new; from then on its owner decides. */
const newRootMode = 0o777;

/** A stage under way: what each of its steps works with. */
export interface Staging {
  readonly deps: NodeDeps;
  readonly stagingStore: StagingStore;
  readonly publish: PublishContext;
  /** Whether the log of a file system may be replayed before it is mounted read-only. */
  readonly mayReplay: boolean;
  readonly parameters: NodeParameters;
  readonly undo: Undo;
  readonly context: CallContext;
}

/** A stage whose device is connected, proven and held. */
interface DeviceStaging extends Staging {
  readonly device: ProvenDevice;
  /** Whether the device is the one that an earlier attempt saw. */
  readonly sameDevice: boolean;
  /** Whether it has another unique id than that attempt saw. */
  readonly renewed: boolean;
  /** The staging path as the kernel writes it. */
  readonly mountPoint: string;
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
  stagingState: StagingState,
  filesystem: FilesystemType | undefined,
): Promise<StagingState> {
  const { deps, device, context } = staging;
  await deps.devices.setReadOnly(device, wantsReadOnlyDevice(stagingState), context);
  if (filesystem !== undefined) return await stageFilesystem(staging, stagingState, filesystem);
  await writeDeviceFile(staging, stagingState);
  return stagingState;
}

/** Names the device of a raw block volume in its staging folder. Nothing on the device is looked at. */
async function writeDeviceFile(
  { deps, undo, context, device, mountPoint }: DeviceStaging,
  stagingState: StagingState,
): Promise<void> {
  const [mounted] = mountsAt(await deps.mounts.table(), mountPoint);
  if (mounted !== undefined) {
    throw new VolumeError(
      "precondition",
      `Cannot stage the block volume because something is mounted at its staging path: path=${stagingState.stagingPath} ` +
        `type=${mounted.filesystem}`,
    );
  }
  const path = `${stagingState.stagingPath}/${deviceFileName}`;
  if (await readDeviceFile(deps, path, context) === device.path) return;
  undo.add("remove the device file", () => deps.paths.removeFile(path));
  await deps.paths.writeFile(path, device.path, 0o600);
}

async function stageFilesystem(
  staging: DeviceStaging,
  stagingState: StagingState,
  filesystem: FilesystemType,
): Promise<StagingState> {
  const { deps, context, device, mountPoint } = staging;
  let current = stagingState;
  if (!await isMountedRight(staging, current)) {
    current = await prepareFilesystem(staging, current, filesystem);
    await mount(staging, current, filesystem);
  }
  if (current.mkfs === "done" && !current.rootOpened) {
    await deps.paths.setMode(current.stagingPath, newRootMode);
    // Written with the end of staging: whoever is killed before that has handed it to nobody, and may do it again.
    current = { ...current, rootOpened: true };
  }
  const isNew = stagingState.mkfs === "none" && current.mkfs === "done"; // It fills the device that it was made on.
  if (!current.readOnly && !isNew) {
    await deps.filesystems.grow(await proveAgain(deps, device, context), filesystem, mountPoint, context);
  }
  return current;
}

/**
 * Whether the file system is mounted as it should be. What an earlier device or a failed file system left there is
 * unmounted if nobody uses it.
 */
async function isMountedRight(
  { deps, context, device, mountPoint }: DeviceStaging,
  stagingState: StagingState,
): Promise<boolean> {
  const table = await deps.mounts.table();
  const entries = mountsAt(table, mountPoint);
  if (entries.length === 0) {
    refuseWhileMounted(mountsOf(table, new Set([device.deviceNumber])), stagingState);
    return false;
  }
  const isOnlyOne = entries.length === 1 && isRight(entries[0]!, stagingState, device);
  if (isOnlyOne && await rootAnswers(deps, stagingState.stagingPath, context)) return true;
  const own = new Set([device.deviceNumber]);
  for (const entry of entries) {
    if (!isOnBlockDevice(entry) || !isOurs(entry, stagingState, device)) {
      throw new VolumeError(
        "precondition",
        `Cannot stage the volume because something else is mounted at its staging path: volume=${stagingState.volumeId} ` +
          `path=${mountPoint} device=${entry.deviceNumber} type=${entry.filesystem}`,
      );
    }
    own.add(entry.deviceNumber);
  }
  deps.events.occurred({ kind: "stale-mount", finder: "stage" });
  refuseWhileMounted(mountsOf(table, own).filter((entry) => entry.mountPoint !== mountPoint), stagingState);
  await deps.mounts.unmount(mountPoint, context);
  return false;
}

function isRight(entry: MountEntry, stagingState: StagingState, device: ProvenDevice): boolean {
  return entry.deviceNumber === device.deviceNumber && entry.filesystem === stagingState.kind &&
    entry.root === "/" && stagingState.replaying === undefined &&
    isReadOnlyMount(entry) === stagingState.readOnly;
}

/** Of this device, or left by the device that the volume was before it came back under another number. */
function isOurs(entry: MountEntry, stagingState: StagingState, device: ProvenDevice): boolean {
  return entry.filesystem === stagingState.kind &&
    (entry.deviceNumber === device.deviceNumber || stagingState.mountedAs === entry.deviceNumber);
}

function refuseWhileMounted(elsewhere: readonly MountEntry[], stagingState: StagingState): void {
  const [entry] = elsewhere;
  if (entry === undefined) return;
  throw new VolumeError(
    "in-use",
    `Cannot stage the volume because it is mounted elsewhere: volume=${stagingState.volumeId} path=${entry.mountPoint}`,
  );
}

async function mount(
  { deps, undo, parameters, context, device, mountPoint }: DeviceStaging,
  stagingState: StagingState,
  filesystem: FilesystemType,
): Promise<void> {
  const proven = await proveAgain(deps, device, context);
  undo.add("unmount", (undoing) => deps.mounts.unmount(mountPoint, undoing));
  const { readOnly, mountFlags } = stagingState;
  const flags = readOnly ? mountFlags : [...mountFlags, ...errorFlags(mountFlags, parameters.mkfsOptions)];
  const options = { readOnly, flags };
  await deps.mounts.mountDevice(proven, mountPoint, filesystem, options, context);
  context.signal.throwIfAborted();
}

/** What the StorageClass had mkfs write about errors, for the mount: whoever can write to the device can change it there. */
function errorFlags(mountFlags: readonly string[], mkfsOptions: readonly string[]): readonly string[] {
  if (mountFlags.some((flag) => flag.startsWith("errors="))) return [];
  const at = mkfsOptions.indexOf("-e");
  return at < 0 ? [] : [`errors=${mkfsOptions[at + 1]}`];
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
  stagingState: StagingState,
  filesystem: FilesystemType,
): Promise<StagingState> {
  const { deps, publish, parameters, context, device, sameDevice } = staging;
  // What is found while it is still being made says nothing about what it will be.
  if (stagingState.mkfs === "started") await refuseWhileBusy(staging);
  // Before anything is read through the kernel's cache, which would not see what another node replays after that.
  const log = stagingState.readOnly
    ? await deps.filesystems.logState(device, filesystem, context)
    : undefined;
  using early = readEarly(staging, stagingState);
  const probe = await probeDevice(staging);
  const { signature } = probe;
  const uuid = signature.state === "found" ? signature.uuid : undefined;
  if (staging.renewed) assertSameFilesystem(stagingState, device, uuid);
  const mayBeUnfinished = stagingState.mkfs === "started" && signature.state === "found" &&
    signature.type === filesystem;
  const decision = decideFormat({
    volumeId: stagingState.volumeId,
    wanted: filesystem,
    mayFormat: publish.mayFormat,
    epoch: publish.epoch,
    claim: publish.claim,
    sameEpoch: stagingState.epoch === publish.epoch,
    readOnly: stagingState.readOnly,
    sizeMatches: device.sizeBytes === publish.sizeBytes,
    probe,
    mkfs: stagingState.mkfs,
    sameDevice,
    everMounted: stagingState.everMounted,
    complete: mayBeUnfinished && await deps.filesystems.isComplete(device, filesystem, context),
  });
  switch (decision.action) {
    case "refuse":
      deps.events.occurred({ kind: "format-refused", reason: decision.refusal });
      throw new VolumeError(decision.kind, decision.reason);
    case "format":
      return await format(staging, stagingState, filesystem, {
        again: false,
        seenFree: await early.seenFree,
      });
    case "reformat-interrupted":
      return await format(staging, stagingState, filesystem, { again: true, seenFree: await early.seenFree });
    case "mount-existing":
      if (parameters.fsck === "preen" && !stagingState.readOnly) await check(staging, filesystem);
      if (log !== undefined) await settleLog(staging, stagingState, filesystem, log);
      return await staging.stagingStore.write(
        toBeMounted({ ...stagingState, ...(mayBeUnfinished ? { mkfs: "done" as const } : {}) }, device, uuid),
      );
  }
}

/**
 * Checks the file system, unless it is mounted in a mount namespace that is not seen from here, such as that of a container
 * which has kept what was unmounted here: the kernel mounts that very one once more, and refuses what is in use otherwise.
 */
async function check(
  { deps, device, context }: DeviceStaging,
  filesystem: FilesystemType,
): Promise<void> {
  try {
    await deps.filesystems.check(await proveAgain(deps, device, context), filesystem, context);
  } catch (error) {
    if (!VolumeError.is(error, "in-use")) throw error;
    // An earlier check may have outlived its call.
    if ((await deps.devices.holder(device, context))?.certain === true) throw error;
  }
  context.signal.throwIfAborted();
}

/** One state for the end of making it and the beginning of mounting it: nothing is decided otherwise in between. */
function toBeMounted(
  { replaying: _replaying, filesystemUuid: _filesystemUuid, ...stagingState }: StagingState,
  device: ProvenDevice,
  uuid: string | undefined,
): StagingState {
  const filesystem = uuid === undefined ? {} : { filesystemUuid: uuid };
  return { ...stagingState, ...filesystem, everMounted: true, mountedAs: device.deviceNumber };
}

async function probeDevice({ deps, device, context }: DeviceStaging): Promise<DeviceProbe> {
  try {
    return await deps.filesystems.probe(device, context);
  } catch (error) {
    if (VolumeError.is(error, "unavailable")) {
      deps.events.occurred({ kind: "format-refused", reason: "unreadable" });
    }
    throw error;
  }
}

async function format(
  staging: DeviceStaging,
  stagingState: StagingState,
  filesystem: FilesystemType,
  { again, seenFree }: { readonly again: boolean; readonly seenFree: boolean },
): Promise<StagingState> {
  const { deps, parameters, context, device } = staging;
  const { filesystems } = deps;
  await refuseWhileBusy(staging, seenFree);
  const started = await staging.stagingStore.write({ ...stagingState, mkfs: "started" });
  if (again) await filesystems.eraseEnds(await proveAgain(deps, device, context), context);
  const options = { label: parameters.fsLabel, extra: parameters.mkfsOptions, lazy: !again };
  // What comes before can take long, and the tools go by the path.
  await filesystems.format(await proveAgain(deps, device, context), filesystem, options, context);
  // Even if the call was cancelled meanwhile: the file system is there.
  const done = await staging.stagingStore.write(toBeMounted({ ...started, mkfs: "done" }, device, undefined));
  context.signal.throwIfAborted();
  if (stagingState.layer === undefined) return done;
  // By it a device is known that takes the place of this one below the map.
  const { signature } = await filesystems.probe(await proveAgain(deps, device, context), context);
  if (signature.state !== "found" || signature.uuid === undefined) return done;
  return await staging.stagingStore.write({ ...done, filesystemUuid: signature.uuid });
}

/** What is read of a device beside a probe; its disposal ends the reading of what nobody wants to know any more. */
interface EarlyRead extends Disposable {
  /** Whether nobody had the device open. */
  readonly seenFree: Promise<boolean>;
}

/**
 * Whether nobody has a device open that is likely to be formatted: looked at while the tool runs that looks for signatures.
 * Where that one is met itself, or anybody else, or it cannot be told, one looks again later.
 */
function readEarly(staging: DeviceStaging, stagingState: StagingState): EarlyRead {
  const over = new AbortController();
  const signal = AbortSignal.any([staging.context.signal, over.signal]);
  const seenFree = isSeenFree(staging, stagingState, signal);
  // Where a file system is found, nobody waits for it.
  seenFree.catch(() => {});
  return { seenFree, [Symbol.dispose]: () => over.abort(new Error("nothing is to be formatted")) };
}

async function isSeenFree(
  { deps, publish, context, device }: DeviceStaging,
  stagingState: StagingState,
  signal: AbortSignal,
): Promise<boolean> {
  if (!publish.mayFormat || stagingState.readOnly || stagingState.mkfs !== "none") return false;
  try {
    return await deps.devices.holder(device, { ...context, signal }) === undefined;
  } catch (error) {
    if (signal.aborted || VolumeError.is(error)) return false;
    throw error;
  }
}

/**
 * A mkfs of an earlier process of this driver may have outlived it: it has the device open, and claimed. Having it open was
 * seen already, if it was: whatever outlived that process had begun long before this call.
 */
async function refuseWhileBusy(
  { deps, context, device }: DeviceStaging,
  seenFree = false,
): Promise<void> {
  const holder = seenFree ? undefined : await deps.devices.holder(device, context);
  const unclaimed = await deps.devices.isUnclaimed(device, context);
  context.signal.throwIfAborted();
  if (unclaimed && holder?.certain !== true) return;
  deps.events.occurred({ kind: "format-refused", reason: "in-use" });
  throw new VolumeError(
    "busy",
    `Cannot format the device because it is in use, perhaps by an earlier attempt: device=${device.path} ` +
      `holder=${holder?.description ?? "unknown"}`,
  );
}
