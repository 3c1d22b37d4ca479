// The image's root file system without a container engine: the packages of deploy/image/packages and what they depend
// on, unpacked beside each other. Kept in the cache, as it takes half a minute and a network.

import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Longest that apt may take to ask and download. */
const LIMIT_MS = 5 * 60_000;

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
  return Deno.readTextFileSync(join(ROOT, "deploy/image/packages")).split("\n").filter((line) => line !== "");
}

/**
 * The folder that holds the image's files, and an empty one in the executable's place; made if it is not there yet.
 *
 * @throws {Error} when a package cannot be had or unpacked
 */
export async function ensureImageRoot(cache: string): Promise<string> {
  const packages = imagePackages();
  const release = Deno.readTextFileSync("/etc/os-release");
  const bytes = new TextEncoder().encode([Deno.build.arch, release, ...packages, ...MOUNT_POINTS].join("\n"));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex().slice(0, 16);
  const folder = join(cache, `image-root-${digest}`);
  if (await exists(folder)) return folder;
  await Deno.mkdir(cache, { recursive: true });
  const scratch = await Deno.makeTempDir({ dir: cache, prefix: "image-root-" });
  try {
    const debs = await download(packages, join(scratch, "apt"));
    const root = join(scratch, "root");
    await unpack(debs, root);
    await Deno.rename(root, folder);
    return folder;
  } finally {
    await Deno.remove(scratch, { recursive: true });
  }
}

/** With an empty list of what is installed, apt has to get everything that is needed. */
async function download(packages: readonly string[], folder: string): Promise<string[]> {
  for (const path of ["state/lists/partial", "cache/archives/partial"]) {
    await Deno.mkdir(join(folder, path), { recursive: true });
  }
  await Deno.writeTextFile(join(folder, "status"), "");
  const options = {
    "Dir::State": join(folder, "state"),
    "Dir::State::status": join(folder, "status"),
    "Dir::Cache": join(folder, "cache"),
    "APT::Sandbox::User": "root",
    "APT::Install-Recommends": "false",
  };
  const flags = Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  await run("apt-get", [...flags, "-qq", "update"]);
  await run("apt-get", [...flags, "-qq", "--yes", "--download-only", "install", ...packages]);
  const archives = join(folder, "cache/archives");
  return [...Deno.readDirSync(archives)].filter(({ name }) => name.endsWith(".deb"))
    .map(({ name }) => join(archives, name)).toSorted();
}

async function unpack(debs: readonly string[], root: string): Promise<void> {
  await Deno.mkdir(join(root, "usr"), { recursive: true });
  for (const name of MERGED) {
    await Deno.mkdir(join(root, "usr", name));
    await Deno.symlink(`usr/${name}`, join(root, name));
  }
  for (const name of MOUNT_POINTS) await Deno.mkdir(join(root, name), { recursive: true });
  const script = 'dpkg-deb --fsys-tarfile "$1" | tar --extract --keep-directory-symlink --directory "$2"';
  for (const deb of debs) await run("sh", ["-c", script, "sh", deb, root]);
  await Deno.writeTextFile(join(root, "usr/bin/rds-csi"), ""); // For the executable to be mounted on.
}

async function run(program: string, args: readonly string[]): Promise<void> {
  const { success, stdout, stderr } = await new Deno.Command(program, {
    args: [...args],
    stdin: "null",
    signal: AbortSignal.timeout(LIMIT_MS),
  }).output();
  if (success) return;
  const decoder = new TextDecoder();
  throw new Error(`${program} failed:\n${decoder.decode(stdout)}${decoder.decode(stderr)}`);
}

async function exists(path: string): Promise<boolean> {
  try {
    return (await Deno.stat(path)).isDirectory;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
