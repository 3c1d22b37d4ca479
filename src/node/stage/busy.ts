import { VolumeError } from "../../volume/errors.ts";
import type { ProvenDevice } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { NodeDeps } from "../deps.ts";

/**
 * Throws while a mkfs of an earlier process of this driver may still run: it has the device open, and claimed.
 *
 * @param seenFree whether no process was seen to have it open a moment ago: a mkfs that outlived its process had begun long
 *   before this call
 * @throws {VolumeError} busy
 */
export async function refuseWhileBusy(
  deps: NodeDeps,
  device: ProvenDevice,
  context: CallContext,
  seenFree = false,
): Promise<void> {
  const holder = seenFree ? undefined : await deps.devices.holder(device, context);
  const unclaimed = await deps.devices.isUnclaimed(device, context);
  context.signal.throwIfAborted();
  if (unclaimed && holder?.certain !== true) return;
  deps.events.occurred({ kind: "format-refused", reason: "in-use" });
  throw new VolumeError(
    "busy",
    `Cannot format the device because it is in use, perhaps by an earlier attempt: device=${device.path} ` +
      `holder=${holder?.description ?? "unknown"}`,
  );
}
