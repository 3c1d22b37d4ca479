import type { CallContext } from "../../volume/ports/system.ts";
import { lookForChange, notFound } from "../load.ts";
import { unpublishVolume } from "./unpublish.ts";
import type { ControllerWorld } from "../deps.ts";

/**
 * Takes a volume from every node that holds it, by a person's word that whoever gave it to them is gone. Its export is read
 * back as off before this returns. Three commands.
 *
 * @returns the ids of the nodes that held it
 * @throws {VolumeError} not-found; precondition when the volume is not this cluster's; unavailable
 */
export async function withdrawVolume(
  world: ControllerWorld,
  id: string,
  context: CallContext,
): Promise<readonly string[]> {
  const { volume } = await lookForChange(world, id, "withdraw", context);
  if (volume === undefined) throw notFound("withdraw", id);
  await unpublishVolume(world, id, "", context);
  return volume.record.holders.map(({ nodeId }) => nodeId);
}
