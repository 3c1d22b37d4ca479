// The image's root file system, kept in the cache: deploy/image/make-root.sh makes it in half a minute, from the
// network. Beside it is the digest of what was made, by which it is checked before it is used again.

import { createHash } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { hostOutput, isThere } from "../host_command.ts";

const FOLDER = fileURLToPath(new URL("../../deploy/image", import.meta.url));

/** The platforms with an image, by the names that Debian and OCI share. */
export const architectures = ["amd64", "arm64"] as const;

/** A platform with an image. */
export type Architecture = typeof architectures[number];

/**
 * The platform of that name.
 *
 * @throws {Error} when there is no image for it
 */
export function parseArchitecture(name: string): Architecture {
  const found = architectures.find((one) => one === name);
  if (found === undefined) {
    throw new Error(`There is no image for ${name}, only for ${architectures.join(", ")}`);
  }
  return found;
}

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
  await hostOutput(join(FOLDER, "make-root.sh"), [
    architecture,
    lock,
    root,
    join(cacheFolder(), "image-packages"),
  ]);
}

/**
 * The folder with the image's files, and an empty one in the executable's place; made if it does not exist.
 *
 * @param cache the folder that keeps it
 * @throws {Error} as `makeImageRoot()` does; when anything in the folder has changed since it was made
 */
export async function ensureImageRoot(
  architecture: Architecture,
  cache: string = cacheFolder(),
  make: typeof makeImageRoot = makeImageRoot,
): Promise<string> {
  const hash = createHash("sha256");
  for (const name of ["make-root.sh", "packages.lock"]) hash.update(Deno.readFileSync(join(FOLDER, name)));
  const folder = join(cache, `image-root-${architecture}-${hash.digest("hex").slice(0, 16)}`);
  const digestFile = `${folder}.sha256`;
  if (!isThere(folder) || !isThere(digestFile)) await makeInto(folder, digestFile, cache, architecture, make);
  if (treeDigest(folder) === await Deno.readTextFile(digestFile)) return folder;
  throw new Error(`${folder} is not as it was made: remove it, and ${digestFile}`);
}

/** A folder that is there already, without its digest, stays: it has to be the same. */
async function makeInto(
  folder: string,
  digestFile: string,
  cache: string,
  architecture: Architecture,
  make: typeof makeImageRoot,
): Promise<void> {
  await Deno.mkdir(cache, { recursive: true });
  const scratch = await Deno.makeTempDir({ dir: cache, prefix: "image-root-" });
  try {
    const [root, digest] = [join(scratch, "root"), join(scratch, "digest")];
    await make(architecture, root);
    await Deno.writeTextFile(digest, treeDigest(root));
    // Before the folder: another process then finds both, or makes them as well.
    await Deno.rename(digest, digestFile);
    if (!isThere(folder)) await Deno.rename(root, folder);
  } catch (error) {
    // Another process has made it meanwhile.
    if (!isThere(folder)) throw error;
  } finally {
    await Deno.remove(scratch, { recursive: true });
  }
}

/** A SHA-256 of everything in a folder: names, kinds, modes, targets of links, and contents. Times and owners do not count. */
function treeDigest(root: string): string {
  const hash = createHash("sha256");
  const add = (path: string) => {
    const names = [...Deno.readDirSync(join(root, path))].map(({ name }) => name).toSorted();
    for (const name of names) {
      const inside = join(path, name);
      const { isDirectory, isSymlink, isFile, mode } = Deno.lstatSync(join(root, inside));
      const content = isSymlink
        ? Deno.readLinkSync(join(root, inside))
        : isFile
        ? createHash("sha256").update(Deno.readFileSync(join(root, inside))).digest("hex")
        : "";
      hash.update(JSON.stringify([inside, { isDirectory, isSymlink, isFile }, mode, content]));
      if (isDirectory) add(inside);
    }
  };
  add("");
  return hash.digest("hex");
}

/** The project's folder for files that take long to make, shared by all work trees. */
export function cacheFolder(): string {
  const home = Deno.env.get("XDG_CACHE_HOME") || join(Deno.env.get("HOME") ?? "/root", ".cache");
  return join(home, "rds-csi");
}
