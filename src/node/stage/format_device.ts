import { VolumeError } from "../../volume/errors.ts";
import { decideFormat } from "../../volume/rules/format.ts";
import type { DeviceProbe, FilesystemType, ProvenDevice } from "../../volume/ports/ports.ts";
import type { Stash } from "../../volume/model/staging_state.ts";
import { proveAgain } from "../connections/device.ts";
import type { Staging } from "./staging.ts";

/**
 * Makes sure that there is a whole file system on the device, made now if that is safe, or checked; and writes down that
 * it is going to be mounted.
 *
 * @throws {VolumeError} precondition when the device is neither blank nor holds it, unavailable when that cannot be
 * told, busy when an earlier mkfs may still run
 */
export async function prepareFilesystem(
  staging: Staging,
  stash: Stash,
  device: ProvenDevice,
  filesystem: FilesystemType,
  sameDevice: boolean,
): Promise<Stash> {
  const { world, publish, parameters, context } = staging;
  // What is found while it is still being made says nothing about what it will be.
  if (stash.mkfs === "started") await refuseWhileBusy(staging, device);
  const early = lookEarly(staging, stash, device);
  const probe = await probeDevice(staging, device);
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
      return await format(staging, stash, device, filesystem, { again: false, seenFree });
    case "reformat-interrupted":
      return await format(staging, stash, device, filesystem, { again: true, seenFree });
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

async function probeDevice({ world, context }: Staging, device: ProvenDevice): Promise<DeviceProbe> {
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
  staging: Staging,
  stash: Stash,
  device: ProvenDevice,
  filesystem: FilesystemType,
  { again, seenFree }: { readonly again: boolean; readonly seenFree: boolean },
): Promise<Stash> {
  const { world, parameters, context } = staging;
  const { filesystems } = world;
  await refuseWhileBusy(staging, device, seenFree);
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
  { world, publish, context }: Staging,
  stash: Stash,
  device: ProvenDevice,
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
  { world, context }: Staging,
  device: ProvenDevice,
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
