import type { CsiClients } from "../../../../src/csi/server/client.ts";
import type { Guest } from "../../kit/guest.ts";
import { GuestVolume, type VolumeUse } from "../../kit/volume.ts";
import type { Stamping, Writer } from "../writers/writer.ts";

/** The node of the workloads' volumes. */
export const nodeId = "node-1";

/** A volume, and who writes to it. */
export interface Workload {
  readonly volume: GuestVolume;
  /** What it writes to. */
  readonly path: string;
  readonly writer: Writer;
}

/** The volume of a workload. */
export interface WorkloadOptions {
  readonly name: string;
  readonly use: Exclude<VolumeUse, "shared block">;
  readonly sizeBytes: number;
  /** Parameters of its StorageClass. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** A file of the guest that ends the writer. */
  readonly stop: string;
}

/** Makes the kubelet's folder a mount of its own, as a container sees it: whatever is mounted in it is there once. */
export async function mountKubeletFolder(guest: Guest): Promise<void> {
  await guest.sh(
    `mkdir -p /var/lib/kubelet && mount --bind /var/lib/kubelet /var/lib/kubelet
     mount --make-private /var/lib/kubelet && mount --make-shared /var/lib/kubelet`,
  );
}

/** Makes a volume, attaches it, and begins to write to it. */
export async function beginWork(
  guest: Guest,
  clients: CsiClients,
  stamping: Stamping,
  { name, use, sizeBytes, parameters, stop }: WorkloadOptions,
): Promise<Workload> {
  const volume = await GuestVolume.create(clients.controller, name, use, sizeBytes, parameters);
  await volume.publish(nodeId);
  await guest.sh(`mkdir -p $(dirname ${volume.staging}) $(dirname ${volume.target})`);
  await volume.attach(clients.node, nodeId);
  const path = use === "block" ? volume.target : `${volume.target}/data`;
  if (use !== "block") await guest.sh(`dd if=/dev/zero of=${path} bs=64k count=8 conv=fsync status=none`);
  const writer = await stamping.verify(guest, path, use, stop);
  await writer.progresses();
  return { volume, path, writer };
}
