import { VolumeError } from "../volume/errors.ts";
import { machineHash } from "../volume/model/machine.ts";
import type { Machine } from "../volume/ports/node_ports.ts";
import type { KernelFiles } from "./kernel_files.ts";

/** Where kubelets read the machine id; the first that is there counts. */
const machineIdFiles = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/** Where kubelets read the UUID of the system. */
const systemUuidFiles = [
  "/sys/class/dmi/id/product_uuid",
  "/proc/device-tree/system-id",
  "/proc/device-tree/vm,uuid",
];

/**
 * The machine that this process runs on, read where its kubelet reads it: in the root of the host's first process, and
 * where that does not match in the root of each process named `kubelet`, which may run in a container of its own. Needs the
 * host's processes in sight; without them nothing is known, and nothing is compared.
 */
export function thisMachine(files: KernelFiles): Machine {
  return {
    is(hash) {
      const ofHost = hashesIn(files, "1");
      if (ofHost.includes(hash)) return true;
      const ofKubelets = kubelets(files).flatMap((pid) => hashesIn(files, pid));
      if (ofKubelets.includes(hash)) return true;
      return ofHost.length === 0 ? undefined : false;
    },
  };
}

/** Every hash that a kubelet with the root of that process may report; none when the files cannot be read. */
function hashesIn(files: KernelFiles, pid: string): readonly string[] {
  const root = `/proc/${pid}/root`;
  try {
    const id = machineIdFiles.map((path) => textOf(files, `${root}${path}`)).find((text) => text !== "") ??
      "";
    // A kubelet without access to the firmware reports no UUID.
    const uuids = ["", ...systemUuidFiles.map((path) => textOf(files, `${root}${path}`))];
    return uuids.flatMap((uuid) => machineHash(id, uuid) ?? []);
  } catch (error) {
    if (!VolumeError.is(error, "unavailable")) throw error;
    return [];
  }
}

function textOf(files: KernelFiles, path: string): string {
  // Texts of the device tree end with a zero.
  return (files.readText(path) ?? "").replaceAll("\0", "").trim();
}

function kubelets(files: KernelFiles): readonly string[] {
  try {
    const pids = (files.list("/proc") ?? []).filter((name) => /^[1-9][0-9]*$/.test(name));
    return pids.filter((pid) => files.readText(`/proc/${pid}/comm`) === "kubelet");
  } catch (error) {
    if (!VolumeError.is(error, "unavailable")) throw error;
    return [];
  }
}
