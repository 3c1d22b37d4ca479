import type { BlockDevices, CallContext, FoundDevice, Mounts } from "../../volume/ports/ports.ts";

/** What {@linkcode deviceUse} asks. */
export interface UseSeams {
  readonly devices: BlockDevices;
  readonly mounts: Mounts;
}

/** Who uses a device, or may be using it; undefined when provably nobody. */
export async function deviceUse(
  { devices, mounts }: UseSeams,
  device: FoundDevice,
  context: CallContext,
): Promise<string | undefined> {
  const name = device.path.slice(device.path.lastIndexOf("/") + 1);
  for (const entry of await mounts.table()) {
    if (entry.deviceNumber === device.deviceNumber) return `mounted at ${entry.mountPoint}`;
    // The node of the device, bound somewhere: `/nvme0n1`, or `/nvme0n1//deleted`.
    if (entry.root.split("/").includes(name)) return `bound at ${entry.mountPoint}`;
  }
  const holder = await devices.holder(device, context);
  if (holder !== undefined) return `open: ${holder.description}`;
  return await devices.isUnclaimed(device, context) ? undefined : "claimed: no exclusive open";
}
