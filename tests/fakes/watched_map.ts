// A volume with a device-mapper map in use on a fake node, and the watch of its maps.
import { VolumeLocks } from "../../src/csi/server/call.ts";
import { LayerWatch } from "../../src/node/layer/layer_watch.ts";
import { block, FakeNode } from "./node_deps.ts";

/** The map of the volume. */
export const mapName = "rds-csi-pvc-1";
/** The parameters of a StorageClass with a device layer. */
export const layered = { volumeContext: { deviceLayer: "multipath", ctrlLossTmo: "600" } };

/** A node whose maps are watched. */
export interface Watched {
  readonly node: FakeNode;
  readonly locks: VolumeLocks;
  readonly watch: LayerWatch;
}

/** A watch of a process that has just started. */
export function watching(node: FakeNode): Watched {
  const locks = new VolumeLocks();
  const lock = { tryTake: (keys: readonly string[]) => locks.tryTake(keys, "watch") };
  return { node, locks, watch: new LayerWatch({ deps: node.deps, fencing: node.service.fencing, lock }) };
}

/** A published volume with a map, whose file system is recorded. */
export async function inUse(kind: "ext4" | "block" = "ext4"): Promise<Watched> {
  const node = new FakeNode();
  const capability = kind === "block" ? { capability: block } : {};
  // The kernel looked for partitions when the device appeared, before there was a file system.
  Object.assign(node.device, { uniqueId: "a".repeat(32), filesystemUuid: "u-1", readAs: "blank" });
  await node.stage({ ...layered, ...capability });
  await node.publish(capability);
  const watched = watching(node);
  await watched.watch.check();
  node.operations.length = 0;
  return watched;
}

/** Lets the kernel drop the device: the router came back and gave its export another identity. */
export function dropped(node: FakeNode): void {
  Object.assign(node.device, { path: "/dev/loop9", deviceNumber: "7:9", uniqueId: "b".repeat(32) });
  node.paths.nodes.set(node.device.path, { kind: "block", deviceNumber: "7:9" });
  node.showDevices();
}

/** Lets the kernel give up the connection, as newer kernels do at the first refusal. */
export function givenUp(node: FakeNode): void {
  node.device.connected = false;
  node.showDevices();
}
