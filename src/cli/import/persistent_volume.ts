import { kindName, type VolumeKind } from "../../volume/model/capabilities.ts";

/** What a person chooses of a PersistentVolume. */
export interface VolumeObjectOptions {
  readonly name: string;
  /** As Kubernetes words it. */
  readonly accessMode: string;
  readonly readOnly: boolean;
  /** "" for none. */
  readonly storageClassName: string;
  readonly claim: { readonly namespace: string; readonly name: string } | undefined;
  readonly driverName: string;
}

/** What the volume itself says of it. */
export interface VolumeFacts {
  readonly volumeHandle: string;
  readonly sizeBytes: bigint;
  readonly kind: VolumeKind;
}

type Plain = string | boolean | readonly string[] | { readonly [key: string]: Plain };

/**
 * A PersistentVolume that a person applies. Nothing deletes its volume: the policy is Retain, and without the annotation
 * `pv.kubernetes.io/provisioned-by` no provisioner counts it as its own. Its capacity is exactly the disk's: of a larger one
 * the kubelet would have the node grow what cannot grow.
 */
export function persistentVolume(
  volume: VolumeFacts,
  options: VolumeObjectOptions,
): { [key: string]: Plain } {
  const { claim, readOnly } = options;
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: options.name },
    spec: {
      capacity: { storage: String(volume.sizeBytes) },
      volumeMode: volume.kind.access === "block" ? "Block" : "Filesystem",
      accessModes: [options.accessMode],
      persistentVolumeReclaimPolicy: "Retain",
      storageClassName: options.storageClassName,
      ...claim === undefined ? {} : { claimRef: { namespace: claim.namespace, name: claim.name } },
      csi: {
        driver: options.driverName,
        volumeHandle: volume.volumeHandle,
        ...volume.kind.access === "block" ? {} : { fsType: kindName(volume.kind) },
        ...readOnly ? { readOnly } : {},
      },
    },
  };
}

/** An object of texts as YAML. Every text is quoted, so that none is taken for a number. */
export function toYaml(value: { readonly [key: string]: Plain }, indent = ""): string {
  return Object.entries(value).map(([key, part]) => {
    if (typeof part === "string" || typeof part === "boolean") {
      return `${indent}${key}: ${JSON.stringify(part)}`;
    }
    if (Array.isArray(part)) {
      return [`${indent}${key}:`, ...part.map((item: string) => `${indent}  - ${JSON.stringify(item)}`)].join(
        "\n",
      );
    }
    return `${indent}${key}:\n${toYaml(part as { readonly [key: string]: Plain }, `${indent}  `)}`;
  }).join("\n");
}
