import { basename, join } from "node:path";
import { hostBytes, hostOutput, isFolder } from "../../../tools/host_command.ts";
import { DebianArchive, release } from "../../support/debian_archive.ts";

/** The unpacked content of a kernel package. */
export interface UnpackedKernel {
  /** The output of `uname -r`. */
  readonly version: string;
  /** The kernel as an ELF file. */
  readonly vmlinux: Uint8Array;
  /** Files of the requested modules, with all that they need, by their path below the module folder. */
  readonly modules: ReadonlyMap<string, Uint8Array>;
  /** Files with which modprobe finds modules. */
  readonly indexes: ReadonlyMap<string, Uint8Array>;
}

/** Left out while unpacking: most of the package, and nothing that a guest has. */
const needless = ["drivers/gpu", "sound", "drivers/media", "drivers/net/wireless", "drivers/net/ethernet"];

/** Unpacks a kernel's package in `folder`. */
export async function unpackKernel(
  file: string,
  modules: readonly string[],
  folder: string,
): Promise<UnpackedKernel> {
  const root = join(folder, "kernel");
  await Deno.mkdir(root, { recursive: true });
  const excluded = needless.map((path) => `--exclude='*/kernel/${path}/*'`).join(" ");
  await hostOutput("sh", [
    "-c",
    `dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" ${excluded} --wildcards './boot/vmlinuz*' './*lib/modules/*'`,
    ...["sh", file, root],
  ]);
  // The package may contain /lib/modules below usr, if /lib is a link in the distribution.
  const lib = isFolder(join(root, "lib/modules")) ? root : join(root, "usr");
  const version = [...Deno.readDirSync(join(lib, "lib/modules"))][0]?.name;
  if (version === undefined) {
    throw new Error(`Cannot unpack a kernel because it has no modules: file=${basename(file)}`);
  }
  const vmlinux = await decompress(await Deno.readFile(join(root, "boot", `vmlinuz-${version}`)));
  await hostOutput("depmod", ["-b", lib, version]);
  const paths = await closure(lib, version, modules);
  return { version, vmlinux, ...await collect(join(folder, "modules"), lib, version, paths) };
}

/**
 * The ELF file inside a kernel's compressed image (Linux's "x86 boot protocol": setup_sects, payload_offset,
 * payload_length). A kernel that is booted from it need not decompress itself, which takes seconds in software
 * emulation.
 */
export async function decompress(image: Uint8Array): Promise<Uint8Array> {
  const view = new DataView(image.buffer, image.byteOffset, image.byteLength);
  const start = (view.getUint8(0x1f1) + 1) * 512 + view.getUint32(0x248, true);
  // The last four bytes are the unpacked length.
  const payload = image.subarray(start, start + view.getUint32(0x24c, true) - 4);
  const tools: Record<string, string> = { fd377a58: "xz", "28b52ffd": "zstd", "1f8b0800": "gzip" };
  const magic = Array.from(payload.subarray(0, 4), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const tool = tools[magic];
  if (tool === undefined) {
    throw new Error(`Cannot unpack a kernel because its compression is unknown: magic=${magic}`);
  }
  return await hostBytes(tool, ["-dc"], { input: payload });
}

/** Files of the modules with everything that they need; built-in ones have none. */
async function closure(lib: string, version: string, modules: readonly string[]): Promise<string[]> {
  const paths = new Set<string>();
  for (const module of modules) {
    const listed = await hostOutput("modprobe", ["-d", lib, "-S", version, "--show-depends", module]);
    for (const [, path] of listed.matchAll(/^insmod (\S+)/gm)) paths.add(path!);
  }
  return [...paths].sort();
}

/** Copies the modules stripped: without debugging symbols they are small, without a signature quick to load. */
async function collect(folder: string, lib: string, version: string, paths: readonly string[]) {
  const location = join(folder, "lib/modules", version);
  const from = join(lib, "lib/modules", version);
  const modules = new Map<string, Uint8Array>();
  for (const path of paths) {
    const inside = path.slice(path.indexOf(`/${version}/`) + version.length + 2);
    const target = join(location, inside.replace(/\.(xz|zst)$/, ""));
    await Deno.mkdir(join(target, ".."), { recursive: true });
    const plain = path.endsWith(".xz") ? await hostBytes("xz", ["-dc", path]) : await Deno.readFile(path);
    await Deno.writeFile(target, plain);
    await hostOutput("strip", ["--strip-debug", target]);
    modules.set(inside.replace(/\.xz$/, ""), await Deno.readFile(target));
  }
  for (const name of ["modules.builtin", "modules.builtin.modinfo", "modules.order"]) {
    await Deno.copyFile(join(from, name), join(location, name));
  }
  await hostOutput("depmod", ["-b", folder, version]);
  const indexes = new Map<string, Uint8Array>();
  for (const { name, isFile } of Deno.readDirSync(location)) {
    if (isFile && name.startsWith("modules.")) indexes.set(name, await Deno.readFile(join(location, name)));
  }
  return { modules, indexes };
}

/** The kernel of a guest: Debian 12's own, or the newer one from its backports. */
export type KernelName = "stable" | "backports";

/** The kernel of guests whose suite names none. @throws {Error} when GUEST_KERNEL names no kernel */
export function usualKernel(otherwise: KernelName = "stable"): KernelName {
  const name = Deno.env.get("GUEST_KERNEL") ?? otherwise;
  if (name === "stable" || name === "backports") return name;
  throw new Error(`Cannot choose a kernel because GUEST_KERNEL is neither stable nor backports: ${name}`);
}

/**
 * Downloads the newest package of a kernel into `folder`, and returns its path. apt's state stays in a folder of the
 * kit: the machine's sources and lists are unchanged, and root is not needed.
 */
export async function downloadKernel(kernel: KernelName, folder: string): Promise<string> {
  const suite = kernel === "stable" ? release : `${release}-backports`;
  const archive = await DebianArchive.open(join(folder, `apt-${kernel}`), suite);
  const depends = await archive.depends("linux-image-amd64");
  const name = /Depends: (linux-image-\S+)/.exec(depends)?.[1];
  if (name === undefined) {
    throw new Error(`Cannot find the kernel ${kernel} because nothing depends on one: ${depends}`);
  }
  return await archive.download(name);
}
