import { dirname } from "node:path";
import { type Capability, isReadOnlyMode, kindName } from "../../volume/model/capabilities.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { MountEntry, ProvenDevice } from "../../volume/ports/node_ports.ts";
import {
  type PublishedTarget,
  type Stash,
  wantsReadOnlyDevice,
  withoutPublished,
  withPublished,
} from "../../volume/model/staging_state.ts";
import { isReadOnlyMount, mountsAt, rootAnswers } from "../mount_table.ts";
import { holdProven, proveStaged } from "../connections/device.ts";
import { parseMountFlags } from "./mount_flags.ts";
import { assertTargetApart } from "./target_paths.ts";
import { Stashes } from "../stage/staging_store.ts";
import { type Undo, withUndo } from "../stage/undo.ts";
import type { NodeWorld } from "../deps.ts";

/** What NodePublishVolume asks for. */
export interface PublishRequest {
  readonly volumeId: string;
  readonly stagingPath: string;
  readonly targetPath: string;
  readonly capability: Capability;
  readonly mountFlags: readonly string[];
  readonly readOnly: boolean;
  readonly publishContext: Readonly<Record<string, string>>;
}

/**
 * Puts a staged volume in place for a workload: proves the device again, and binds it, or the folder that it is mounted
 * on, to the target.
 *
 * @throws {VolumeError} precondition when the volume is not staged, or not as a publish needs it; exists-incompatible
 * when the target is taken otherwise
 */
export async function publishVolume(
  world: NodeWorld,
  request: PublishRequest,
  context: CallContext,
): Promise<void> {
  const stashes = new Stashes(world);
  const stash = getStaged(await stashes.find(request.volumeId), request);
  await assertTargetApart(stashes, stash, request.targetPath);
  const readOnly = isReadOnlyPublish(stash, request);
  const point = await world.paths.mountPoint(request.targetPath);
  const staged = stash.kind === "block" ? stash.stagingPath : await world.paths.mountPoint(stash.stagingPath);
  const device = await proveUnchanged(world, stash, context);
  const table = await world.mounts.table();
  if (stash.kind !== "block") await assertMounted(world, table, stash, staged, context);
  const live = await livePublished(world, table, stash);
  const target = { targetPath: request.targetPath, readOnly };
  assertPublishable(stash, live, target, request.capability);
  const mounted = mountsAt(table, point);
  await assertTargetFits(world, mounted, stash, device, live, target, context);
  const planned = withPublished({ ...stash, published: live }, target);
  const isAt = async (undoing: CallContext) => {
    const top = mountsAt(await world.mounts.table(), point).at(-1);
    return top !== undefined && await isThisVolume(world, top, stash, device, undoing);
  };
  await withUndo(world.clock, context, async (undo) => {
    undo.add("forget the target", async (undoing) => {
      if (!await isAt(undoing)) await stashes.write(withoutPublished(planned, target.targetPath));
    });
    await stashes.write(planned);
    const { letGo } = await holdProven(world, device, undo, context);
    if (stash.kind === "block") {
      await world.devices.setReadOnly(device, wantsReadOnlyDevice(planned), context);
    }
    if (mounted.length === 0) {
      await makeTarget(world, stash, target.targetPath, undo, context);
      undo.add("unmount", async (undoing) => {
        if (await isAt(undoing)) await world.mounts.unmount(point, undoing);
      });
    }
    await bind(world, stash, device, { source: staged, target: point, readOnly }, context);
    await letGo();
  });
}

function getStaged(stash: Stash | undefined, request: PublishRequest): Stash {
  const volume = `volume=${request.volumeId}`;
  if (stash?.staged !== true) {
    throw new VolumeError(
      "precondition",
      `Cannot publish the volume as it is not staged on this node: ${volume}`,
    );
  }
  if (stash.stagingPath !== request.stagingPath) {
    throw new VolumeError(
      "precondition",
      `Cannot publish the volume as it is staged at another path: ${volume} staged at=${stash.stagingPath}`,
    );
  }
  const epoch = request.publishContext.epoch ?? "";
  if (epoch !== "" && epoch !== stash.epoch) {
    throw new VolumeError(
      "precondition",
      `Cannot publish the volume as it is staged in another epoch: ${volume} staged=${stash.epoch} asked=${epoch}`,
    );
  }
  return stash;
}

function isReadOnlyPublish(stash: Stash, request: PublishRequest): boolean {
  return request.readOnly || stash.readOnly || isReadOnlyMode(request.capability.mode) ||
    parseMountFlags(request.mountFlags).readOnly;
}

/** The device that the volume was staged with, proven right now. */
async function proveUnchanged(world: NodeWorld, stash: Stash, context: CallContext): Promise<ProvenDevice> {
  const found = await world.connector.find(stash.nqn, context);
  if (found === undefined || found.deviceNumber !== stash.device?.deviceNumber) {
    throw new VolumeError(
      "precondition",
      `Cannot publish the volume as its device is ${
        found === undefined ? "gone" : "another one"
      } since it was ` +
        `staged: volume=${stash.volumeId}; it has to be unstaged and staged again`,
    );
  }
  return await proveStaged(world, found, stash, context);
}

/** A staging whose file system is not mounted, or was given up by the kernel, must not look healthy to a pod. */
async function assertMounted(
  world: NodeWorld,
  table: readonly MountEntry[],
  stash: Stash,
  staged: string,
  context: CallContext,
): Promise<void> {
  const entry = mountsAt(table, staged).at(-1);
  const right = entry?.deviceNumber === stash.device?.deviceNumber && entry?.filesystem === stash.kind;
  const usable = right && isReadOnlyMount(entry) === stash.readOnly;
  if (usable && await rootAnswers(world, stash.stagingPath, context)) return;
  if (entry !== undefined && !right) world.events.happened({ kind: "stale-mount", finder: "publish" });
  const state = entry === undefined
    ? "is not mounted"
    : usable
    ? "does not answer, as after errors"
    : right
    ? "was turned read-only, as errors do"
    : "is another one";
  throw new VolumeError(
    "precondition",
    `Cannot publish the volume as its file system at the staging path ${state}: volume=${stash.volumeId} ` +
      `path=${stash.stagingPath}; it has to be unstaged and staged again`,
  );
}

/** The targets on record that are there; after a reboot, for one, none is. */
async function livePublished(
  world: NodeWorld,
  table: readonly MountEntry[],
  stash: Stash,
): Promise<readonly PublishedTarget[]> {
  const live: PublishedTarget[] = [];
  for (const target of stash.published) {
    const point = await world.paths.mountPoint(target.targetPath);
    if (mountsAt(table, point).length > 0) live.push(target);
  }
  return live;
}

/** What is mounted at the target already has to be this volume, and as it is asked for. */
async function assertTargetFits(
  world: NodeWorld,
  mounted: readonly MountEntry[],
  stash: Stash,
  device: ProvenDevice,
  live: readonly PublishedTarget[],
  target: PublishedTarget,
  context: CallContext,
): Promise<void> {
  const top = mounted.at(-1);
  if (top === undefined) return;
  if (!await isThisVolume(world, top, stash, device, context)) {
    throw new VolumeError(
      "exists-incompatible",
      `Cannot publish the volume as something else is mounted at the target: volume=${stash.volumeId} ` +
        `path=${target.targetPath} device=${top.deviceNumber} type=${top.filesystem}`,
    );
  }
  // On record read-only and mounted writable: a publish that was cut short between the two mounts, to be finished.
  const isReadOnly = live.find((other) => other.targetPath === target.targetPath)?.readOnly ??
    isReadOnlyMount(top);
  if (isReadOnly === target.readOnly && (target.readOnly || !isReadOnlyMount(top))) return;
  throw new VolumeError(
    "exists-incompatible",
    `Cannot publish the volume as it is published there otherwise: volume=${stash.volumeId} ` +
      `path=${target.targetPath} readonly=${isReadOnly} asked=${target.readOnly}`,
  );
}

async function isThisVolume(
  world: NodeWorld,
  entry: MountEntry,
  stash: Stash,
  device: ProvenDevice,
  context: CallContext,
): Promise<boolean> {
  if (stash.kind !== "block") return entry.deviceNumber === device.deviceNumber && entry.root === "/";
  const info = await world.paths.info(entry.mountPoint, context);
  return info?.kind === "block" && info.deviceNumber === device.deviceNumber;
}

async function makeTarget(
  world: NodeWorld,
  stash: Stash,
  path: string,
  undo: Undo,
  context: CallContext,
): Promise<void> {
  const wanted = stash.kind === "block" ? "file" : "directory";
  const info = await world.paths.info(path, context);
  if (info?.kind === wanted) return;
  if (info !== undefined) {
    throw new VolumeError(
      "precondition",
      `Cannot publish the volume as the target is not a ${wanted}: volume=${stash.volumeId} path=${path} is=${info.kind}`,
    );
  }
  if (wanted === "directory") {
    undo.add("remove the target", () => world.paths.removeEmptyFolder(path));
    await world.paths.makeFolder(path, 0o750);
  } else {
    undo.add("remove the target", () => world.paths.removeEmptyFile(path));
    await world.paths.makeFolder(dirname(path), 0o750);
    await world.paths.makeFile(path, 0o600);
  }
}

async function bind(
  world: NodeWorld,
  stash: Stash,
  device: ProvenDevice,
  wanted: { readonly source: string; readonly target: string; readonly readOnly: boolean },
  context: CallContext,
): Promise<void> {
  const { source, target, readOnly } = wanted;
  context.signal.throwIfAborted();
  if (stash.kind === "block") await world.mounts.bindDevice(device, target, { readOnly }, context);
  else await world.mounts.bindFolder(device, source, target, { readOnly }, context);
  context.signal.throwIfAborted();
}

/**
 * Whether a staged volume may be published at one more target, or at the same one again (CSI specification,
 * "NodePublishVolume", second table). `published` are the targets where it is right now.
 *
 * SINGLE_NODE_WRITER goes by the rules of SINGLE_NODE_MULTI_WRITER: it is what older kubelets say for ReadWriteOnce,
 * which lets several pods of one node use the volume.
 *
 * @throws {VolumeError} exists-incompatible when the same target is asked for with another kind of access; precondition
 * when the access mode or the other uses forbid it
 */
function assertPublishable(
  stash: Stash,
  published: readonly PublishedTarget[],
  target: PublishedTarget,
  capability: Capability,
): void {
  const others = published.filter((other) => other.targetPath !== target.targetPath);
  const [other] = others;
  if (kindName(capability) !== stash.kind) {
    const again = others.length < published.length;
    throw refused(
      again ? "exists-incompatible" : "precondition",
      stash,
      `it is staged as ${stash.kind}: asked=${kindName(capability)}`,
    );
  }
  if (capability.mode === "single-node-single-writer" && other !== undefined) {
    throw refused(
      "precondition",
      stash,
      `its access mode SINGLE_NODE_SINGLE_WRITER allows one target: published at=${other.targetPath}`,
    );
  }
  const unlike = others.find((each) => each.readOnly !== target.readOnly);
  if (stash.kind === "block" && unlike !== undefined) {
    throw refused(
      "precondition",
      stash,
      `a device is read-only for all its uses on a node or for none: published at=${unlike.targetPath} ` +
        `readonly=${unlike.readOnly} asked=${target.readOnly}`,
    );
  }
}

function refused(kind: "exists-incompatible" | "precondition", stash: Stash, why: string): VolumeError {
  return new VolumeError(kind, `Cannot publish the volume as ${why} volume=${stash.volumeId}`);
}
