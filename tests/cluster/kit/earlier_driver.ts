import { join } from "node:path";
import { hostOutput } from "../../guest/kit/host_command.ts";
import type { Cluster } from "./cluster.ts";
import { driverName } from "./driver.ts";
import { type Attachment, claimOf, paths, type VolumeMode } from "./objects.ts";
import { until } from "./waiting.ts";

const folder = "/storage-pool/metal-csi";
const nqnPrefix = "nqn.2000-02.com.mikrotik";
const port = 4420;

/** A volume as the earlier Go driver for the same routers makes it: one claim's, exported all the time. */
export interface EarlierVolume {
  /** Of the volume, of its disk, and of its PersistentVolume. */
  readonly id: string;
  readonly claim: string;
  readonly mode: VolumeMode;
  /** Under which it is exported, whoever has it. */
  readonly nqn: string;
}

/**
 * The earlier Go driver, which is replaced: what it has left on the router and in the API, and what its controller and its
 * attacher did when they were still there. Its nodes have been exchanged already, as the guide says.
 */
export class EarlierDriver {
  readonly #cluster: Cluster;
  readonly #signal: AbortSignal;

  constructor(cluster: Cluster, signal: AbortSignal) {
    this.#cluster = cluster;
    this.#signal = signal;
  }

  /** Makes a claim's volume of 1 GiB, with an ext4 in it if it is to be one. */
  async create(claim: string, mode: VolumeMode): Promise<EarlierVolume> {
    const id = `pvc-${crypto.randomUUID()}`;
    const volume = { id, claim, mode, nqn: `${nqnPrefix}:${id}` };
    await this.#makeDisk(volume);
    const { api } = this.#cluster;
    await api.create(paths.volumes, persistentVolumeOf(volume));
    const options = { mode, mebibytes: 1024, storageClass: "rds-ext4", volumeName: id };
    await api.create(paths.claims, claimOf(claim, options));
    return volume;
  }

  /** Attaches it where Kubernetes wants it: a node is told the address, the export's name and the file system. */
  async attach({ id, nqn, mode }: EarlierVolume): Promise<void> {
    const { api } = this.#cluster;
    const wanted = await until(`Kubernetes to want ${id} at a node`, async () => {
      const all = await api.list<Attachment>(paths.attachments);
      return all.find(({ spec }) => spec.source.persistentVolumeName === id);
    }, { limitSeconds: 60, signal: this.#signal });
    const path = `${paths.attachments}/${wanted.metadata.name}`;
    await api.patch(path, {
      metadata: {
        finalizers: [attacherFinalizer],
        annotations: { "csi.alpha.kubernetes.io/node-id": wanted.spec.nodeName },
      },
    });
    const attachmentMetadata = {
      nvme_address: "127.0.0.1",
      nvme_port: `${port}`,
      nvme_nqn: nqn,
      fs_type: mode === "Filesystem" ? "ext4" : "",
    };
    await api.patch(`${path}/status`, { status: { attached: true, attachmentMetadata } });
  }

  async #makeDisk({ id, mode, nqn }: EarlierVolume): Promise<void> {
    const { router } = this.#cluster;
    const disk = {
      slot: id,
      "file-path": `${folder}/${id}.img`,
      "file-size": 2 ** 30,
      "nvme-tcp-export": true,
      "nvme-tcp-server-port": port,
      "nvme-tcp-server-nqn": nqn,
    };
    await router.control("/disks", { method: "POST", body: JSON.stringify(disk) });
    if (mode === "Filesystem") {
      await hostOutput("mkfs.ext4", ["-q", "-F", join(router.backing, "exports", nqn)]);
    }
  }
}

/** By which the attacher keeps an object until its volume is detached. */
const attacherFinalizer = `external-attacher/${driverName.replaceAll(".", "-")}`;

function persistentVolumeOf({ id, claim, mode, nqn }: EarlierVolume): object {
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: {
      name: id,
      annotations: { "pv.kubernetes.io/provisioned-by": driverName },
      finalizers: [attacherFinalizer],
    },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      persistentVolumeReclaimPolicy: "Delete",
      storageClassName: "rds-ext4",
      volumeMode: mode,
      claimRef: { namespace: "default", name: claim },
      csi: {
        driver: driverName,
        volumeHandle: id,
        ...(mode === "Filesystem" ? { fsType: "ext4" } : {}),
        // As it writes them where its StorageClass says nothing.
        volumeAttributes: {
          rdsAddress: "127.0.0.1",
          nvmeAddress: "127.0.0.1",
          nvmePort: `${port}`,
          nqn,
          volumePath: `${folder}/${id}.img`,
          ctrlLossTmo: "-1",
          reconnectDelay: "5",
          keepAliveTmo: "0",
          migrationTimeoutSeconds: "300",
          "storage.kubernetes.io/csiProvisionerIdentity": `1700000000000-1-${driverName}`,
        },
      },
    },
  };
}
