import { VolumeError } from "../../volume/errors.ts";
import type { ProvenDevice } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { bindsOf } from "../mount_table.ts";
import type { NodeDeps } from "../deps.ts";

/**
 * Throws while the device below a volume's map or mapping is bound anywhere. Pods have only the map, so such a bind was
 * left by an earlier device of the same number: its user would write to this volume.
 *
 * @throws {VolumeError} in-use
 */
export async function refuseBoundBelow(
  deps: NodeDeps,
  volumeId: string,
  below: ProvenDevice,
  context: CallContext,
): Promise<void> {
  const [bind] = await bindsOf(deps.paths, await deps.mounts.table(), below, context);
  if (bind === undefined) return;
  throw new VolumeError(
    "in-use",
    `Cannot stage the volume because its device is bound elsewhere: volume=${volumeId} device=${below.path} ` +
      `path=${bind.mountPoint}`,
  );
}
