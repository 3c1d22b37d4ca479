import type { CallContext, FoundDevice, MountEntry } from "../../volume/ports/ports.ts";
import { isNodeOf, nodeBindsOf } from "../mount_table.ts";
import type { NodeWorld } from "../deps.ts";

/**
 * Where the device's node is bound. A stale bind, left by an earlier device of whatever name, counts when its number
 * leads to this device now; of a node of this name, what cannot be told counts as well.
 */
export async function bindsOf(
  world: NodeWorld,
  table: readonly MountEntry[],
  device: FoundDevice,
  context: CallContext,
): Promise<readonly MountEntry[]> {
  const binds: MountEntry[] = [];
  for (const bind of nodeBindsOf(table, device.path)) {
    const info = await world.paths.info(bind.mountPoint, context);
    const isIt = info?.kind === "block"
      ? info.deviceNumber === device.deviceNumber
      : isNodeOf(bind, device.path);
    if (isIt) binds.push(bind);
  }
  return binds;
}
