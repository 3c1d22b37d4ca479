import { VolumeError } from "../../volume/errors.ts";
import { mapName } from "../../volume/model/device_layer.ts";
import { headerLabel, headerType, type Passphrases, unfinishedLabel } from "../../volume/model/encryption.ts";
import { type StagingState, withContent } from "../../volume/model/staging/state.ts";
import { wantsReadOnlyDevice } from "../../volume/model/staging/intent.ts";
import type { DeviceProbe, ProvenDevice } from "../../volume/ports/node_ports.ts";
import { decideFormat } from "../../volume/rules/format.ts";
import type { DeviceUser } from "../../volume/model/host/device_user.ts";
import { usersOf } from "../../volume/rules/host/device_users.ts";
import { holdProven, proveAgain } from "../connections/device.ts";
import { unmountLast } from "../connections/last_unmount.ts";
import { refuseBound, refuseUsers } from "../connections/observe.ts";
import { findMap, type VolumeMap } from "../chain/chain.ts";
import { growMap, proveMap, removeMap, removeOwnMap } from "../chain/map.ts";
import { mountsAt, mountUser } from "../mount_table.ts";
import { probeDevice } from "../stage/probe.ts";
import { refuseWhileBusy } from "../stage/busy.ts";
import type { Staging } from "../stage/stage_device.ts";
import { encryptionFor } from "./encryption_for.ts";

/** The stage of an encrypted volume, whose device is connected and proven. */
export interface Unlocking extends Staging {
  readonly passphrases: Passphrases;
  /** The device that holds the header. */
  readonly below: ProvenDevice;
  /** Whether it is the device that an earlier attempt saw. */
  readonly sameDevice: boolean;
  /** The staging path as the kernel writes it. */
  readonly mountPoint: string;
}

/** The device of an opened volume. */
interface Unlocked {
  readonly device: ProvenDevice;
  readonly stagingState: StagingState;
}

/**
 * Makes an encrypted volume usable: opens the device, and before that writes a header where there never was anything. From
 * then on the returned mapping is the volume's device.
 *
 * A new header is on record as begun, and says so itself, until the ends of the mapping are zero: noise there would count
 * as data. Only then may anyone use it. So a device whose header says that it is complete is never formatted again.
 *
 * @throws {VolumeError} precondition when the device is neither blank nor holds a header of this driver; unauthenticated
 *   when the passphrase does not open it; in-use while an earlier mapping of it, or the device itself, is in use
 */
export async function unlock(unlocking: Unlocking, stagingState: StagingState): Promise<Unlocked> {
  const { deps, below, undo, context } = unlocking;
  const { volumeId, intent: { nqn } } = stagingState;
  await assertUsable(unlocking, stagingState);
  const map = await findMap(deps, volumeId);
  const there = map?.kind === "crypt" ? map : undefined;
  const isUsable = there !== undefined && there.on === below.deviceNumber &&
    stagingState.content.header !== "started" &&
    await isOwn(unlocking, there);
  if (isUsable) {
    const device = await growMap(deps, "crypt", below, context);
    // One that was opened by hand takes no writes.
    const isStuck = !wantsReadOnlyDevice(stagingState) &&
      await deps.devices.isReadOnly(device) === true;
    if (!isStuck) return { device, stagingState: withContent(stagingState, { header: "done" }) };
  }
  if (there !== undefined) await dropStale(unlocking, stagingState, there);
  const { release } = await holdProven(deps, below, undo, context);
  await deps.devices.setReadOnly(below, opensReadOnly(unlocking, stagingState), context);
  const header = await decideHeader(unlocking, stagingState);
  undo.add("close the mapping", (undoing) => removeOwnMap(deps, { volumeId, nqns: [nqn] }, undoing));
  await deps.encryption!.inTurn(context, async (inTurn) => {
    const deriving = { ...unlocking, context: inTurn };
    if (header !== "known") await writeHeader(deriving, stagingState, header === "again");
    await open(deriving, stagingState);
  });
  const device = await proveMap(deps, below, context);
  context.signal.throwIfAborted();
  const { begunOn: _begunOn, ...finished } = stagingState.content;
  // What is unfinished beyond a header that is known is a file system.
  const known = stagingState.content.header === "done" ? stagingState.content : finished;
  const done: StagingState = { ...stagingState, content: { ...known, header: "done" } };
  if (header !== "known") await completeHeader(unlocking, done, device);
  // A label that was written by half is in one copy of the header only.
  else if (stagingState.content.header === "started" && !opensReadOnly(unlocking, stagingState)) {
    await deps.encryption!.complete(below, context);
  }
  await release();
  return { device, stagingState: done };
}

/** @throws {VolumeError} precondition when this node cannot open it; in-use while a pod has the device itself */
async function assertUsable({ deps, below, context }: Unlocking, { volumeId }: StagingState): Promise<void> {
  await encryptionFor(deps, "stage", volumeId, context);
  await refuseBound(deps, volumeId, below, context);
}

/** Whether a mapping encrypts as this driver does: whoever made it may have believed another header. */
async function isOwn({ deps, below, context }: Unlocking, there: VolumeMap): Promise<boolean> {
  try {
    await deps.encryption!.assertOwn(there, below, context);
    return true;
  } catch (error) {
    if (!VolumeError.is(error, "identity-mismatch")) throw error;
    deps.notes?.warn("closing a mapping before its volume is opened anew", { reason: error.message });
    return false;
  }
}

/** Closes a mapping on an earlier device, of another kind, or on a header that was never completed; unmounts what is left of it first. */
async function dropStale(
  { deps, mountPoint, context }: Unlocking,
  { volumeId }: StagingState,
  there: VolumeMap,
): Promise<void> {
  const users = await usersOf(deps, there, "shown", context);
  const isOwn = (user: DeviceUser) => user.by === "mount" && user.at === mountPoint;
  const over = mountsAt(await deps.mounts.table(), mountPoint)
    .filter(({ deviceNumber }) => deviceNumber !== there.deviceNumber);
  refuseUsers("stage", volumeId, [...users.filter((user) => !isOwn(user)), ...over.map(mountUser)]);
  if (users.length > 0) {
    deps.events.occurred({ kind: "stale-mount", finder: "stage" });
    await unmountLast(deps, mountPoint, context);
  }
  await removeMap(deps, there, context);
}

/** Decides by the whole rule for making a file system whether a header is made, also in place of one that was begun. */
async function decideHeader(
  unlocking: Unlocking,
  stagingState: StagingState,
): Promise<"new" | "again" | "known"> {
  const { deps, publish, below, sameDevice, context } = unlocking;
  const { volumeId, intent: { readOnly, epoch }, content: { header, used } } = stagingState;
  if (header === "started") await refuseWhileBusy(deps, below, context);
  const probe = await probeDevice(deps, below, context);
  const label = probe.signature.state === "found" ? probe.signature.label : undefined;
  const isUnfinished = label === unfinishedLabel;
  const decision = decideFormat({
    volumeId,
    wanted: headerType,
    mayFormat: publish.mayFormat,
    epoch: publish.epoch,
    claim: publish.claim,
    sameEpoch: epoch === publish.epoch,
    readOnly,
    sizeMatches: below.sizeBytes === publish.sizeBytes,
    probe: onlyOwn(probe),
    mkfs: isUnfinished ? "started" : header,
    sameDevice,
    everMounted: used && !isUnfinished,
    complete: label === headerLabel,
  });
  switch (decision.action) {
    case "refuse":
      deps.events.occurred({ kind: "format-refused", reason: decision.refusal });
      throw new VolumeError(decision.kind, decision.reason);
    case "mount-existing":
      return "known";
    case "format":
      return "new";
    case "reformat-interrupted":
      return "again";
  }
}

/** Another header's label becomes a part of its type, which is then not the wanted one. */
function onlyOwn(probe: DeviceProbe): DeviceProbe {
  const { signature } = probe;
  if (signature.state !== "found" || signature.type !== headerType) return probe;
  if ([headerLabel, unfinishedLabel].some((label) => label === signature.label)) return probe;
  const type = `${headerType} labelled ${JSON.stringify(signature.label ?? "")}`;
  return { ...probe, signature: { ...signature, type } };
}

async function writeHeader(
  { deps, parameters, passphrases, below, context }: Unlocking,
  stagingState: StagingState,
  again: boolean,
): Promise<void> {
  await refuseWhileBusy(deps, below, context);
  const { deviceNumber, uniqueId, sizeBytes } = below;
  const begunOn = { deviceNumber, uniqueId, sizeBytes };
  await deps.stagingStore.write(withContent(stagingState, { header: "started", begunOn }));
  if (again) await deps.filesystems.eraseEnds(await proveAgain(deps, below, context), context);
  const passphrase = passphrases.next ?? passphrases.current;
  const { keyCost } = parameters.encryption;
  await deps.encryption!.format(await proveAgain(deps, below, context), passphrase, keyCost, context);
  context.signal.throwIfAborted();
}

/** A replay of a log writes to the device of a volume that is only read. */
function opensReadOnly({ mayReplay }: Unlocking, stagingState: StagingState): boolean {
  return wantsReadOnlyDevice(stagingState) && !mayReplay;
}

/** Opens the device with the next passphrase, if there is one, which replaces the current one where that is allowed. */
async function open(unlocking: Unlocking, stagingState: StagingState): Promise<void> {
  const { deps, parameters, passphrases, isSoleWriter, below, context } = unlocking;
  const encryption = deps.encryption!;
  const name = mapName(stagingState.volumeId);
  const { allowDiscards, keyCost } = parameters.encryption;
  const readOnly = opensReadOnly(unlocking, stagingState);
  const openWith = async (passphrase: string) => {
    const device = await proveAgain(deps, below, context);
    await encryption.open(name, device, passphrase, { readOnly, allowDiscards }, context);
  };
  const { current, next } = passphrases;
  try {
    if (next === undefined) return await openWith(current);
    if (isSoleWriter) {
      const device = await proveAgain(deps, below, context);
      await encryption.replacePassphrase(name, device, { current, next }, keyCost, context);
    }
    return await openWith(next).catch(async (error) => {
      if (!VolumeError.is(error, "unauthenticated") || isSoleWriter) throw error;
      await openWith(current);
    });
  } catch (error) {
    if (VolumeError.is(error, "unauthenticated")) deps.events.occurred({ kind: "passphrase-refused" });
    throw error;
  }
}

/** What a new mapping shows is noise: its ends become zero, so that the rule for file systems sees it as blank. */
async function completeHeader(
  { deps, below, context }: Unlocking,
  done: StagingState,
  device: ProvenDevice,
): Promise<void> {
  await deps.filesystems.eraseEnds(await proveAgain(deps, device, context), context);
  await proveMap(deps, below, context);
  await deps.encryption!.complete(below, context);
  await deps.stagingStore.write(done);
}
