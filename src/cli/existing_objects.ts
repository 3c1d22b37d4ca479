import type { ControllerDeps } from "../controller/deps.ts";
import type { CallContext } from "../volume/ports/system.ts";

/**
 * The volumes that have a PersistentVolume, with a text for people that says which. A second one under another name may be
 * bound to another claim, and the deletion of either claim deletes the data of both. Empty without a cluster to ask.
 *
 * @throws {VolumeError} unavailable when the cluster does not list all of them
 */
export async function readExistingObjects(
  { clusterView }: Pick<ControllerDeps, "clusterView">,
  context: CallContext,
): Promise<ReadonlyMap<string, string>> {
  if (clusterView === undefined) return new Map();
  const own = (await clusterView.volumes(context)).map(({ volumeId, name }) =>
    [volumeId, `the PersistentVolume ${name}`] as const
  );
  const others = [...await clusterView.othersHandles(context)].map((id) =>
    [id, "a PersistentVolume of another driver or router"] as const
  );
  return new Map([...others, ...own]);
}
