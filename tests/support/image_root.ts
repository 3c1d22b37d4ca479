// The image's root file system without a container engine: the packages of deploy/image/packages and what they depend
// on, unpacked beside each other. Kept in the cache, as it takes half a minute and a network.

import { join } from "node:path";
import { hostOutput } from "../guest/kit/host_command.ts";
import { DebianArchive, release } from "./debian_archive.ts";
import { projectRoot } from "./parts.ts";

/** What Debian has merged into /usr: packages of before write through these links. */
const MERGED = ["bin", "sbin", "lib", "lib64"];

/** What containers are given at these places; an engine makes them when it mounts something there. */
const MOUNT_POINTS = [
  "proc",
  "sys",
  "dev",
  "tmp",
  "csi",
  "etc/rds-csi",
  "var/lib/kubelet",
  "usr/lib/modules",
];

/** The packages that the image installs, by name. */
export function imagePackages(): readonly string[] {
  return Deno.readTextFileSync(join(projectRoot, "deploy/image/packages")).split("\n").filter((line) =>
    line !== ""
  );
}

/**
 * The folder that holds the image's files, and an empty one in the executable's place; made if it is not there yet.
 *
 * @throws {Error} when a package cannot be had or unpacked
 */
export async function ensureImageRoot(cache: string): Promise<string> {
  const packages = imagePackages();
  const contents = [Deno.build.arch, release, ...packages, ...MOUNT_POINTS].join("\n");
  const bytes = new TextEncoder().encode(contents);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex().slice(0, 16);
  const folder = join(cache, `image-root-${digest}`);
  if (await exists(folder)) return folder;
  await Deno.mkdir(cache, { recursive: true });
  const scratch = await Deno.makeTempDir({ dir: cache, prefix: "image-root-" });
  try {
    const archive = await DebianArchive.open(join(scratch, "apt"), release);
    const debs = await archive.downloadWhole(packages);
    const root = join(scratch, "root");
    await unpack(debs, root);
    await Deno.rename(root, folder);
    return folder;
  } finally {
    await Deno.remove(scratch, { recursive: true });
  }
}

async function unpack(debs: readonly string[], root: string): Promise<void> {
  await Deno.mkdir(join(root, "usr"), { recursive: true });
  for (const name of MERGED) {
    await Deno.mkdir(join(root, "usr", name));
    await Deno.symlink(`usr/${name}`, join(root, name));
  }
  for (const name of MOUNT_POINTS) await Deno.mkdir(join(root, name), { recursive: true });
  const script = 'dpkg-deb --fsys-tarfile "$1" | tar --extract --keep-directory-symlink --directory "$2"';
  for (const deb of debs) await hostOutput("sh", ["-c", script, "sh", deb, root]);
  await Deno.writeTextFile(join(root, "usr/bin/rds-csi"), ""); // For the executable to be mounted on.
}

async function exists(path: string): Promise<boolean> {
  try {
    return (await Deno.stat(path)).isDirectory;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
