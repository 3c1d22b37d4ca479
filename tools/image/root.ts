// The image's root file system, kept in the cache: deploy/image/make-root.sh makes it in half a minute, from the
// network.

import { createHash } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { run } from "./run.ts";

const FOLDER = fileURLToPath(new URL("../../deploy/image", import.meta.url));

/** The platforms with an image, by the names that Debian and OCI share. */
export const architectures = ["amd64", "arm64"] as const;

/** A platform with an image. */
export type Architecture = typeof architectures[number];

/** One pinned package: a line of deploy/image/packages.lock. */
export interface Pin {
  readonly architecture: string;
  /** SHA-256 of the package's file, in hex. */
  readonly digest: string;
  /** Its path on a mirror. */
  readonly path: string;
}

/** The pinned packages of all platforms. */
export function readPins(): readonly Pin[] {
  return Deno.readTextFileSync(join(FOLDER, "packages.lock")).split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [architecture = "", digest = "", path = ""] = line.split(" ");
      return { architecture, digest, path };
    });
}

/**
 * Unpacks the packages into a new folder; packages that are not in the cache are downloaded.
 *
 * @throws {Error} when the mirror has dropped a package, or one differs from its pin
 */
export async function makeImageRoot(architecture: Architecture, root: string): Promise<void> {
  const lock = join(FOLDER, "packages.lock");
  await run(join(FOLDER, "make-root.sh"), [architecture, lock, root, join(cacheFolder(), "image-packages")]);
}

/**
 * The folder with the image's files, and an empty one in the executable's place; made if it does not exist.
 *
 * @throws {Error} as `makeImageRoot()` does
 */
export async function ensureImageRoot(architecture: Architecture): Promise<string> {
  const hash = createHash("sha256");
  for (const name of ["make-root.sh", "packages.lock"]) hash.update(Deno.readFileSync(join(FOLDER, name)));
  const cache = cacheFolder();
  const folder = join(cache, `image-root-${architecture}-${hash.digest("hex").slice(0, 16)}`);
  if (isFolder(folder)) return folder;
  await Deno.mkdir(cache, { recursive: true });
  const scratch = await Deno.makeTempDir({ dir: cache, prefix: "image-root-" });
  try {
    await makeImageRoot(architecture, join(scratch, "root"));
    await Deno.rename(join(scratch, "root"), folder);
  } catch (error) {
    // Another process has made it meanwhile.
    if (!isFolder(folder)) throw error;
  } finally {
    await Deno.remove(scratch, { recursive: true });
  }
  return folder;
}

/** The project's folder for files that take long to make, shared by all work trees. */
export function cacheFolder(): string {
  const home = Deno.env.get("XDG_CACHE_HOME") || join(Deno.env.get("HOME") ?? "/root", ".cache");
  return join(home, "rds-csi");
}

function isFolder(path: string): boolean {
  try {
    return Deno.statSync(path).isDirectory;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
