import { listVolumes } from "../../src/controller/volumes/read.ts";
import type { ControllerDeps } from "../../src/controller/deps.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import { publishedNodeIds } from "../../src/volume/rules/publish.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import type { ClusterObjects } from "./cluster_objects.ts";

/** An attachment that the list of volumes does not confirm. */
export interface Unconfirmed {
  readonly volumeId: string;
  readonly nodeName: string;
  readonly verb: "publish" | "unpublish";
}

/** What a list of volumes says beside what is so. */
export interface Resync {
  readonly unconfirmed: readonly Unconfirmed[];
  /** Volumes that are listed as on a node. */
  readonly listed: readonly string[];
}

/**
 * Lists the volumes, and compares the attachments with that, as an attacher does: it attaches again what is not listed on its
 * node. Undefined when there is no list.
 */
export async function resync(
  deps: ControllerDeps,
  objects: ClusterObjects,
  context: CallContext,
): Promise<Resync | undefined> {
  try {
    const volumes = await listVolumes(deps, context);
    const nodesOf = new Map(volumes.map((volume) => [volume.stored.id, publishedNodeIds(volume)]));
    const unconfirmed = objects.complete()
      .map(({ volumeId, nodeName, deleting }): Unconfirmed => ({
        volumeId,
        nodeName,
        verb: deleting ? "unpublish" : "publish",
      }))
      .filter(({ volumeId, nodeName, verb }) =>
        (nodesOf.get(volumeId)?.includes(nodeName) ?? false) === (verb === "unpublish")
      );
    return { unconfirmed, listed: [...nodesOf].filter(([, nodes]) => nodes.length > 0).map(([id]) => id) };
  } catch (error) {
    if (VolumeError.is(error)) return undefined;
    throw error;
  }
}
