import { isReadOnlyDevice, partitionsOf } from "../../filesystem/contents.ts";
import type { KernelFiles } from "../../host/kernel_files.ts";
import { bindsOf, mountsOf } from "../../node/mount_table.ts";
import type { NodeWorld } from "../../node/deps.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { FoundDevice } from "../../volume/ports/node_ports.ts";
import { assertNotStaged, connectedNqn, type Subject } from "./subject.ts";

/**
 * Ends a connection that nobody uses; answers its NQN. Nothing is flushed where the device takes no writes, and so has
 * none waiting.
 *
 * @throws {VolumeError} not-found when it is not connected here; in-use when it is staged, mounted, bound or open;
 * unavailable when it is not gone afterwards
 */
export async function detachVolume(
  world: NodeWorld,
  files: KernelFiles,
  subject: Subject,
  context: CallContext,
): Promise<string> {
  const { connector } = world;
  const nqn = await connectedNqn(world, subject, context);
  await assertNotStaged(world, "detach", subject.volumeId);
  const device = await connector.find(nqn, context);
  if (device !== undefined) await assertUnused(world, files, device, context);
  await assertNotStaged(world, "detach", subject.volumeId);
  context.signal.throwIfAborted();
  const nothingWaits = device !== undefined && isReadOnlyDevice(files, device) === true;
  await (nothingWaits ? connector.cutOff(nqn, context) : connector.disconnect(nqn, context));
  if (!(await connector.connected(context)).includes(nqn)) return nqn;
  throw new VolumeError(
    "unavailable",
    `Cannot call the volume detached as it is still connected: nqn=${nqn}`,
  );
}

async function assertUnused(
  world: NodeWorld,
  files: KernelFiles,
  device: FoundDevice,
  context: CallContext,
): Promise<void> {
  const nodes = [device, ...partitionsOf(files, device).map((partition) => ({ ...device, ...partition }))];
  const table = await world.mounts.table();
  const [mount] = mountsOf(table, new Set(nodes.map(({ deviceNumber }) => deviceNumber)));
  if (mount !== undefined) throw inUse(device, `it is mounted at ${mount.mountPoint}`);
  for (const node of nodes) {
    const [bind] = await bindsOf(world, table, node, context);
    if (bind !== undefined) throw inUse(node, `it is bound at ${bind.mountPoint}`);
    const holder = await world.devices.holder(node, context);
    const spared = holder?.certain === false && world.connector.sparesOpenDevices;
    if (holder !== undefined && !spared) throw inUse(node, `it is open: ${holder.description}`);
  }
  if (await world.devices.isUnclaimed(device, context)) return;
  context.signal.throwIfAborted();
  throw inUse(device, "it cannot be opened exclusively: it is mounted in a container, or mapped");
}

function inUse({ path, nqn }: FoundDevice, why: string): VolumeError {
  return new VolumeError("in-use", `Cannot detach the volume as ${why}: device=${path} nqn=${nqn}`);
}
