import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { allToolPaths } from "../../../src/host/tools.ts";
import { cpioArchive } from "./cpio.ts";
import { findProgram, isFile } from "./host_command.ts";
import { guestPrograms } from "./host_needs.ts";
import { unpackKernel } from "./kernel.ts";
import { downloadKernel, type KernelName } from "./kernel_package.ts";
import { RootTree } from "./root_tree.ts";

/** What a guest boots. */
export interface GuestImage {
  readonly kernel: KernelName;
  /** As `uname -r` says in the guest. */
  readonly version: string;
  readonly vmlinuxPath: string;
  readonly initramfsPath: string;
}

const kitFolder = fileURLToPath(new URL(".", import.meta.url));
const imageFolder = fileURLToPath(new URL("../image", import.meta.url));
const cacheFolder = fileURLToPath(new URL("../../../.tools/guest", import.meta.url));

/** Modules that a guest has, to be loaded when it asks for them; with those that they need. */
const modules = [
  ..."virtio_pci virtio_net virtio_blk 9p 9pnet_virtio configfs overlay veth bridge dummy nf_tables".split(
    " ",
  ),
  ..."loop dm-mod dm-flakey dm-delay dm-snapshot brd ext4 xfs btrfs crc32c-intel crct10dif-pclmul".split(" "),
  ..."nvme nvme-core nvme-fabrics nvme-tcp nvmet nvmet-tcp nbd sch_netem".split(" "),
];

/** Files of the host that programs read. */
const settings = ["/etc/mke2fs.conf", "/etc/services", "/etc/protocols", "/etc/nsswitch.conf"];

/** The parts of the kit that make an image, whose change makes another one. */
const recipe = ["cpio", "host_needs", "image", "kernel", "kernel_package", "root_tree"].map((name) =>
  `${name}.ts`
);

/** How long an image that nothing has asked for is kept, in milliseconds. */
const keptMs = 7 * 24 * 60 * 60_000;

/** Builds what a guest boots, unless it was built before from the same kit and the same programs; needs no root. */
export async function guestImage(
  kernel: KernelName,
  report: (line: string) => void = () => {},
): Promise<GuestImage> {
  const folder = join(cacheFolder, `${kernel}-${await digest(kernel)}`);
  if (!isFile(join(folder, "version"))) await build(kernel, folder, report);
  // By this it is known to be in use.
  await Deno.utime(join(folder, "version"), new Date(), new Date());
  const version = await Deno.readTextFile(join(folder, "version"));
  return {
    kernel,
    version,
    vmlinuxPath: join(folder, "vmlinux"),
    initramfsPath: join(folder, "initramfs.cpio"),
  };
}

function programs(): string[] {
  const names = [
    ...guestPrograms.map(([name]) => name),
    ...allToolPaths.map((path) => path.replace(/.*\//, "")),
  ];
  return [...new Set(names)].filter((name) => name !== "busybox").sort();
}

/** What the image is made of, but for the kernel: the newest one counts when there is none yet. */
async function digest(kernel: KernelName): Promise<string> {
  const hash = createHash("sha256").update(kernel);
  for (const name of recipe) hash.update(await Deno.readFile(join(kitFolder, name)));
  for (const name of ["init", "agent"]) hash.update(await Deno.readFile(join(imageFolder, name)));
  for (const name of [...programs(), "busybox"]) {
    const path = findProgram(name);
    const { size, mtime } = path === undefined ? { size: 0, mtime: null } : await Deno.stat(path);
    hash.update(`${path} ${size} ${mtime?.getTime()}\n`);
  }
  return hash.digest("hex").slice(0, 12);
}

async function build(kernel: KernelName, folder: string, report: (line: string) => void): Promise<void> {
  const started = performance.now();
  await Deno.mkdir(dirname(folder), { recursive: true });
  const work = await Deno.makeTempDir({ dir: dirname(folder), prefix: "build-" });
  try {
    const unpacked = await unpackKernel(await downloadKernel(kernel, work), modules, work);
    const tree = new RootTree();
    await tree.programs(programs());
    await tree.libraries();
    tree.link("usr/bin/sh", "dash");
    await tree.busybox();
    for (const path of settings.filter(isFile)) await tree.file(path);
    tree.kernel(unpacked);
    await tree.file(join(imageFolder, "init"), "/init");
    await tree.file(join(imageFolder, "agent"), "/usr/lib/guest/agent");
    const done = join(work, "done");
    await Deno.mkdir(done);
    await Deno.writeFile(join(done, "vmlinux"), unpacked.vmlinux);
    await Deno.writeFile(join(done, "initramfs.cpio"), joined(cpioArchive(tree.entries())));
    await Deno.writeTextFile(join(done, "version"), unpacked.version);
    await rename(done, folder);
    await removeUnused(dirname(folder));
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    report(
      `built the guest's image: kernel=${unpacked.version} modules=${unpacked.modules.size} in ${seconds} s`,
    );
  } finally {
    await Deno.remove(work, { recursive: true });
  }
}

/** Whoever builds the same at the same time builds an equal one. */
async function rename(from: string, to: string): Promise<void> {
  try {
    await Deno.rename(from, to);
  } catch (error) {
    if (!isFile(join(to, "version"))) throw error;
  }
}

/** Every change of the kit makes another image, of 150 MB. */
async function removeUnused(cache: string): Promise<void> {
  for (const { name } of [...Deno.readDirSync(cache)]) {
    const path = join(cache, name, "version");
    if (!isFile(path)) continue;
    const { mtime } = await Deno.stat(path);
    const unusedMs = Date.now() - (mtime?.getTime() ?? 0);
    if (unusedMs > keptMs) await Deno.remove(join(cache, name), { recursive: true });
  }
}

function joined(parts: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  return ReadableStream.from(parts.filter((part) => part.length > 0));
}
