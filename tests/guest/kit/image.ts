import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { allToolPaths } from "../../../src/host/tools.ts";
import { cpioArchive, type CpioEntry } from "./cpio.ts";
import { findProgram, hostOutput, isFile } from "../../../tools/host_command.ts";
import { guestPrograms } from "./host_needs.ts";
import { type UnpackedKernel, unpackKernel } from "./kernel.ts";
import { downloadKernel, type KernelName } from "./kernel.ts";

/** The image that a guest boots. */
export interface GuestImage {
  readonly kernel: KernelName;
  /** The output of `uname -r` in the guest. */
  readonly version: string;
  readonly vmlinuxPath: string;
  readonly initramfsPath: string;
}

const kitFolder = fileURLToPath(new URL(".", import.meta.url));
const imageFolder = fileURLToPath(new URL("../image", import.meta.url));
const cacheFolder = fileURLToPath(new URL("../../../.tools/guest", import.meta.url));

/** Modules of a guest, which are loaded on demand; with those that they need. */
const modules = [
  ..."virtio_pci virtio_net virtio_blk 9p 9pnet_virtio configfs overlay veth bridge dummy nf_tables".split(
    " ",
  ),
  ..."nft_chain_nat nft_nat nft_masq".split(" "),
  ..."loop dm-mod dm-flakey dm-delay dm-snapshot dm-multipath dm-round-robin brd ext4 xfs btrfs crc32c-intel crct10dif-pclmul"
    .split(" "),
  ..."nvme nvme-core nvme-fabrics nvme-tcp nvmet nvmet-tcp nbd sch_netem nfs nfsv4 nfsd".split(" "),
  // The kernel asks for ciphers by their own names, so nothing else brings these.
  ..."dm-crypt xts ecb aes_generic aesni-intel af_alg algif_skcipher algif_hash".split(" "),
];

/** Files of the host that programs read. */
const settings = [
  "/etc/mke2fs.conf",
  "/etc/services",
  "/etc/protocols",
  "/etc/nsswitch.conf",
  "/etc/netconfig",
];

/** The parts of the kit that make an image: a change of one makes another image. */
const recipe = ["cpio", "host_needs", "image", "kernel"].map((name) => `${name}.ts`);

/** How long an unused image is kept, in milliseconds. */
const keptMs = 7 * 24 * 60 * 60_000;

/** Builds a guest's image, unless it was built before from the same kit and the same programs; needs no root. */
export async function guestImage(
  kernel: KernelName,
  report: (line: string) => void = () => {},
): Promise<GuestImage> {
  const folder = join(cacheFolder, `${kernel}-${await digest(kernel)}`);
  if (!isFile(join(folder, "version"))) await build(kernel, folder, report);
  // The time of this file shows that the image is in use.
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

/** A digest of the image's parts without the kernel: the newest kernel is used when there is no image yet. */
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

/** Another process that builds the same at the same time makes an equal image. */
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

/** Folders that exist even when they are empty. */
const folders =
  "dev proc sys run tmp root mnt opt usr/bin usr/sbin usr/lib usr/lib64 usr/lib/guest var/lib etc";

/** Libraries that no program names in its file: they are opened while it runs. */
const openedLibraries = [
  "libgcc_s.so.1",
  "libnss_files.so.2",
  "libnss_dns.so.2",
  "libresolv.so.2",
  "libdl.so.2",
];
const moreLibraries = ["libpthread.so.0", "librt.so.1", "libm.so.6"];
const libraryFolder = "/usr/lib/x86_64-linux-gnu";

/** The guest's root: programs of the host with the libraries that they need, each at its path on the host. */
class RootTree {
  readonly #entries = new Map<string, CpioEntry>();

  constructor() {
    for (const path of folders.split(" ")) this.#folder(path);
    // As in every current distribution; paths of the host are converted to this form.
    for (const name of ["bin", "sbin", "lib", "lib64"]) this.link(name, `usr/${name}`);
    this.link("etc/mtab", "/proc/self/mounts");
    this.link("var/run", "/run");
    this.text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n");
    this.text("etc/group", "root:x:0:\nnogroup:x:65534:\n");
    this.text("etc/hosts", "127.0.0.1 localhost\n");
  }

  /** All entries, folders before their content. */
  entries(): CpioEntry[] {
    return [...this.#entries.values()];
  }

  /** Adds programs, found by name, with their libraries. */
  async programs(names: readonly string[]): Promise<void> {
    for (const name of names) {
      const path = findProgram(name);
      if (path === undefined) {
        throw new Error(`Cannot build a guest because a program is not here: name=${name}`);
      }
      const real = await Deno.realPath(path);
      await this.file(real);
      if (merged(path) !== merged(real)) this.link(merged(path), `/${merged(real)}`);
      for (const library of await librariesOf(real)) await this.file(library);
    }
  }

  /** Adds the libraries that are opened by name while programs run, as far as this machine has them. */
  async libraries(): Promise<void> {
    const paths = [...openedLibraries, ...moreLibraries].map((name) => join(libraryFolder, name));
    for (const path of paths.filter(isFile)) await this.file(path);
  }

  /** Adds links to one program that has many names, unless another program has the name. */
  async busybox(): Promise<void> {
    await this.programs(["busybox"]);
    const applets = await hostOutput("busybox", ["--list"]);
    for (const applet of applets.trim().split("\n")) {
      const paths = [`usr/bin/${applet}`, `usr/sbin/${applet}`];
      if (!paths.some((path) => this.#entries.has(path))) this.link(`usr/bin/${applet}`, "busybox");
    }
  }

  /** Adds a kernel's modules. */
  kernel({ version, modules, indexes }: UnpackedKernel): void {
    for (const name of ["modprobe", "insmod", "rmmod", "lsmod", "modinfo", "depmod"]) {
      this.link(`usr/sbin/${name}`, "../bin/kmod");
    }
    for (const [name, bytes] of [...modules, ...indexes]) {
      this.#put(`usr/lib/modules/${version}/${name}`, bytes, 0o644);
    }
  }

  /** Adds a file of the host at its own path, or at another one. */
  async file(from: string, to = from): Promise<void> {
    const path = merged(to);
    if (this.#entries.has(path)) return;
    this.#put(path, await Deno.readFile(from), (await Deno.stat(from)).mode! & 0o777);
  }

  text(path: string, content: string): void {
    this.#put(path, new TextEncoder().encode(content), 0o644);
  }

  link(path: string, target: string): void {
    this.#folder(dirname(path));
    if (this.#entries.has(path)) return;
    this.#entries.set(path, { kind: "link", path, target });
  }

  #put(path: string, bytes: Uint8Array, mode: number): void {
    this.#folder(dirname(path));
    this.#entries.set(path, { kind: "file", path, mode, bytes });
  }

  #folder(path: string): void {
    if (path === "." || this.#entries.has(path)) return;
    this.#folder(dirname(path));
    this.#entries.set(path, { kind: "folder", path });
  }
}

/** A path of the host without its leading slash, always below /usr. */
function merged(path: string): string {
  const inside = path.replace(/^\//, "");
  return /^(bin|sbin|lib|lib64)\//.test(inside) ? `usr/${inside}` : inside;
}

async function librariesOf(program: string): Promise<string[]> {
  try {
    return [...(await hostOutput("ldd", [program])).matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path!);
  } catch (error) {
    // It fails for static programs and scripts.
    if (error instanceof Error && error.message.includes("not a dynamic executable")) return [];
    throw error;
  }
}
