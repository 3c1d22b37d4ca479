// Written here: the documents of the OCI's image format (https://github.com/opencontainers/image-spec, 1.0), which are
// five JSON objects, and the one of Docker's own. What makes images otherwise wants a daemon, or notes the time.

import type { Architecture } from "./root.ts";

const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const INDEX = "application/vnd.oci.image.index.v1+json";
const CONFIG = "application/vnd.oci.image.config.v1+json";
const LAYER = "application/vnd.oci.image.layer.v1.tar+gzip";

/** What a document says of bytes that lie elsewhere. */
export interface Descriptor {
  readonly mediaType: string;
  /** `sha256:` and 64 digits. */
  readonly digest: string;
  readonly size: number;
  readonly platform?: { readonly architecture: string; readonly os: string };
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Bytes by their digest, and how a document names them. */
export interface Blob {
  readonly descriptor: Descriptor;
  readonly bytes: Uint8Array;
}

/** A layer of an image: compressed bytes, and the digest of what they come from. */
export interface Layer extends Omit<Blob, "bytes"> {
  readonly diffId: string;
  /** What it is, for the image's history. */
  readonly what: string;
}

/** What an image says of itself. */
export interface ImageFacts {
  readonly version: string;
  readonly commit: string;
  /** When the commit was made, in seconds since the Unix epoch. */
  readonly seconds: number;
  readonly architecture: Architecture;
}

/** Names bytes by their digest. */
export async function blobOf(
  bytes: Uint8Array<ArrayBuffer>,
  mediaType: string = LAYER,
): Promise<Blob> {
  return { bytes, descriptor: { mediaType, digest: await sha256(bytes), size: bytes.length } };
}

/** The SHA-256 of bytes, as a descriptor has it. */
export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return `sha256:${new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex()}`;
}

/** What a container of the image runs, and as whom: deploy/image/Dockerfile says the same, and why. */
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
  return [config, await manifestOf(config.descriptor, layers.map(({ descriptor }) => descriptor))];
}

/** A manifest of a configuration and layers. */
export async function manifestOf(config: Descriptor, layers: readonly Descriptor[]): Promise<Blob> {
  return await jsonBlob(MANIFEST, { schemaVersion: 2, mediaType: MANIFEST, config, layers });
}

/** An index of manifests. */
export async function indexOf(manifests: readonly Descriptor[]): Promise<Blob> {
  return await jsonBlob(INDEX, { schemaVersion: 2, mediaType: INDEX, manifests });
}

/** What says of an archive that it is one of the OCI. */
export const layoutText = JSON.stringify({ imageLayoutVersion: "1.0.0" });

/** How an archive's index names the image: containerd imports it as `name`, skopeo copies it by the tag. */
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

/** Where an archive has these bytes. */
export function blobPath({ digest }: Descriptor): string {
  return `blobs/${digest.replace(":", "/")}`;
}

/** A document as bytes. */
export async function jsonBlob(mediaType: string, document: unknown): Promise<Blob> {
  return await blobOf(new TextEncoder().encode(JSON.stringify(document)), mediaType);
}
