// Builds an image as an archive: two layers, of which the lower one is the same for releases with the same packages.

import { join } from "node:path";
import * as oci from "./oci.ts";
import { hostOutput } from "../host_command.ts";

/** The parts of an image. */
export interface ImageParts extends oci.ImageFacts {
  /** The root file system. */
  readonly root: string;
  /** A folder with the other files, by their paths in the image. */
  readonly files: string;
}

/**
 * Writes the OCI archive of an image, which `docker load` accepts as well. The same parts give the same bytes.
 *
 * @param scratch a folder without `archive` and `layer.tar`
 */
export async function writeArchive(parts: ImageParts, out: string, scratch: string): Promise<void> {
  const archive = join(scratch, "archive");
  await Deno.mkdir(join(archive, "blobs/sha256"), { recursive: true });
  const add = async ({ descriptor, bytes }: oci.Blob) => {
    await Deno.writeFile(join(archive, oci.blobPath(descriptor)), bytes);
    return descriptor;
  };
  const layers: oci.Layer[] = [];
  const addLayer = async (what: string, folder: string) => {
    const tar = join(scratch, "layer.tar");
    await packFolder(folder, tar, parts.seconds);
    const diffId = await oci.sha256(await Deno.readFile(tar));
    await hostOutput("gzip", ["--no-name", tar]);
    const descriptor = await add(await oci.blobOf(await Deno.readFile(`${tar}.gz`)));
    await Deno.remove(`${tar}.gz`);
    layers.push({ what, diffId, descriptor });
  };
  await addLayer("deploy/image/make-root.sh", parts.root);
  await addLayer("rds-csi, its licences and the bill of materials", parts.files);
  const [config, manifest] = await oci.imageOf(parts, layers);
  await add(config);
  const name = `rds-csi:${parts.version}`;
  const index = await oci.indexOf([oci.named(await add(manifest), name, parts)]);
  await Deno.writeFile(join(archive, "index.json"), index.bytes);
  await Deno.writeTextFile(join(archive, "oci-layout"), oci.layoutText);
  const docker = oci.dockerManifest(name, config.descriptor, layers.map(({ descriptor }) => descriptor));
  await Deno.writeTextFile(join(archive, "manifest.json"), docker);
  await packFolder(archive, out, parts.seconds);
}

/** Packs the same bytes each time: in order of names, owned by root, with the time of the commit. */
async function packFolder(folder: string, out: string, seconds: number): Promise<void> {
  const names = (await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).toSorted();
  await hostOutput("tar", [
    ...["--create", `--file=${out}`, "--format=gnu", "--sort=name", `--mtime=@${seconds}`],
    ...["--owner=0", "--group=0", "--numeric-owner", `--directory=${folder}`, "--", ...names],
  ]);
}
