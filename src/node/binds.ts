import type { CallContext, FoundDevice, MountEntry } from "../volume/ports.ts";
import { nodeBindsOf } from "./mount_table.ts";
import type { NodeWorld } from "./world.ts";

/**
 * Where the device's node is bound. A stale bind, left by an earlier device of that name, counts when its number leads
 * to this device now; what cannot be told counts as well.
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
    if (info?.kind !== "block" || info.deviceNumber === device.deviceNumber) binds.push(bind);
  }
  return binds;
}
