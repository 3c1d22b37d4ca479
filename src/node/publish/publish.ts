import { dirname } from "node:path";
import { type Capability, isReadOnlyMode, kindName } from "../../volume/model/capabilities.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { MountEntry, ProvenDevice } from "../../volume/ports/node_ports.ts";
import { type PublishedTarget, type StagingState, withContent } from "../../volume/model/staging/state.ts";
import { wantsReadOnlyDevice } from "../../volume/model/staging/intent.ts";
import { withoutPublished, withPublished } from "../../volume/model/staging/here.ts";
import { isReadOnlyMount, mountsAt } from "../mount_table.ts";
import { thawForPods } from "../connections/last_unmount.ts";
import { holdProven } from "../connections/device.ts";
import type { Fencing } from "../fencing/fencing.ts";
import { parseMountFlags } from "../../volume/model/filesystem/mount_flags.ts";
import { assertTargetApart } from "./target_paths.ts";
import { settledPublish } from "../stage/settled.ts";
import type { StageRequest } from "../stage/wish.ts";
import { type Undo, withUndo } from "../stage/undo.ts";
import type { NodeDeps } from "../deps.ts";
import { livePublished, stagedOrAnew } from "./staged.ts";

/** The fields of NodePublishVolume. */
export interface PublishRequest extends StageRequest {
  readonly targetPath: string;
  readonly readOnly: boolean;
}

/**
 * Makes a staged volume available to a workload: proves the device again, and binds it, or the folder that it is
 * mounted on, to the target. A volume whose stage is dead is staged anew.
 *
 * @throws {VolumeError} precondition when the volume is not staged as a publish needs it, and pods have it; unavailable when
 *   anything is at the target after a failure
 */
export async function publishVolume(
  deps: NodeDeps,
  fencing: Fencing,
  request: PublishRequest,
  context: CallContext,
): Promise<void> {
  await settledPublish(deps, request.targetPath, context, () => publish(deps, fencing, request, context));
}

async function publish(
  deps: NodeDeps,
  fencing: Fencing,
  request: PublishRequest,
  context: CallContext,
): Promise<void> {
  const { stagingStore } = deps;
  const { stagingState, device, staged } = await stagedOrAnew(deps, fencing, request, context);
  await assertTargetApart(stagingStore, stagingState, request.targetPath);
  const readOnly = isReadOnlyPublish(stagingState, request);
  const mountPoint = await deps.paths.mountPoint(request.targetPath);
  const table = await deps.mounts.table();
  const live = await livePublished(deps, table, stagingState);
  const target = { targetPath: request.targetPath, readOnly };
  assertPublishable(stagingState, live, target, request.capability);
  const mounted = mountsAt(table, mountPoint);
  await assertTargetFits(deps, mounted, stagingState, device, live, target, context);
  // A file system was used with its mount; a raw device is, from its first bind on.
  const planned = withContent(
    { ...stagingState, here: withPublished({ ...stagingState.here, published: live }, target) },
    { used: true },
  );
  const isAt = async (undoing: CallContext) => {
    const top = mountsAt(await deps.mounts.table(), mountPoint).at(-1);
    return top !== undefined && await isThisVolume(deps, top, stagingState, device, undoing);
  };
  await withUndo(deps.clock, context, async (undo) => {
    undo.add("forget the target", async (undoing) => {
      if (!await isAt(undoing)) {
        await stagingStore.write({ ...planned, here: withoutPublished(planned.here, target.targetPath) });
      }
    });
    await stagingStore.write(planned);
    const { release } = await holdProven(deps, device, undo, context);
    if (stagingState.intent.kind === "block") {
      await deps.devices.setReadOnly(
        device,
        wantsReadOnlyDevice(planned),
        context,
      );
    } else if (live.length === 0) {
      // A backup of the pod before may have frozen it. One of a pod that has it now ends by itself.
      await thawForPods(deps, staged, context);
    }
    if (mounted.length === 0) {
      await makeTarget(deps, stagingState, target.targetPath, undo, context);
      undo.add("unmount", async (undoing) => {
        if (await isAt(undoing)) await deps.mounts.unmount(mountPoint, undoing);
      });
    }
    await bind(deps, stagingState, device, { source: staged, target: mountPoint, readOnly }, context);
    await release();
  });
}

function isReadOnlyPublish(stagingState: StagingState, request: PublishRequest): boolean {
  return request.readOnly || stagingState.intent.readOnly || isReadOnlyMode(request.capability.mode) ||
    parseMountFlags(request.mountFlags).readOnly;
}

/** Throws unless what is mounted at the target is this volume, in the requested way. */
async function assertTargetFits(
  deps: NodeDeps,
  mounted: readonly MountEntry[],
  stagingState: StagingState,
  device: ProvenDevice,
  live: readonly PublishedTarget[],
  target: PublishedTarget,
  context: CallContext,
): Promise<void> {
  const top = mounted.at(-1);
  if (top === undefined) return;
  if (!await isThisVolume(deps, top, stagingState, device, context)) {
    throw new VolumeError(
      "exists-incompatible",
      `Cannot publish the volume because something else is mounted at the target: volume=${stagingState.volumeId} ` +
        `path=${target.targetPath} device=${top.deviceNumber} type=${top.filesystem}`,
    );
  }
  // Recorded as read-only and mounted writable: a publish was interrupted between the two mounts, and is to be
  // finished.
  const isReadOnly = live.find((other) => other.targetPath === target.targetPath)?.readOnly ??
    isReadOnlyMount(top);
  if (isReadOnly === target.readOnly && (target.readOnly || !isReadOnlyMount(top))) return;
  throw new VolumeError(
    "exists-incompatible",
    `Cannot publish the volume because it is published there in another way: volume=${stagingState.volumeId} ` +
      `path=${target.targetPath} readonly=${isReadOnly} asked=${target.readOnly}`,
  );
}

async function isThisVolume(
  deps: NodeDeps,
  entry: MountEntry,
  stagingState: StagingState,
  device: ProvenDevice,
  context: CallContext,
): Promise<boolean> {
  if (stagingState.intent.kind !== "block") {
    return entry.deviceNumber === device.deviceNumber && entry.root === "/";
  }
  const info = await deps.paths.info(entry.mountPoint, context);
  return info?.kind === "block" && info.deviceNumber === device.deviceNumber;
}

async function makeTarget(
  deps: NodeDeps,
  stagingState: StagingState,
  path: string,
  undo: Undo,
  context: CallContext,
): Promise<void> {
  const wanted = stagingState.intent.kind === "block" ? "file" : "directory";
  const info = await deps.paths.info(path, context);
  if (info?.kind === wanted) return;
  if (info !== undefined) {
    throw new VolumeError(
      "precondition",
      `Cannot publish the volume because the target is not a ${wanted}: volume=${stagingState.volumeId} path=${path} is=${info.kind}`,
    );
  }
  if (wanted === "directory") {
    undo.add("remove the target", () => deps.paths.removeEmptyFolder(path));
    await deps.paths.makeFolder(path, 0o750);
  } else {
    undo.add("remove the target", () => deps.paths.removeEmptyFile(path));
    await deps.paths.makeFolder(dirname(path), 0o750);
    await deps.paths.makeFile(path, 0o600);
  }
}

async function bind(
  deps: NodeDeps,
  stagingState: StagingState,
  device: ProvenDevice,
  wanted: { readonly source: string; readonly target: string; readonly readOnly: boolean },
  context: CallContext,
): Promise<void> {
  const { source, target, readOnly } = wanted;
  context.signal.throwIfAborted();
  if (stagingState.intent.kind === "block") {
    await deps.mounts.bindDevice(device, target, { readOnly }, context);
  } else await deps.mounts.bindFolder(device, source, target, { readOnly }, context);
  context.signal.throwIfAborted();
}

/**
 * Throws unless a staged volume may be published at one more target, or at the same one again (CSI specification,
 * "NodePublishVolume", second table). `published` are its current targets.
 *
 * SINGLE_NODE_WRITER follows the rules of SINGLE_NODE_MULTI_WRITER: older kubelets send it for ReadWriteOnce, which
 * lets several pods of one node use the volume.
 *
 * @throws {VolumeError} exists-incompatible when the same target is requested with another kind of access; precondition
 *   when the access mode or the other uses forbid it
 */
function assertPublishable(
  stagingState: StagingState,
  published: readonly PublishedTarget[],
  target: PublishedTarget,
  capability: Capability,
): void {
  const others = published.filter((other) => other.targetPath !== target.targetPath);
  const [other] = others;
  if (kindName(capability) !== stagingState.intent.kind) {
    const again = others.length < published.length;
    throw refused(
      again ? "exists-incompatible" : "precondition",
      stagingState,
      `it is staged as ${stagingState.intent.kind}: asked=${kindName(capability)}`,
    );
  }
  if (capability.mode === "single-node-single-writer" && other !== undefined) {
    throw refused(
      "precondition",
      stagingState,
      `its access mode SINGLE_NODE_SINGLE_WRITER allows one target: published at=${other.targetPath}`,
    );
  }
  const unlike = others.find((each) => each.readOnly !== target.readOnly);
  if (stagingState.intent.kind === "block" && unlike !== undefined) {
    throw refused(
      "precondition",
      stagingState,
      `a device is read-only for all its uses on a node or for none: published at=${unlike.targetPath} ` +
        `readonly=${unlike.readOnly} asked=${target.readOnly}`,
    );
  }
}

function refused(
  kind: "exists-incompatible" | "precondition",
  stagingState: StagingState,
  why: string,
): VolumeError {
  return new VolumeError(kind, `Cannot publish the volume because ${why} volume=${stagingState.volumeId}`);
}
