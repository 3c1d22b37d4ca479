import type { CallContext } from "../volume/ports.ts";
import { assertStagingFree } from "./places.ts";
import { Stashes } from "./stashes.ts";
import { connectedNqns, recordedNumbers, tearDown } from "./teardown.ts";
import type { NodeWorld } from "./world.ts";

/** What NodeUnstageVolume asks for. */
export interface UnstageRequest {
  readonly volumeId: string;
  readonly stagingPath: string;
}

/**
 * Takes a volume off this node. It works from the state file, and without one from what is connected under the
 * volume's NQNs.
 *
 * @throws {VolumeError} in-use while anybody uses it, precondition when the state file is damaged or the staging path is
 * another volume's
 */
export async function unstageVolume(
  world: NodeWorld,
  request: UnstageRequest,
  context: CallContext,
): Promise<void> {
  const stashes = new Stashes(world);
  const stash = await stashes.find(request.volumeId);
  if (stash?.stagingPath !== request.stagingPath) {
    await assertStagingFree(stashes, request.volumeId, request.stagingPath);
  }
  const connected = await connectedNqns(world, request.volumeId, context);
  await tearDown(world, {
    volumeId: request.volumeId,
    nqns: unique([...(stash === undefined ? [] : [stash.nqn]), ...connected]),
    stagingPaths: unique([request.stagingPath, ...(stash === undefined ? [] : [stash.stagingPath])]),
    deviceNumbers: stash && recordedNumbers(stash),
    publishedPaths: stash?.published.map((target) => target.targetPath) ?? [],
    mayHoldDeviceFile: stash === undefined || stash.kind === "block",
    // Nothing may be published any more, however far this gets.
    begun: async () => stash && await stashes.write({ ...stash, staged: false }),
  }, context);
  await stashes.remove(request.volumeId);
}

function unique(values: readonly string[]): readonly string[] {
  return [...new Set(values)];
}
