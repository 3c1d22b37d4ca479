// Reads an OCI archive as an engine does: its documents, and its layers in order.

import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Descriptor } from "../../tools/image/oci.ts";
import { hostOutput, isThere } from "../../tools/host_command.ts";
import { archivePath } from "./release_files.ts";
import { makeScratch } from "../support/scratch.ts";

/** Whether `make release` or `make image` has made the archives. */
export const isImageMade = isThere(archivePath("amd64")) && isThere(archivePath("arm64"));
if (!isImageMade) ignoredBecause("the tests of the image need one: make release");

/** Prints why tests are ignored, as `make test` lists it. */
export function ignoredBecause(reason: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(`ignored: ${reason}\n`));
}

/** The fields of an image's configuration that the tests use. */
export interface ImageConfig {
  readonly architecture: string;
  readonly os: string;
  readonly created: string;
  readonly config: {
    readonly User: string;
    readonly Env: readonly string[];
    readonly Entrypoint: readonly string[];
    readonly Cmd: readonly string[];
    readonly Labels: Readonly<Record<string, string>>;
  };
  readonly rootfs: { readonly diff_ids: readonly string[] };
}

/** An archive, unpacked. */
export interface Unpacked {
  readonly folder: string;
  readonly index: { readonly manifests: readonly Descriptor[] };
  readonly manifest: { readonly config: Descriptor; readonly layers: readonly Descriptor[] };
  readonly config: ImageConfig;
  /** The root file system of a container. */
  readonly root: string;
}

/** Unpacks an archive of one image into a new folder. */
export async function unpackArchive(file: string, folder: string): Promise<Unpacked> {
  await Deno.mkdir(join(folder, "root"), { recursive: true });
  await hostOutput("tar", ["--extract", `--file=${file}`, `--directory=${folder}`]);
  const read = async (path: string) => JSON.parse(await Deno.readTextFile(join(folder, path)));
  const index = await read("index.json") as Unpacked["index"];
  const manifest = await read(blobPathOf(index.manifests[0]!)) as Unpacked["manifest"];
  const config = await read(blobPathOf(manifest.config)) as ImageConfig;
  const root = join(folder, "root");
  for (const layer of manifest.layers) {
    await hostOutput("tar", [
      ...["--extract", "--gzip", `--file=${join(folder, blobPathOf(layer))}`, `--directory=${root}`],
      ...["--same-owner", "--numeric-owner", "--preserve-permissions", "--keep-directory-symlink"],
    ]);
  }
  return { folder, index, manifest, config, root };
}

/** Returns every file below a root, with type, mode, owner and contents, to compare two images. */
export async function filesBelow(root: string): Promise<readonly string[]> {
  // The size of a directory depends on the file system.
  const format = "%P %y %m %U:%G %l\\n";
  const listed = await hostOutput("find", [root, "-mindepth", "1", "-printf", format]);
  return listed.trimEnd().split("\n").map((line) => {
    const [path = "", type] = line.split(" ");
    return type === "f" ? line + digestOf(join(root, path)) : line;
  }).toSorted();
}

/** The SHA-256 of a file, in hex. */
export function digestOf(file: string): string {
  return createHash("sha256").update(Deno.readFileSync(file)).digest("hex");
}

/** Returns the path in an archive of the blob that a descriptor names. */
export function blobPathOf({ digest }: Descriptor): string {
  return `blobs/${digest.replace(":", "/")}`;
}

/** Runs `use` with a scratch folder, which is removed afterwards. */
export async function withScratch(use: (folder: string) => Promise<void>): Promise<void> {
  await using scratch = await makeScratch();
  const folder = scratch.path;
  await use(folder);
}
