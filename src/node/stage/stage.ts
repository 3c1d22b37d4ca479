import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { contentFor } from "../../volume/model/staging/content.ts";
import { type Intent, newState, type StagingState, withHere } from "../../volume/model/staging/state.ts";
import { usedBytes } from "../../volume/model/staging/intent.ts";
import { growthProblems } from "../../volume/rules/health/node_health.ts";
import { mountPointOf, mountsAt } from "../mount_table.ts";
import type { Fencing } from "../fencing/fencing.ts";
import { assertStagingFree } from "../publish/target_paths.ts";
import { stageDevice, type Staging } from "./stage_device.ts";
import { dropOlder, endLeft } from "./earlier_stage.ts";
import { raise } from "./raise.ts";
import { settledStage } from "./settled.ts";
import { withUndo } from "./undo.ts";
import { assertLayered, chooseLayer, parseWish, type StageRequest } from "./wish.ts";
import type { NodeDeps } from "../deps.ts";

/**
 * Brings a volume onto this node: state file, connect, find, prove, and then the file system or the device file. Steps
 * that are done already are verified and not repeated; a failure undoes what this call did. What was staged in another way
 * is begun anew, unless it is in use.
 *
 * @throws {VolumeError} precondition when its device may not be used as it is, or it was published to another machine;
 *   unavailable when anything of it is still on this node after a failure
 */
export async function stageVolume(
  deps: NodeDeps,
  fencing: Fencing,
  request: StageRequest,
  context: CallContext,
): Promise<void> {
  await settledStage(deps, request, context, () => stage(deps, fencing, request, context));
}

async function stage(
  deps: NodeDeps,
  fencing: Fencing,
  request: StageRequest,
  context: CallContext,
): Promise<void> {
  const wish = parseWish(deps, request);
  const { volumeId, publish } = wish;
  const wanted = await chooseLayer(deps, wish, context);
  const recorded = await dropOlder(deps, fencing, wish, wanted, context);
  assertLayered(wish, recorded?.intent ?? wanted);
  await withUndo(deps.clock, context, async (undo) => {
    const staging: Staging = { ...wish, deps, undo, context };
    if (recorded?.here.staged === false) {
      // After a final error nothing would ever be asked to take down what a stage has left that ended halfway.
      undo.add("take down what was left", (undoing) => endLeft(deps, fencing, recorded, undoing));
    }
    const begun = recorded ?? await remember(staging, await recall(deps, volumeId, wanted));
    const mountPoint = await ensureStagingFolder(staging, begun);
    const { raised, stagingState, release, lacksPath } = await raise({ ...staging, mountPoint }, begun);
    // `raise()` has not written the device: if this process ends now, an unstage finds what to take down by the NQN.
    const ready = await stageDevice({ ...staging, mountPoint, ...raised }, stagingState);
    context.signal.throwIfAborted();
    // Its router offers this epoch, so every other one is over.
    await deps.stagingStore.known.forget(volumeId, { but: publish.epoch });
    await deps.stagingStore.write(withHere(ready, { staged: true }));
    if (ready.here.notGrown !== recorded?.here.notGrown) {
      deps.events.occurred({ kind: "health", volumeId, problems: growthProblems(ready.here) });
    }
    await release();
    if (lacksPath) deps.pathWatch?.lacking();
  });
}

/**
 * The wanted state, with what this node knows since an earlier stage of the epoch.
 *
 * @throws {VolumeError} precondition when that is damaged, and the context does not forbid a format by itself
 */
async function recall(
  { stagingStore: { known: store } }: NodeDeps,
  volumeId: string,
  wanted: Intent,
): Promise<StagingState> {
  const known = await (wanted.mayFormat ? store.find(volumeId) : store.findUndamaged(volumeId));
  const unknown = newState(volumeId, wanted);
  if (known?.epoch !== wanted.epoch) return unknown;
  const content = contentFor(wanted, known.content);
  // Its device may have grown since the publish context was made.
  const grownBytes = (content.seenOn?.sizeBytes ?? 0n) - usedBytes(wanted);
  const namespaceBytes = wanted.namespaceBytes + (grownBytes > 0n ? grownBytes : 0n);
  return { ...unknown, intent: { ...wanted, namespaceBytes }, content };
}

/**
 * Writes the state file. After a failure it stays while a connection is left that this call has made, because unstaging goes
 * by it.
 */
async function remember(
  { deps, undo, context }: Staging,
  wanted: StagingState,
): Promise<StagingState> {
  const { stagingStore } = deps;
  const wasConnected = (await deps.connector.connected(context)).includes(wanted.intent.nqn);
  undo.add("forget the volume", async (undoing) => {
    const stagingState = await stagingStore.find(wanted.volumeId);
    const connected = await deps.connector.connected(undoing);
    if (stagingState !== undefined && (wasConnected || !connected.includes(stagingState.intent.nqn))) {
      await stagingStore.endFailed(stagingState);
    }
  });
  return await stagingStore.write(wanted);
}

/** Returns the staging path as the kernel writes it for a mount point. */
async function ensureStagingFolder(staging: Staging, stagingState: StagingState): Promise<string> {
  const { deps, undo, context } = staging;
  const { volumeId, intent: { stagingPath: path } } = stagingState;
  const [mountPoint] = await Promise.all([
    mountPointOf(deps, path),
    assertStagingFree(deps.stagingStore, volumeId, path),
  ]);
  const mounted = mountsAt(await deps.mounts.table(), mountPoint);
  if (mounted.length > 0) return mountPoint; // It is a folder. A stat would have to ask the file system that is mounted there.
  const info = await deps.paths.ownInfo(path, context);
  if (info?.kind === "directory") return mountPoint;
  if (info !== undefined) {
    throw new VolumeError(
      "precondition",
      `Cannot stage because the staging path is not a folder: path=${path}`,
    );
  }
  undo.add("remove the staging folder", () => deps.paths.removeEmptyFolder(path));
  await deps.paths.makeFolder(path, 0o750);
  return mountPoint;
}
