import { join } from "node:path";
import { DebianArchive, release } from "../../support/debian_archive.ts";

/** Which kernel a guest runs: Debian 12's own, or the newer one that Debian carries back to it. */
export type KernelName = "stable" | "backports";

/**
 * Downloads the newest package of a kernel into `folder`, and answers its path. What apt knows of the archive stays in
 * a folder of the kit's own: the machine's sources and lists are left as they are, and root is not needed.
 */
export async function downloadKernel(
  kernel: KernelName,
  folder: string,
  signal?: AbortSignal,
): Promise<string> {
  const suite = kernel === "stable" ? release : `${release}-backports`;
  const archive = await DebianArchive.open(join(folder, `apt-${kernel}`), suite, signal);
  const depends = await archive.depends("linux-image-amd64");
  const name = /Depends: (linux-image-\S+)/.exec(depends)?.[1];
  if (name === undefined) {
    throw new Error(`Cannot find the kernel ${kernel} as nothing depends on one: ${depends}`);
  }
  return await archive.download(name);
}
