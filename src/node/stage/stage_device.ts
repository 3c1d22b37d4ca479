import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { DeviceProbe, MountEntry, ProvenDevice } from "../../volume/ports/node_ports.ts";
import type { FilesystemType } from "../../volume/model/capabilities.ts";
import { type DeviceUser, isCertain } from "../../volume/model/host/device_user.ts";
import { usableBytes } from "../../volume/model/encryption.ts";
import { type StagingState, withContent } from "../../volume/model/staging/state.ts";
import { wantsReadOnlyDevice } from "../../volume/model/staging/intent.ts";
import { isOnBlockDevice, isReadOnlyMount, mountsAt, mountUser, rootAnswers } from "../mount_table.ts";
import { proveAgain } from "../connections/device.ts";
import { usersOf } from "../../volume/rules/host/device_users.ts";
import { thawForPods, unmountLast } from "../connections/last_unmount.ts";
import { refuseUsers } from "../connections/observe.ts";
import { endLivingFilesystem } from "../connections/living_filesystem.ts";
import { deviceFileName, readDeviceFile } from "../connections/teardown.ts";
import type { NodeDeps } from "../deps.ts";
import { refuseWhileBusy } from "./busy.ts";
import { settleLog } from "./log_replay.ts";
import { probeDevice } from "./probe.ts";
import { assertSameFilesystem } from "./new_identity.ts";
import type { Undo } from "./undo.ts";
import type { StageWish } from "./wish.ts";
import { decideFormat, judgedSignature } from "../../volume/rules/format.ts";

/** Everyone may write to the root of a new file system; after that its owner decides. */
const newRootMode = 0o777;

/** A stage under way. */
export interface Staging extends StageWish {
  readonly deps: NodeDeps;
  readonly undo: Undo;
  readonly context: CallContext;
}

/** The device in use of a stage, proven and held. */
export interface RaisedDevice {
  readonly device: ProvenDevice;
  /** Whether it is the device that an earlier attempt saw. */
  readonly sameDevice: boolean;
  /** Whether its unique id differs from the one that the earlier attempt saw. */
  readonly renewed: boolean;
}

interface DeviceStaging extends Staging, RaisedDevice {
  /** The staging path as the kernel writes it. */
  readonly mountPoint: string;
}

/**
 * Makes a proven device usable at the staging path. It makes a file system where there never was one, then checks,
 * mounts and grows it. For a raw block volume it writes a file that names the device into the staging folder. The
 * caller writes the returned state.
 *
 * @throws {VolumeError} precondition, in-use or identity-mismatch when what is there is not what should be
 */
export async function stageDevice(
  staging: DeviceStaging,
  stagingState: StagingState,
): Promise<StagingState> {
  const { filesystem } = staging;
  if (filesystem !== undefined) return await stageFilesystem(staging, stagingState, filesystem);
  if (!stagingState.here.staged) await refuseLivingFilesystem(staging, stagingState);
  await setAccess(staging, stagingState);
  await writeDeviceFile(staging, stagingState);
  return stagingState;
}

/**
 * Throws while a file system of an earlier use lives on the raw device: it would write to what the pod writes to. Once the
 * volume is staged, a pod itself may have mounted what it has made on it.
 *
 * @throws {VolumeError} in-use
 */
async function refuseLivingFilesystem(
  { deps, device, context }: DeviceStaging,
  { volumeId }: StagingState,
): Promise<void> {
  if (!await deps.devices.hasFilesystem(device)) return;
  refuseUsers("stage", volumeId, (await usersOf(deps, device, "everything", context)).filter(isCertain));
}

/** Only once nobody else has it mounted: a person may have attached it read-only, to look at it. */
async function setAccess(
  { deps, device, context }: DeviceStaging,
  stagingState: StagingState,
): Promise<void> {
  await deps.devices.setReadOnly(
    device,
    wantsReadOnlyDevice(stagingState),
    context,
  );
}

/** Writes the file that names the device of a raw block volume. It reads nothing of the device. */
async function writeDeviceFile(
  { deps, undo, context, device, mountPoint }: DeviceStaging,
  stagingState: StagingState,
): Promise<void> {
  const [mounted] = mountsAt(await deps.mounts.table(), mountPoint);
  if (mounted !== undefined) {
    throw new VolumeError(
      "precondition",
      `Cannot stage the block volume because something is mounted at its staging path: path=${stagingState.intent.stagingPath} ` +
        `type=${mounted.filesystem}`,
    );
  }
  const path = `${stagingState.intent.stagingPath}/${deviceFileName}`;
  if (await readDeviceFile(deps, path, context) === device.path) return;
  undo.add("remove the device file", () => deps.paths.removeFile(path));
  await deps.paths.writeFile(path, device.path, 0o600);
}

async function stageFilesystem(
  staging: DeviceStaging,
  stagingState: StagingState,
  filesystem: FilesystemType,
): Promise<StagingState> {
  const { deps } = staging;
  let current = stagingState;
  const isMounted = await isMountedRight(staging, current);
  // One that a backup of a pod may have frozen is thawed by the first publish.
  if (isMounted && !current.here.staged) await thawForPods(deps, staging.mountPoint, staging.context);
  await setAccess(staging, current);
  if (!isMounted) {
    await endLeftFilesystem(staging, current);
    current = await prepareFilesystem(staging, current, filesystem);
    await mount(staging, current, filesystem);
  }
  if (current.content.filesystem === "done" && !current.content.rootOpened) {
    await deps.paths.setMode(current.intent.stagingPath, newRootMode);
    // This is written at the end of staging. A driver that is killed before has handed the volume to no pod, and may
    // repeat the step.
    current = withContent(current, { rootOpened: true });
  }
  const isNew = stagingState.content.filesystem === "none" && current.content.filesystem === "done"; // A new file system fills its device already.
  return current.intent.readOnly || isNew ? current : await grow(staging, current, filesystem);
}

/**
 * Grows the file system to its device. One that cannot be grown is as healthy as it was, and its pod must not lose it: it
 * stays mounted at its size, the state says why, and each stage tries again.
 */
async function grow(
  { deps, context, device, mountPoint }: DeviceStaging,
  stagingState: StagingState,
  filesystem: FilesystemType,
): Promise<StagingState> {
  const proven = await proveAgain(deps, device, context);
  const { notGrown: _before, ...here } = stagingState.here;
  try {
    await deps.filesystems.grow(proven, filesystem, mountPoint, context);
    return { ...stagingState, here };
  } catch (error) {
    context.signal.throwIfAborted();
    if (!VolumeError.is(error, "precondition") && !VolumeError.is(error, "unavailable")) throw error;
    const { volumeId } = stagingState;
    deps.notes?.warn("cannot grow a file system, which stays at its size", {
      volumeId,
      reason: error.message,
    });
    return { ...stagingState, here: { ...here, notGrown: error.message } };
  }
}

/**
 * Whether the file system is mounted as it should be. It unmounts what an earlier device or a failed file system left
 * there, if that is unused.
 */
async function isMountedRight(
  { deps, context, device, mountPoint }: DeviceStaging,
  stagingState: StagingState,
): Promise<boolean> {
  const table = await deps.mounts.table();
  const entries = mountsAt(table, mountPoint);
  if (entries.length === 0) {
    const mounts = table.filter((entry) => entry.deviceNumber === device.deviceNumber);
    refuseUsers("stage", stagingState.volumeId, mounts.map(mountUser));
    return false;
  }
  const isOnlyOne = entries.length === 1 && isRight(entries[0]!, stagingState, device);
  if (isOnlyOne && await rootAnswers(deps, stagingState.intent.stagingPath, context)) return true;
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
  const elsewhere = table.filter((entry) => own.has(entry.deviceNumber) && entry.mountPoint !== mountPoint);
  refuseUsers("stage", stagingState.volumeId, elsewhere.map(mountUser));
  await unmountLast(deps, mountPoint, context);
  return false;
}

function isRight(entry: MountEntry, stagingState: StagingState, device: ProvenDevice): boolean {
  return entry.deviceNumber === device.deviceNumber && entry.filesystem === stagingState.intent.kind &&
    entry.root === "/" && stagingState.here.replaying === undefined &&
    isReadOnlyMount(entry) === stagingState.intent.readOnly;
}

/** Whether the mount is of this device, or left by the volume's earlier device of another number. */
function isOurs(entry: MountEntry, stagingState: StagingState, device: ProvenDevice): boolean {
  return entry.filesystem === stagingState.intent.kind &&
    (entry.deviceNumber === device.deviceNumber || stagingState.here.mountedAs === entry.deviceNumber);
}

/** Ends a file system that lives without a mount, before it is checked and mounted with other options than it has. */
async function endLeftFilesystem(
  { deps, device, context }: DeviceStaging,
  stagingState: StagingState,
): Promise<void> {
  if (!await deps.devices.hasFilesystem(device)) return;
  const users = (await usersOf(deps, device, "everything", context)).filter(isCertain);
  await endLivingFilesystem(deps, stagingState, device, users, context);
}

async function mount(
  { deps, undo, parameters, context, device, mountPoint }: DeviceStaging,
  stagingState: StagingState,
  filesystem: FilesystemType,
): Promise<void> {
  const proven = await proveAgain(deps, device, context);
  undo.add("unmount", (undoing) => unmountLast(deps, mountPoint, undoing));
  const { readOnly, mountFlags } = stagingState.intent;
  const flags = readOnly ? mountFlags : [...mountFlags, ...errorFlags(mountFlags, parameters.mkfsOptions)];
  const options = { readOnly, flags };
  const lives = await deps.devices.hasFilesystem(proven);
  const others = lives ? await usersOf(deps, proven, "everything", context) : [];
  await deps.mounts.mountDevice(proven, mountPoint, filesystem, options, context);
  if (lives) {
    await refuseDead(deps, mountPoint, stagingState, others, context);
    // The mount has joined a file system that no mount here has: it may be frozen, and every write of the pod would wait, also
    // where a backup in another mount namespace has frozen it. That is said.
    await thawForPods(deps, mountPoint, context, others);
  }
  context.signal.throwIfAborted();
}

/**
 * Throws when the mount has joined a file system that an error has shut down: it ends only with the others that have it.
 *
 * @throws {VolumeError} in-use, naming them
 */
async function refuseDead(
  deps: NodeDeps,
  mountPoint: string,
  { volumeId, intent: { stagingPath, readOnly } }: StagingState,
  others: readonly DeviceUser[],
  context: CallContext,
): Promise<void> {
  const top = mountsAt(await deps.mounts.table(), mountPoint).at(-1);
  const isUsable = top !== undefined && isReadOnlyMount(top) === readOnly;
  if (isUsable && await rootAnswers(deps, stagingPath, context)) return;
  refuseUsers("stage", volumeId, others.filter(isCertain));
}

/**
 * Returns the mount option that repeats mkfs's choice for errors: a workload that can write to the device can change it
 * there.
 */
function errorFlags(mountFlags: readonly string[], mkfsOptions: readonly string[]): readonly string[] {
  if (mountFlags.some((flag) => flag.startsWith("errors="))) return [];
  const at = mkfsOptions.indexOf("-e");
  return at < 0 ? [] : [`errors=${mkfsOptions[at + 1]}`];
}

/**
 * Makes sure that there is a complete file system on the device: makes one if that is safe, or checks the existing one.
 * It records that the file system is about to be mounted.
 *
 * @throws {VolumeError} precondition when the device is neither blank nor holds it, unavailable when that is unknown,
 *   busy when an earlier mkfs may still run
 */
async function prepareFilesystem(
  staging: DeviceStaging,
  stagingState: StagingState,
  filesystem: FilesystemType,
): Promise<StagingState> {
  const { deps, publish, parameters, context, device, sameDevice } = staging;
  const { intent, content } = stagingState;
  // A probe during a mkfs shows nothing about its result.
  if (content.filesystem === "started") await refuseWhileBusy(deps, device, context);
  // The log's state is read before anything passes through the kernel's cache: cached blocks would hide what another
  // node replays afterwards.
  const log = intent.readOnly ? await deps.filesystems.logState(device, filesystem, context) : undefined;
  using early = readEarly(staging, stagingState);
  const probed = await probeDevice(deps, device, context, { onlyEnds: intent.map === "crypt" });
  const signature = await judged(staging, probed.signature, filesystem);
  const uuid = signature.state === "found" ? signature.uuid : undefined;
  if (staging.renewed) assertSameFilesystem(stagingState, device, uuid);
  const mayBeUnfinished = content.filesystem === "started" && signature.state === "found" &&
    signature.type === filesystem;
  const decision = decideFormat({
    volumeId: stagingState.volumeId,
    wanted: filesystem,
    mayFormat: publish.mayFormat,
    epoch: publish.epoch,
    claim: publish.claim,
    sameEpoch: intent.epoch === publish.epoch,
    readOnly: intent.readOnly,
    sizeMatches: device.sizeBytes === usableBytes(publish.sizeBytes, intent.map === "crypt"),
    probe: { ...probed, signature },
    mkfs: content.filesystem,
    sameDevice,
    everMounted: content.used,
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
      if (parameters.fsck === "preen" && !intent.readOnly) await check(staging, filesystem);
      if (log !== undefined) await settleLog(staging, stagingState, filesystem, log);
      return await staging.deps.stagingStore.write(
        toBeMounted(withContent(stagingState, mayBeUnfinished ? { filesystem: "done" } : {}), device, uuid),
      );
  }
}

/** The signature that decides; a file system of a person's disk among several signatures only where it is whole. */
async function judged(
  { deps, publish: { imported }, context, device }: DeviceStaging,
  probed: DeviceProbe["signature"],
  filesystem: FilesystemType,
): Promise<DeviceProbe["signature"]> {
  const signature = judgedSignature(probed, filesystem, imported);
  const isWhole = !imported || signature === probed ||
    await deps.filesystems.isComplete(device, filesystem, context);
  return isWhole ? signature : probed;
}

/**
 * Checks the file system. It skips the check when the file system is mounted in a mount namespace that is invisible
 * here, such as one of a container that kept an unmounted mount: the kernel then mounts that same file system once
 * more, and refuses any device that is in use in another way.
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
    if ((await deps.devices.openBy([device], context)).some(isCertain)) throw error;
  }
  context.signal.throwIfAborted();
}

/**
 * One write records both the end of mkfs and the beginning of the mount, so that no state in between has to be decided.
 */
function toBeMounted(
  { content, here, ...rest }: StagingState,
  device: ProvenDevice,
  uuid: string | undefined,
): StagingState {
  const { filesystemUuid: _filesystemUuid, begunOn: _begunOn, ...known } = content;
  const { replaying: _replaying, ...left } = here;
  const filesystem = uuid === undefined ? {} : { filesystemUuid: uuid };
  return {
    ...rest,
    content: { ...known, ...filesystem, used: true },
    here: { ...left, mountedAs: device.deviceNumber },
  };
}

async function format(
  staging: DeviceStaging,
  stagingState: StagingState,
  filesystem: FilesystemType,
  { again, seenFree }: { readonly again: boolean; readonly seenFree: boolean },
): Promise<StagingState> {
  const { deps, parameters, context, device } = staging;
  const { filesystems } = deps;
  await refuseWhileBusy(deps, device, context, seenFree);
  const begunOn = stagingState.content.begunOn ?? stagingState.here.device!;
  const begun = withContent(stagingState, { filesystem: "started", begunOn });
  const started = await staging.deps.stagingStore.write(begun);
  if (again) await filesystems.eraseEnds(await proveAgain(deps, device, context), context);
  const options = { label: parameters.fsLabel, extra: parameters.mkfsOptions, lazy: !again };
  // The steps before can take long, and mkfs goes by the path.
  await filesystems.format(await proveAgain(deps, device, context), filesystem, options, context);
  // This is recorded even if the call was cancelled meanwhile: the file system exists.
  const done = await staging.deps.stagingStore.write(
    toBeMounted(withContent(started, { filesystem: "done" }), device, undefined),
  );
  context.signal.throwIfAborted();
  if (stagingState.intent.map !== "multipath") return done;
  // The UUID identifies a device that replaces this one below the map.
  const { signature } = await filesystems.probe(await proveAgain(deps, device, context), context);
  if (signature.state !== "found" || signature.uuid === undefined) return done;
  return await staging.deps.stagingStore.write(withContent(done, { filesystemUuid: signature.uuid }));
}

/** A read of the device beside the probe. Its disposal ends a read whose result is not needed. */
interface EarlyRead extends Disposable {
  /** Whether no process had the device open. */
  readonly seenFree: Promise<boolean>;
}

/**
 * Checks, while the probe runs, whether a device that is likely to be formatted is open anywhere. If the check meets
 * the probe itself or any other process, or fails, it is repeated later.
 */
function readEarly(staging: DeviceStaging, stagingState: StagingState): EarlyRead {
  const over = new AbortController();
  const signal = AbortSignal.any([staging.context.signal, over.signal]);
  const seenFree = isSeenFree(staging, stagingState, signal);
  // Where a file system is found, nothing awaits this promise.
  seenFree.catch(() => {});
  return { seenFree, [Symbol.dispose]: () => over.abort(new Error("nothing is to be formatted")) };
}

async function isSeenFree(
  { deps, publish, context, device }: DeviceStaging,
  stagingState: StagingState,
  signal: AbortSignal,
): Promise<boolean> {
  if (!publish.mayFormat || stagingState.intent.readOnly || stagingState.content.filesystem !== "none") {
    return false;
  }
  try {
    return (await deps.devices.openBy([device], { ...context, signal })).length === 0;
  } catch {
    // Whatever was wrong: the check is repeated before anything is made on the device.
    return false;
  }
}
