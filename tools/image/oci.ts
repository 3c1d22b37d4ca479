// The documents of the OCI image format (https://github.com/opencontainers/image-spec, 1.0), which are five JSON
// objects, and Docker's own. They are written here because other tools need a daemon, or record the time.

import type { Architecture } from "./root.ts";

const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const INDEX = "application/vnd.oci.image.index.v1+json";
const CONFIG = "application/vnd.oci.image.config.v1+json";
const LAYER = "application/vnd.oci.image.layer.v1.tar+gzip";

/** A document's reference to bytes elsewhere. */
export interface Descriptor {
  readonly mediaType: string;
  /** `sha256:` and 64 digits. */
  readonly digest: string;
  readonly size: number;
  readonly platform?: { readonly architecture: string; readonly os: string };
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Bytes with their digest, in the form of a document's reference. */
export interface Blob {
  readonly descriptor: Descriptor;
  readonly bytes: Uint8Array;
}

/** A layer of an image: compressed bytes, and the digest of the uncompressed ones. */
export interface Layer extends Omit<Blob, "bytes"> {
  readonly diffId: string;
  /** Its purpose, for the image's history. */
  readonly what: string;
}

/** The facts about an image. */
export interface ImageFacts {
  readonly version: string;
  readonly commit: string;
  /** The time of the commit, in seconds since the Unix epoch. */
  readonly seconds: number;
  readonly architecture: Architecture;
}

/** Makes the reference to bytes. */
export async function blobOf(
  bytes: Uint8Array<ArrayBuffer>,
  mediaType: string = LAYER,
): Promise<Blob> {
  return { bytes, descriptor: { mediaType, digest: await sha256(bytes), size: bytes.length } };
}

/** The SHA-256 of bytes in a descriptor's form. */
export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return `sha256:${new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex()}`;
}

/** The program and the user of a container: the same as in deploy/image/Dockerfile, which gives the reasons. */
export const containerConfig = {
  User: "65532:65532",
  Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
  Entrypoint: ["/usr/bin/rds-csi"],
  Cmd: ["serve"],
} as const;

/** The labels of an image. */
export function labelsOf(
  { version, commit }: Pick<ImageFacts, "version" | "commit">,
): Record<string, string> {
  return {
    "org.opencontainers.image.title": "rds-csi",
    "org.opencontainers.image.description":
      "CSI driver for volumes on a MikroTik router with ROSE storage, over NVMe/TCP",
    "org.opencontainers.image.licenses": "Apache-2.0",
    "org.opencontainers.image.version": version,
    "org.opencontainers.image.revision": commit,
  };
}

/** The configuration and the manifest of an image. */
export async function imageOf(facts: ImageFacts, layers: readonly Layer[]): Promise<readonly [Blob, Blob]> {
  const created = new Date(facts.seconds * 1000).toISOString();
  const config = await jsonBlob(CONFIG, {
    created,
    architecture: facts.architecture,
    os: "linux",
    config: { ...containerConfig, Labels: labelsOf(facts) },
    rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(({ what }) => ({ created, created_by: what })),
  });
  const described = layers.map(({ descriptor }) => descriptor);
  const manifest = { schemaVersion: 2, mediaType: MANIFEST, config: config.descriptor, layers: described };
  return [config, await jsonBlob(MANIFEST, manifest)];
}

/** An index of manifests. */
export async function indexOf(manifests: readonly Descriptor[]): Promise<Blob> {
  return await jsonBlob(INDEX, { schemaVersion: 2, mediaType: INDEX, manifests });
}

/** The file that marks an archive as one of the OCI. */
export const layoutText = JSON.stringify({ imageLayoutVersion: "1.0.0" });

/** The image's name in an archive's index: containerd imports it as `name`, skopeo copies it by the tag. */
export function named(descriptor: Descriptor, name: string, facts: ImageFacts): Descriptor {
  return {
    ...descriptor,
    platform: { architecture: facts.architecture, os: "linux" },
    annotations: {
      "io.containerd.image.name": `docker.io/library/${name}`,
      "org.opencontainers.image.ref.name": facts.version,
    },
  };
}

/** The manifest.json that `docker load` reads before Docker 25. */
export function dockerManifest(name: string, config: Descriptor, layers: readonly Descriptor[]): string {
  return JSON.stringify([
    { Config: blobPath(config), RepoTags: [name], Layers: layers.map(blobPath) },
  ]);
}

/** The path of these bytes in an archive. */
export function blobPath({ digest }: Descriptor): string {
  return `blobs/${digest.replace(":", "/")}`;
}

/** A document as bytes. */
async function jsonBlob(mediaType: string, document: unknown): Promise<Blob> {
  return await blobOf(new TextEncoder().encode(JSON.stringify(document)), mediaType);
}
