import { VolumeError } from "../../volume/errors.ts";
import { epochText } from "../../volume/model/parse_context.ts";
import type { PublishedTarget, StagingState } from "../../volume/model/staging/state.ts";
import type { MountEntry, ProvenDevice } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { readChain } from "../chain/chain.ts";
import { proveStaged } from "../connections/device.ts";
import type { NodeDeps } from "../deps.ts";
import type { Fencing } from "../fencing/fencing.ts";
import { isGivenUp } from "../layer/queueing.ts";
import { isReadOnlyMount, mountsAt, rootAnswers } from "../mount_table.ts";
import { stageVolume } from "../stage/stage.ts";
import type { StageRequest } from "../stage/wish.ts";

/** A volume as its publish needs it. */
interface Staged {
  readonly stagingState: StagingState;
  /** Proven again. */
  readonly device: ProvenDevice;
  /** Where it is staged, of a file system as the kernel writes it. */
  readonly staged: string;
}

/**
 * The volume as it is staged. One whose device or file system is dead, or that a fence has taken down, is staged anew once no
 * pod has it, with what the request says, which is what its stage said: a kubelet that has staged a volume does not stage it
 * again, nor unstage it, as long as any pod of the node waits for it.
 *
 * @throws {VolumeError} precondition, identity-mismatch while a pod has it; what {@linkcode stageVolume} throws
 */
export async function stagedOrAnew(
  deps: NodeDeps,
  fencing: Fencing,
  request: StageRequest,
  context: CallContext,
): Promise<Staged> {
  try {
    return await asStaged(deps, request, context);
  } catch (error) {
    if (!VolumeError.is(error, "precondition") && !VolumeError.is(error, "identity-mismatch")) throw error;
    const obstacle = await obstacleTo(deps, request);
    if (obstacle !== undefined) throw new VolumeError(error.kind, `${error.message}${obstacle}`);
    const { volumeId } = request;
    deps.notes?.warn("stages a volume anew for a pod", { volumeId, reason: error.message });
    await stageVolume(deps, fencing, request, context);
    return await asStaged(deps, request, context);
  }
}

/** Why it cannot be staged anew, to be added to what is wrong with its stage; undefined where nothing stands in the way. */
async function obstacleTo(
  deps: NodeDeps,
  { volumeId, stagingPath, publishContext, secrets = {} }: StageRequest,
): Promise<string | undefined> {
  if (publishContext.encrypted === "true" && Object.keys(secrets).length === 0) {
    return "; its PersistentVolume names no nodePublishSecretRef: it is staged anew once no pod of this node wants it";
  }
  const stagingState = await deps.stagingStore.find(volumeId);
  if (stagingState === undefined) return undefined;
  if (stagingState.intent.stagingPath !== stagingPath) return "";
  const [target] = await livePublished(deps, await deps.mounts.table(), stagingState);
  return target && "; delete the pods of this node that have it: then it is staged anew";
}

/** @throws {VolumeError} precondition, identity-mismatch where the stage is not as a publish needs it */
async function asStaged(deps: NodeDeps, request: StageRequest, context: CallContext): Promise<Staged> {
  const stagingState = getStaged(await deps.stagingStore.find(request.volumeId), request);
  const { kind, stagingPath } = stagingState.intent;
  const staged = kind === "block" ? stagingPath : await deps.paths.mountPoint(stagingPath);
  const device = await proveUnchanged(deps, stagingState, context);
  if (kind !== "block") await assertMounted(deps, stagingState, staged, context);
  return { stagingState, device, staged };
}

function getStaged(stagingState: StagingState | undefined, request: StageRequest): StagingState {
  const volume = `volume=${request.volumeId}`;
  // A mount that a killed process has left of a replay lets the device take writes.
  if (stagingState?.here.staged !== true || stagingState.here.replaying) {
    throw new VolumeError(
      "precondition",
      `Cannot publish the volume because it is not staged on this node: ${volume}`,
    );
  }
  if (stagingState.intent.stagingPath !== request.stagingPath) {
    throw new VolumeError(
      "precondition",
      `Cannot publish the volume because it is staged at another path: ${volume} staged at=${stagingState.intent.stagingPath}`,
    );
  }
  const epoch = epochText(request.publishContext);
  if (epoch !== "" && epoch !== stagingState.intent.epoch) {
    throw new VolumeError(
      "precondition",
      `Cannot publish the volume because it is staged in another epoch: ${volume} staged=${stagingState.intent.epoch} asked=${epoch}`,
    );
  }
  return stagingState;
}

/** Proves that the device is still the one that the volume was staged with. */
async function proveUnchanged(
  deps: NodeDeps,
  stagingState: StagingState,
  context: CallContext,
): Promise<ProvenDevice> {
  const { nqn } = stagingState.intent;
  const { map, used: found } = await readChain(deps, nqn, context);
  const isLayered = map?.kind === "multipath";
  // A device that is back does not change that, and neither a raw device nor an idle file system shows it.
  const isOver = isLayered && await isGivenUp(deps, nqn, context);
  if (found === undefined && isLayered && !isOver) {
    throw new VolumeError(
      "unavailable",
      `Cannot publish the volume because its device is away, and writes wait for it: ` +
        `volume=${stagingState.volumeId}; it will be retried when the router is back`,
    );
  }
  if (found === undefined || isOver || found.deviceNumber !== stagingState.here.device?.deviceNumber) {
    const what = isOver ? "given up" : found === undefined ? "gone" : "another one";
    throw new VolumeError(
      "precondition",
      `Cannot publish the volume because its device is ${what} since it was staged: ` +
        `volume=${stagingState.volumeId}`,
    );
  }
  return await proveStaged(deps, found, stagingState, context);
}

/**
 * Throws when the file system is not mounted, or the kernel has shut it down: such a volume must not look healthy to a
 * pod.
 */
async function assertMounted(
  deps: NodeDeps,
  stagingState: StagingState,
  staged: string,
  context: CallContext,
): Promise<void> {
  const entry = mountsAt(await deps.mounts.table(), staged).at(-1);
  const right = entry?.deviceNumber === stagingState.here.device?.deviceNumber &&
    entry?.filesystem === stagingState.intent.kind;
  const usable = right && isReadOnlyMount(entry) === stagingState.intent.readOnly;
  if (usable && await rootAnswers(deps, stagingState.intent.stagingPath, context)) return;
  if (entry !== undefined && !right) deps.events.occurred({ kind: "stale-mount", finder: "publish" });
  const state = entry === undefined
    ? "is not mounted"
    : usable
    ? "does not answer, perhaps after errors"
    : right
    ? "was turned read-only by the kernel, perhaps after errors"
    : "is another one";
  throw new VolumeError(
    "precondition",
    `Cannot publish the volume because its file system at the staging path ${state}: volume=${stagingState.volumeId} ` +
      `path=${stagingState.intent.stagingPath}`,
  );
}

/** The recorded targets that are still mounted; after a reboot, for example, none is. */
export async function livePublished(
  deps: NodeDeps,
  table: readonly MountEntry[],
  stagingState: StagingState,
): Promise<readonly PublishedTarget[]> {
  const live: PublishedTarget[] = [];
  for (const target of stagingState.here.published) {
    const mountPoint = await deps.paths.mountPoint(target.targetPath);
    if (mountsAt(table, mountPoint).length > 0) live.push(target);
  }
  return live;
}
