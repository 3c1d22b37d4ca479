import { dirname, join } from "node:path";
import type { CpioEntry } from "./cpio.ts";
import { findProgram, hostOutput, isFile } from "./host_command.ts";
import type { UnpackedKernel } from "./kernel.ts";

/** Folders that are there even when nothing lies in them. */
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

/** The guest's root: programs of the host with the libraries that they need, each at the path that it has there. */
export class RootTree {
  readonly #entries = new Map<string, CpioEntry>();

  constructor() {
    for (const path of folders.split(" ")) this.#folder(path);
    // As in every distribution by now; paths of the host are brought into this form.
    for (const name of ["bin", "sbin", "lib", "lib64"]) this.link(name, `usr/${name}`);
    this.link("etc/mtab", "/proc/self/mounts");
    this.link("var/run", "/run");
    this.text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n");
    this.text("etc/group", "root:x:0:\nnogroup:x:65534:\n");
    this.text("etc/hosts", "127.0.0.1 localhost\n");
  }

  /** All entries, folders before what lies in them. */
  entries(): CpioEntry[] {
    return [...this.#entries.values()];
  }

  /** Adds programs, found by name, with their libraries. */
  async programs(names: readonly string[]): Promise<void> {
    for (const name of names) {
      const path = findProgram(name);
      if (path === undefined) throw new Error(`Cannot build a guest as a program is not here: name=${name}`);
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

  /** Adds links to one program that goes by many names, where nothing else has the name. */
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

/** A path of the host without its leading slash, below /usr whatever it was. */
function merged(path: string): string {
  const inside = path.replace(/^\//, "");
  return /^(bin|sbin|lib|lib64)\//.test(inside) ? `usr/${inside}` : inside;
}

async function librariesOf(program: string): Promise<string[]> {
  try {
    return [...(await hostOutput("ldd", [program])).matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path!);
  } catch (error) {
    // It says so of static programs and of scripts by failing.
    if (error instanceof Error && error.message.includes("not a dynamic executable")) return [];
    throw error;
  }
}
