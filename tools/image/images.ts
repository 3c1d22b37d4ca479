// The images of a release, from the executables of `make image/binaries`.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Licensed, noticesOf } from "../release/licenses.ts";
import type { Released } from "../release/sbom.ts";
import { writeArchive } from "./archive.ts";
import { imageBill } from "./bill.ts";
import { type Architecture, architectures, ensureImageRoot } from "./root.ts";
import { hostOutput } from "../host_command.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The documents' folder in an image. */
const DOCUMENTS = "usr/share/doc/rds-csi";

/** A release with the terms of its packages. */
export type LicensedRelease = Released & { readonly packages: readonly Licensed[] };

/**
 * Writes the archive of each platform and its bill of materials.
 *
 * @param name returns the path of a release's file from its ending
 * @throws {Error} when a pinned package is not available
 */
export async function writeImages(released: LicensedRelease, name: (rest: string) => string): Promise<void> {
  for (const architecture of architectures) {
    const root = await ensureImageRoot(architecture);
    const scratch = await Deno.makeTempDir({ prefix: "rds-csi-image-" });
    try {
      const files = join(scratch, "files");
      await layOutFiles(released, architecture, root, files);
      await Deno.copyFile(join(files, DOCUMENTS, "image.cdx.json"), name(`-${architecture}.image.cdx.json`));
      const { version, commit, seconds } = released;
      const parts = { version, commit, seconds, architecture, root, files };
      await writeArchive(parts, name(`-${architecture}.oci.tar`), scratch);
    } finally {
      await Deno.remove(scratch, { recursive: true });
    }
  }
}

/**
 * Puts into a new folder what an image has beside its root file system, by the paths in the image: the executable, its
 * licences, and the bill of materials.
 *
 * @throws {Error} when a package in the root was not pinned
 */
export async function layOutFiles(
  released: LicensedRelease,
  architecture: Architecture,
  root: string,
  folder: string,
): Promise<void> {
  const [programs, documents] = [join(folder, "usr/bin"), join(folder, DOCUMENTS)];
  for (const each of [programs, documents]) await Deno.mkdir(each, { recursive: true });
  await Deno.copyFile(join(ROOT, `dist/linux-${architecture}/rds-csi`), join(programs, "rds-csi"));
  await Deno.writeTextFile(join(documents, "licenses.txt"), noticesOf(released.packages));
  await Deno.writeTextFile(
    join(documents, "image.cdx.json"),
    await imageBill(released, architecture, root),
  );
  // With any umask.
  await hostOutput("chmod", ["-R", "u=rwX,go=rX", folder]);
}
