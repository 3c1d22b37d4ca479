import { type DeviceUser, isCertain } from "../../model/host/device_user.ts";
import type { BlockDevices, Connector, DeviceNode, Mounts, Paths } from "../../ports/node_ports.ts";
import type { CallContext } from "../../ports/system.ts";
import { bindsOf } from "./device_mounts.ts";

/** What a search for users reads. */
export interface UserPorts {
  readonly devices: BlockDevices;
  readonly mounts: Pick<Mounts, "table">;
  readonly paths: Pick<Paths, "info">;
}

/**
 * How far a search for users goes:
 *
 * - `shown`: this process's mount table, and what the kernel has made on top of the device
 * - `open`: also the processes of the host with a descriptor on it
 * - `claimed`: as `shown`, and an exclusive open; where that fails and nothing explains it, every search
 * - `unused`: as `open` and `claimed` together
 * - `everything`: every search, for people; no device is opened
 */
export type UserDepth = "shown" | "open" | "claimed" | "unused" | "everything";

/**
 * Who uses a device or a partition of it: the one answer to that question. It includes the volume's own mounts. A device
 * that the search finds in use has at least one user, if only one that says what was searched.
 *
 * @throws {VolumeError} unavailable when the mount table or /sys cannot be read; the reason of the call's end
 */
export async function usersOf(
  ports: UserPorts,
  device: DeviceNode,
  depth: UserDepth,
  context: CallContext,
): Promise<readonly DeviceUser[]> {
  const { devices } = ports;
  const nodes = [device, ...await devices.partitions(device)] as const;
  const shown = [...await mountsAndBinds(ports, nodes, context), ...await devices.layers(nodes)];
  if (depth === "shown") return shown;
  const open = depth === "claimed" ? [] : await devices.openBy(nodes, context);
  const found = [...shown, ...open];
  if (depth === "open") return found;
  if (depth === "everything") return [...found, ...(await devices.hiddenUsers(nodes, context)).users];
  if (found.some(claims) || await devices.isUnclaimed(device, context)) return found;
  context.signal.throwIfAborted();
  const holding = depth === "claimed" ? await devices.openBy(nodes, context) : open;
  return await explain(ports, nodes, [...shown, ...holding], context);
}

/** Who has a device that is certainly in use: a removal of it was refused. Opens no device. */
export async function keepersOf(
  ports: UserPorts,
  device: DeviceNode,
  context: CallContext,
): Promise<readonly [DeviceUser, ...DeviceUser[]]> {
  const found = await usersOf(ports, device, "open", context);
  return await explain(ports, [device, ...await ports.devices.partitions(device)], found, context);
}

/** Goes on where no certain user is known of a device that is in use. */
async function explain(
  ports: UserPorts,
  nodes: readonly [DeviceNode, ...DeviceNode[]],
  known: readonly DeviceUser[],
  context: CallContext,
): Promise<readonly [DeviceUser, ...DeviceUser[]]> {
  const { users, searched } = await ports.devices.hiddenUsers(nodes, context);
  const certain = [...known, ...users].filter(isCertain);
  const [first, ...others] = certain;
  // A bind of the device's node keeps nobody from opening it.
  if (first !== undefined && certain.some(({ by }) => by !== "bind")) return [first, ...others];
  const everywhere = `this node's mounts, layers, swap, ${searched}`;
  return [{ device: nodes[0].path, by: "claim", searched: everywhere }, ...known];
}

/** Whether such a user keeps others from opening the device exclusively. */
function claims({ by }: DeviceUser): boolean {
  return by === "mount" || by === "layer" || by === "swap";
}

async function mountsAndBinds(
  ports: UserPorts,
  nodes: readonly DeviceNode[],
  context: CallContext,
): Promise<readonly DeviceUser[]> {
  const table = await ports.mounts.table();
  const users: DeviceUser[] = [];
  for (const node of nodes) {
    const at = (by: "mount" | "bind") => ({ mountPoint }: { readonly mountPoint: string }) => ({
      device: node.path,
      by,
      at: mountPoint,
    });
    users.push(...table.filter((entry) => entry.deviceNumber === node.deviceNumber).map(at("mount")));
    users.push(...(await bindsOf(ports.paths, table, node, context)).map(at("bind")));
  }
  return users;
}

/**
 * Without those that may be there or not, where the kernel keeps the device while anything has it open: then the disconnect
 * itself is refused.
 */
export function withoutSpared(
  { connector }: { readonly connector: Connector },
  users: readonly DeviceUser[],
): readonly DeviceUser[] {
  return connector.sparesOpenDevices ? users.filter(isCertain) : users;
}
