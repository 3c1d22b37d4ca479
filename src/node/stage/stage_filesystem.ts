import { VolumeError } from "../../volume/errors.ts";
import type { FilesystemType, MountEntry, ProvenDevice } from "../../volume/ports/ports.ts";
import type { Stash } from "../../volume/model/staging_state.ts";
import { rootAnswers } from "./answers.ts";
import { proveAgain } from "../connections/device.ts";
import { prepareFilesystem } from "./format_device.ts";
import { isOnBlockDevice, isReadOnlyMount, mountsAt, mountsOf } from "../mount_table.ts";
import type { Staging } from "./staging.ts";

/** Everyone may write to the root of a file system that is new; from then on its owner decides. */
const newRootMode = 0o777;

/** What a file system volume is staged as. */
interface Wanted {
  readonly filesystem: FilesystemType;
  /** Whether the device is the one that an earlier attempt saw. */
  readonly sameDevice: boolean;
  /** The staging path as the kernel writes it. */
  readonly point: string;
}

/**
 * Stages a file system volume: the file system is made if everything says that there never was one, checked, mounted
 * and grown to its device. What the answer says beyond what was written before the mount, the caller writes.
 *
 * @throws {VolumeError} precondition, in-use or identity-mismatch when what is there is not what should be
 */
export async function stageFilesystem(
  staging: Staging,
  stash: Stash,
  device: ProvenDevice,
  { filesystem, sameDevice, point: target }: Wanted,
): Promise<Stash> {
  const { world, context } = staging;
  let current = stash;
  if (!await isMountedRight(staging, current, device, target)) {
    current = await prepareFilesystem(staging, current, device, filesystem, sameDevice);
    await mount(staging, current, device, filesystem, target);
  }
  if (current.mkfs === "done" && !current.rootOpened) {
    await world.paths.setMode(current.stagingPath, newRootMode);
    // Written with the end of staging: whoever is killed before that has handed it to nobody, and may do it again.
    current = { ...current, rootOpened: true };
  }
  const isNew = stash.mkfs === "none" && current.mkfs === "done"; // It fills the device that it was made on.
  if (!current.readOnly && !isNew) {
    await world.filesystems.grow(await proveAgain(world, device, context), filesystem, target, context);
  }
  return current;
}

/**
 * Whether the file system is mounted as it should be. What an earlier device or a failed file system left there is
 * unmounted if nobody uses it.
 */
async function isMountedRight(
  { world, context }: Staging,
  stash: Stash,
  device: ProvenDevice,
  target: string,
): Promise<boolean> {
  const table = await world.mounts.table();
  const entries = mountsAt(table, target);
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
          `path=${target} device=${entry.deviceNumber} type=${entry.filesystem}`,
      );
    }
    own.add(entry.deviceNumber);
  }
  world.events.happened({ kind: "stale-mount", finder: "stage" });
  refuseWhileMounted(mountsOf(table, own).filter((entry) => entry.mountPoint !== target), stash);
  await world.mounts.unmount(target, context);
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
  staging: Staging,
  stash: Stash,
  device: ProvenDevice,
  filesystem: FilesystemType,
  target: string,
): Promise<void> {
  const { world, undo, context } = staging;
  const proven = await proveAgain(world, device, context);
  undo.add("unmount", (undoing) => world.mounts.unmount(target, undoing));
  const options = { readOnly: stash.readOnly, flags: stash.mountFlags };
  await world.mounts.mountDevice(proven, target, filesystem, options, context);
  context.signal.throwIfAborted();
}
