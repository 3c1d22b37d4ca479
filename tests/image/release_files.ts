import { join } from "node:path";
import { version } from "../../src/cli/build_version.ts";
import type { Architecture } from "../../tools/image/root.ts";
import { projectRoot } from "../support/parts.ts";

/** Where `make release` and `make image` put what they make. */
export const releaseFolder = join(projectRoot, "dist/release");

/** The image's archive of a platform. */
export function archivePath(architecture: Architecture, folder = releaseFolder): string {
  return join(folder, `rds-csi-${version}-${architecture}.oci.tar`);
}
