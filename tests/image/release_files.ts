import { join } from "node:path";
import { version } from "../../src/cli/build_version.ts";
import type { Architecture } from "../../tools/image/root.ts";
import { projectRoot } from "../support/parts.ts";

/** The folder of the results of `make release` and `make image`. */
export const releaseFolder = join(projectRoot, "dist/release");

/** Returns the path of the image's archive for a platform. */
export function archivePath(architecture: Architecture, folder = releaseFolder): string {
  return join(folder, `rds-csi-${version}-${architecture}.oci.tar`);
}
