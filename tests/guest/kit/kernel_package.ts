import { join } from "node:path";
import { hostOutput } from "./host_command.ts";

/** Which kernel a guest runs: Debian 12's own, or the newer one that Debian carries back to it. */
export type KernelName = "stable" | "backports";

/** What signs Debian's archive. */
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
const release = "bookworm";

/**
 * Downloads the newest package of a kernel into `folder`, and answers its path. What apt knows of the archive stays in
 * a folder of the kit's own: the machine's sources and lists are left as they are, and root is not needed.
 */
export async function downloadKernel(
  kernel: KernelName,
  folder: string,
  signal?: AbortSignal,
): Promise<string> {
  const apt = join(folder, `apt-${kernel}`);
  for (const path of ["lists/partial", "cache/archives/partial"]) {
    await Deno.mkdir(join(apt, path), { recursive: true });
  }
  const suites = kernel === "stable" ? [release] : [`${release}-backports`];
  const site = await archiveSite();
  const sources = suites.map((suite) => `deb [signed-by=${keyring}] ${site} ${suite} main\n`).join("");
  await Deno.writeTextFile(join(apt, "sources.list"), sources);
  const settings = [
    `Dir::Etc::SourceList=${apt}/sources.list`,
    "Dir::Etc::SourceParts=/dev/null",
    `Dir::State::Lists=${apt}/lists`,
    `Dir::Cache=${apt}/cache`,
    "APT::Architecture=amd64",
    "Acquire::Retries=3",
    "Acquire::Languages=none",
    // As another user apt could not write into a folder of this one's.
    `APT::Sandbox::User=${Deno.uid() === 0 ? "root" : ""}`,
  ].flatMap((setting) => ["-o", setting]);
  const options = { cwd: apt, ...(signal === undefined ? {} : { signal }) };
  await hostOutput("apt-get", [...settings, "-qq", "update"], options);
  const depends = await hostOutput("apt-cache", [...settings, "depends", "linux-image-amd64"], options);
  const name = /Depends: (linux-image-\S+)/.exec(depends)?.[1];
  if (name === undefined) {
    throw new Error(`Cannot find the kernel ${kernel} as nothing depends on one: ${depends}`);
  }
  await hostOutput("apt-get", [...settings, "-qq", "download", name], options);
  const file = [...Deno.readDirSync(apt)].find((entry) => entry.name.endsWith(".deb"))?.name;
  if (file === undefined) throw new Error(`Cannot find the kernel ${kernel} as apt-get downloaded nothing`);
  return join(apt, file);
}

/** Where this machine has Debian from: a mirror of its own, maybe. */
async function archiveSite(): Promise<string> {
  const targets = await hostOutput("apt-get", ["indextargets", "--format", "$(SITE) $(RELEASE)"]);
  const site = targets.split("\n").map((line) => line.split(" ")).find(([, of]) => of === release)?.[0];
  if (site === undefined) throw new Error(`Cannot download a kernel as apt has no source of ${release}`);
  return site;
}
