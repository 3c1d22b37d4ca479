import { withDeadline } from "../../async/deadline.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { DeviceLayer } from "../../volume/model/device_layer.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { NodeDeps } from "../deps.ts";

/** How long the kernel may take to load a module, in milliseconds. */
const obstacleMs = 10_000;

/** Reports at the start of a node service that its volumes are staged without the layer that its setting asks for. */
export async function reportMissingLayer({ maps, clock, notes, settings }: NodeDeps): Promise<void> {
  const setting = settings.deviceLayer ?? "none";
  if (maps === undefined || setting === "none") return;
  const whole = { requestId: "layer", signal: new AbortController().signal };
  const obstacle = withDeadline(
    clock,
    whole,
    obstacleMs,
    "look for the device layer",
    (on) => maps.obstacle(on),
  );
  const why = await obstacle.catch((error) => String(error));
  if (why !== undefined) notes?.warn("this node has no device layer", { setting, why });
}

/**
 * Whether a newly staged volume gets a map between its device and its users.
 *
 * @param wanted the choice of its StorageClass; undefined leaves it to the node's setting
 * @throws {VolumeError} precondition when the volume must have a map and this node cannot make one
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
        "with deviceLayer auto the node stages it without a device layer",
    );
  }
  return false;
}
