import type { CallContext } from "../../volume/ports/system.ts";
import type { Fencing } from "../fencing/fencing.ts";
import { assertStagingFree } from "../publish/target_paths.ts";
import { connectedNqns } from "../connections/observe.ts";
import { tearDown } from "../connections/teardown.ts";
import type { NodeDeps } from "../deps.ts";

/** The fields of NodeUnstageVolume. */
export interface UnstageRequest {
  readonly volumeId: string;
  readonly stagingPath: string;
}

/**
 * Takes a volume off this node. It works from the state file; without one, from the connections under the volume's
 * NQNs. It first disconnects what is fenced, so it never waits for a connection that does not come back. What the next
 * stage must know of the volume's content stays, see {@linkcode StagingStore.end}.
 *
 * @throws {VolumeError} in-use while the volume is in use, precondition when the state file is damaged or the staging
 *   path is another volume's, unavailable while its target is away and may come back
 */
export async function unstageVolume(
  deps: NodeDeps,
  fencing: Fencing,
  request: UnstageRequest,
  context: CallContext,
): Promise<void> {
  const { stagingStore } = deps;
  const stagingState = await stagingStore.find(request.volumeId);
  if (stagingState?.intent.stagingPath !== request.stagingPath) {
    await assertStagingFree(stagingStore, request.volumeId, request.stagingPath);
  }
  const connected = await connectedNqns(deps, request.volumeId, context);
  const volume = {
    volumeId: request.volumeId,
    nqns: unique([...(stagingState === undefined ? [] : [stagingState.intent.nqn]), ...connected]),
    stagingPaths: unique([
      request.stagingPath,
      ...(stagingState === undefined ? [] : [stagingState.intent.stagingPath]),
    ]),
    stagingState,
  };
  await fencing.release(volume, context, { unstaging: true });
  await tearDown(deps, volume, context);
  if (stagingState === undefined) await stagingStore.remove(request.volumeId);
  else await stagingStore.end(stagingState);
}

function unique(values: readonly string[]): readonly string[] {
  return [...new Set(values)];
}
