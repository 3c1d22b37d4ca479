// The images of a release, from the executables of `make image/binaries`.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Released } from "../release/sbom.ts";
import { writeArchive } from "./archive.ts";
import { imageBill } from "./bill.ts";
import { architectures, ensureImageRoot } from "./root.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Writes the archive of each platform and its bill of materials.
 *
 * @param name returns the path of a release's file from its ending
 * @throws {Error} when a pinned package is not available
 */
export async function writeImages(released: Released, name: (rest: string) => string): Promise<void> {
  for (const architecture of architectures) {
    const root = await ensureImageRoot(architecture);
    const bill = name(`-${architecture}.image.cdx.json`);
    await Deno.writeTextFile(bill, await imageBill(released, architecture, root));
    const executable = join(ROOT, `dist/linux-${architecture}/rds-csi`);
    const files = {
      "usr/bin/rds-csi": { from: executable, mode: 0o755 },
      "usr/share/doc/rds-csi/licenses.txt": { from: name(".licenses.txt"), mode: 0o644 },
      "usr/share/doc/rds-csi/image.cdx.json": { from: bill, mode: 0o644 },
    };
    const scratch = await Deno.makeTempDir({ prefix: "rds-csi-image-" });
    try {
      const { version, commit, seconds } = released;
      const parts = { version, commit, seconds, architecture, root, files };
      await writeArchive(parts, name(`-${architecture}.oci.tar`), scratch);
    } finally {
      await Deno.remove(scratch, { recursive: true });
    }
  }
}
