import { createHash } from "node:crypto";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { toolsFolder } from "../../cluster/kit/go_build.ts";
import type { Tools } from "../../cluster/kit/tools.ts";
import { downloadPackages } from "../../support/debian_archive.ts";
import { Guest } from "../kit/guest.ts";
import { hostOutput, isFile } from "../../../tools/host_command.ts";
import { guestImage } from "../kit/image.ts";
import { usualKernel } from "../kit/kernel.ts";
import { makeToolsDisk } from "../kit/tools_disk.ts";
import { packImages } from "./images.ts";
import { MachineRuntime } from "./runtime.ts";

/** Sparse: what is not written takes no room. */
export const rootBytes = 12 * 2 ** 30;

/** The name of the machine's disk. */
export const rootName = "root";

/** Debian's packages of what a node has and a guest has not, with the libraries of these. */
const packages = [
  ...["containerd", "runc", "libseccomp2", "containernetworking-plugins"],
  ...["nftables", "libnftables1", "libnftnl11", "libmnl0", "libxtables12", "libjansson4", "libgmp10"],
  ...["libedit2", "libbsd0", "libmd0", "libtinfo6"],
];

const cacheFolder = fileURLToPath(new URL("../../../.tools/machine", import.meta.url));

/** The files that say what is in a disk, whose change makes another one. */
const recipe = [
  ...["images.ts", "root_disk.ts", "runtime.ts", "../../cluster/kit/image.ts"],
  "../../../deploy/chart/values.yaml",
].map((path) => new URL(path, import.meta.url));

/** How long a disk that nothing has asked for is kept, in milliseconds: each takes 2 GB. */
const keptMs = 24 * 60 * 60_000;

/**
 * The root of a machine with the driver's image in it, as a file to be copied. What is not there is made: a root with all
 * else once for the same programs, and on it one for each image.
 *
 * @param archive of the driver's image
 */
export async function ensureRootDisk(
  tools: Tools,
  archive: string,
  say: (line: string) => void,
): Promise<string> {
  const hash = createHash("sha256").update(basename(dirname((await guestImage(usualKernel())).vmlinuxPath)));
  hash.update(await toolsFolder()).update(packages.join());
  for (const file of recipe) hash.update(await Deno.readFile(file));
  const base = await ensureDisk("base", hash.digest("hex"), say, (work) => makeBase(tools, work));
  const [digest = ""] = (await hostOutput("sha256sum", [archive])).split(" ");
  const key = createHash("sha256").update(basename(base)).update(digest).digest("hex");
  return await ensureDisk("driver", key, say, (work) => addImages(base, [archive], work));
}

/** A disk of the cache; where it is not there, `make` makes it in an empty folder. */
async function ensureDisk(
  kind: string,
  digest: string,
  say: (line: string) => void,
  make: (work: string) => Promise<string>,
): Promise<string> {
  const path = join(cacheFolder, `${kind}-${digest.slice(0, 12)}.disk`);
  if (!isFile(path)) {
    const started = performance.now();
    await Deno.mkdir(cacheFolder, { recursive: true });
    const work = await Deno.makeTempDir({ dir: cacheFolder, prefix: "build-" });
    try {
      await Deno.rename(await make(work), path);
    } finally {
      await Deno.remove(work, { recursive: true });
    }
    await removeUnused();
    say(`prepared the machine's disk: ${kind} in ${Math.round((performance.now() - started) / 1000)} s`);
  }
  // By this it is known to be in use.
  await Deno.utime(path, new Date(), new Date());
  return path;
}

async function removeUnused(): Promise<void> {
  for (const { name } of [...Deno.readDirSync(cacheFolder)].filter(({ name }) => name.endsWith(".disk"))) {
    const path = join(cacheFolder, name);
    const { mtime } = await Deno.stat(path);
    if (Date.now() - (mtime?.getTime() ?? 0) > keptMs) await Deno.remove(path);
  }
}

/** A root with a guest's own files, Debian's packages, and all images but the driver's. */
async function makeBase(tools: Tools, work: string): Promise<string> {
  const folder = join(work, "blank");
  await Deno.mkdir(folder);
  const files = { "packages.tar": await packPackages(work) };
  const guest = await Guest.start(folder, {
    disks: [{ name: rootName, sizeBytes: rootBytes }],
    toolsPath: await makeToolsDisk(work, files),
  });
  const disk = guest.disk(rootName);
  try {
    await guest.sh(
      `set -e
       mkfs.ext4 -q -m 0 ${disk}
       mount ${disk} /mnt
       for name in dev proc sys run tmp mnt opt; do mkdir /mnt/$name; done
       cp -a /init /usr /etc /var /root /bin /sbin /lib /lib64 /mnt
       tar -x -C /mnt -f /opt/tools/packages.tar
       mkdir -p /mnt/etc/containerd /mnt/etc/cni/net.d /mnt/etc/kubernetes /mnt/var/log /mnt/var/lib/kubelet
       umount /mnt`,
      { limitSeconds: 300 },
    );
  } finally {
    await guest.end();
  }
  return await addImages(join(folder, `${rootName}.disk`), await packImages(tools, work), work);
}

/** A copy of the root with these images in its container runtime. */
async function addImages(root: string, archives: readonly string[], work: string): Promise<string> {
  const folder = join(work, "images");
  await Deno.mkdir(folder);
  const files = Object.fromEntries(archives.map((path) => [basename(path), path]));
  const guest = await Guest.start(folder, {
    disks: [{ name: rootName, sizeBytes: rootBytes, copyOf: root }],
    root: rootName,
    toolsPath: await makeToolsDisk(folder, files),
    limitSeconds: 1800,
  });
  try {
    const runtime = new MachineRuntime(guest);
    await runtime.configure();
    await runtime.start();
    for (const name of Object.keys(files)) await runtime.importImage(`/opt/tools/${name}`);
    await runtime.stop();
    await guest.sh("rm -f /var/log/*.log && sync && mount -o remount,ro /");
  } finally {
    await guest.end();
  }
  return join(folder, `${rootName}.disk`);
}

/** Packs what Debian's packages hold, but for their pages, with all below /usr as in the guest. */
async function packPackages(work: string): Promise<string> {
  const [tree, path] = [join(work, "packages"), join(work, "packages.tar")];
  for (const file of await downloadPackages(join(work, "apt"), packages)) {
    await hostOutput("dpkg-deb", ["--extract", file, tree]);
  }
  await hostOutput("sh", [
    "-ec",
    `cd "$1"; rm -rf usr/share
     for part in bin sbin lib lib64; do
       [ ! -d $part ] || { mkdir -p usr/$part; cp -a $part/. usr/$part/; rm -r $part; }
     done
     tar -cf "$2" usr`,
    ...["sh", tree, path],
  ]);
  return path;
}
