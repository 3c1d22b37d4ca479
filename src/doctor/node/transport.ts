import type { KernelFiles } from "../../host/kernel_files.ts";
import { type Finding, fine, problem, warning } from "../../volume/model/finding.ts";

const check = "nvme-transport";

/** Where connections are asked for. */
const controlPath = "/dev/nvme-fabrics";

const loadFix =
  "on the host: modprobe nvme-tcp, and for the next boot: echo nvme-tcp > /etc/modules-load.d/nvme-tcp.conf " +
  "(Talos: machine.kernel.modules with the name nvme_tcp; k3s and k0s: as on the system below them)";

/** What of the kernel's modules is not under /proc and /sys. */
export interface ModuleFiles {
  /** The text of `modules.dep` or `modules.builtin` of the running kernel; undefined when it cannot be seen from here. */
  read(name: "modules.dep" | "modules.builtin"): Promise<string | undefined>;
}

/** Whether the kernel can reach a target over NVMe/TCP: loaded, or at least loadable. */
export async function checkTransport(files: KernelFiles, modules: ModuleFiles): Promise<Finding> {
  const transport = isPresent(files, "nvme_tcp");
  const fabrics = isPresent(files, "nvme_fabrics") || files.info("/sys/class/nvme-fabrics") !== undefined;
  const control = files.info(controlPath) !== undefined;
  if (transport && control) return fine(check, `nvme_tcp is loaded, and ${controlPath} is there`);
  if (fabrics && !control) {
    return problem(
      check,
      `the kernel has NVMe over Fabrics, but ${controlPath} is not here: /dev is not the host's`,
      "mount the host's /dev into the container",
    );
  }
  if (files.readText("/proc/sys/kernel/modules_disabled") === "1") {
    return problem(check, "nvme_tcp is not loaded, and this kernel loads no modules any more", loadFix);
  }
  const loadable = await isLoadable(modules);
  if (loadable === false) {
    const release = files.readText("/proc/sys/kernel/osrelease") ?? "unknown";
    return problem(
      check,
      `nvme_tcp is not loaded, and the running kernel ${release} has no such module`,
      "install the package of the kernel's modules, or a kernel with CONFIG_NVME_TCP",
    );
  }
  if (fabrics) {
    return warning(
      check,
      "nvme_tcp is not loaded; the kernel loads it with the first connection if it can",
      loadFix,
    );
  }
  const known = loadable === undefined ? "whether it can be is not seen from here" : "it can be";
  return problem(check, `nvme_tcp is not loaded; ${known}`, loadFix);
}

/** A module that is loaded, or built in with parameters. */
function isPresent(files: KernelFiles, name: string): boolean {
  if (files.info(`/sys/module/${name}`) !== undefined) return true;
  return new RegExp(`^${name} `, "m").test(files.readText("/proc/modules") ?? "");
}

async function isLoadable(modules: ModuleFiles): Promise<boolean | undefined> {
  const listed = [await modules.read("modules.dep"), await modules.read("modules.builtin")];
  if (listed.some((text) => /(?:^|\/)nvme[-_]tcp\.ko/m.test(text ?? ""))) return true;
  return listed.includes(undefined) ? undefined : false;
}
