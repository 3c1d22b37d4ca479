import { VolumeError } from "../../volume/errors.ts";
import type { DeviceLayer } from "../../volume/model/device_layer.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { NodeDeps } from "../deps.ts";

/**
 * Whether a volume that is staged anew gets a map between its device and its user.
 *
 * @param wanted what its StorageClass says; undefined leaves it to the node's setting
 * @throws {VolumeError} precondition when it has to have one and this node can make none
 */
export async function choosesLayer(
  deps: NodeDeps,
  volumeId: string,
  wanted: DeviceLayer | undefined,
  context: CallContext,
): Promise<boolean> {
  const layer = wanted ?? deps.settings.deviceLayer ?? "none";
  if (layer === "none") return false;
  const obstacle = deps.maps === undefined ? "its connector has none" : await deps.maps.obstacle(context);
  if (obstacle === undefined) return true;
  if (layer === "multipath") {
    throw new VolumeError(
      "precondition",
      `Cannot stage the volume because its device layer cannot be made on this node: volume=${volumeId} ${obstacle}; ` +
        "with deviceLayer auto it is staged without",
    );
  }
  return false;
}
