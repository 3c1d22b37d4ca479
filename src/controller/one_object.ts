import { VolumeError } from "../volume/errors.ts";
import type { ClusterView } from "../volume/ports/cluster_view.ts";
import type { CallContext } from "../volume/ports/system.ts";

/**
 * Throws if several PersistentVolumes name a volume that is to be deleted: the deletion of one claim must not take the data of
 * another. OK without a cluster.
 *
 * @param volumeId as `clusterView` knows it
 * @throws {VolumeError} precondition, naming them; unavailable when the cluster never told which there are
 */
export async function assertOneObject(
  { clusterView }: { readonly clusterView?: Pick<ClusterView, "objectsOf"> | undefined },
  volumeId: string,
  context: CallContext,
): Promise<void> {
  const names = await clusterView?.objectsOf(volumeId, context) ?? [];
  if (names.length < 2) return;
  throw new VolumeError(
    "precondition",
    `Cannot delete the volume because several PersistentVolumes name it: volume=${volumeId} ` +
      `persistentvolumes=${names.join(", ")}; set the reclaim policy of all but one to Retain, ` +
      "and delete those objects: that keeps the data for the one that is left",
  );
}
