import { VolumeError } from "../volume/errors.ts";
import { machineHash } from "../volume/model/host/machine.ts";
import type { Machine } from "../volume/ports/node_ports.ts";
import type { KernelFiles } from "./kernel_files.ts";

/** Where kubelets read the machine id; the first existing file counts. */
const machineIdFiles = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/**
 * Where kubelets read the UUID of the system (cAdvisor, `GetSystemUUID()`). The last is for machines whose firmware has
 * none, like most ARM boards: it is the machine id again.
 */
const systemUuidFiles = [
  "/sys/class/dmi/id/product_uuid",
  "/proc/device-tree/system-id",
  "/proc/device-tree/vm,uuid",
  "/etc/machine-id",
];

/** The names of kubelet processes: kubelet itself, or programs that contain one, such as those of MicroK8s and k3s. */
const kubeletNames = new Set(["kubelet", "kubelite", "k3s", "k3s-server", "k3s-agent"]);

/**
 * The machine of this process, read where its kubelet reads it: in the root of the host's first process, and if that
 * does not match, in the root of each kubelet, which may run in its own container. This needs the host's processes to
 * be visible: without a kubelet it is unknown what it reported, and nothing is compared.
 */
export function thisMachine(files: KernelFiles): Machine {
  return {
    is(hash) {
      const ofHost = hashesIn(files, "1");
      if (ofHost?.includes(hash)) return true;
      const ofKubelets = kubelets(files).map((pid) => hashesIn(files, pid));
      if (ofKubelets.some((hashes) => hashes?.includes(hash))) return true;
      // A value that could not be read may be what the kubelet reported.
      return ofKubelets.length === 0 || [ofHost, ...ofKubelets].includes(undefined) ? undefined : false;
    },
  };
}

/**
 * Every hash that a kubelet with the root of that process may report; undefined when there is none, or it cannot be
 * read.
 */
function hashesIn(files: KernelFiles, pid: string): readonly string[] | undefined {
  const root = `/proc/${pid}/root`;
  return unlessUnreadable(() => {
    const id = machineIdFiles.map((path) => textOf(files, `${root}${path}`)).find((text) => text !== "");
    if (id === undefined) return undefined;
    // A kubelet without access to the firmware reports no UUID.
    const uuids = ["", ...systemUuidFiles.map((path) => textOf(files, `${root}${path}`))];
    return uuids.flatMap((uuid) => [uuid, swapped(uuid)]).flatMap((uuid) => machineHash(id, uuid) ?? []);
  });
}

/**
 * The UUID with the bytes of its first three fields reversed. SMBIOS 2.6 has fixed their order, so that an update of
 * the firmware, the kernel or a virtual machine's hardware may change it. Anything but a UUID stays unchanged.
 */
function swapped(uuid: string): string {
  return uuid.replace(
    /^(..)(..)(..)(..)-(..)(..)-(..)(..)(-[0-9a-f]{4}-[0-9a-f]{12})$/i,
    "$4$3$2$1-$6$5-$8$7$9",
  );
}

function textOf(files: KernelFiles, path: string): string {
  // Texts of the device tree end with a zero byte.
  return (files.readText(path) ?? "").replaceAll("\0", "").trim();
}

/** The visible kubelets; a process whose name cannot be read is left out. */
function kubelets(files: KernelFiles): readonly string[] {
  const pids = (unlessUnreadable(() => files.list("/proc")) ?? []).filter((name) =>
    /^[1-9][0-9]*$/.test(name)
  );
  return pids.filter((pid) => {
    const name = unlessUnreadable(() => files.readText(`/proc/${pid}/comm`));
    return name !== undefined && kubeletNames.has(name);
  });
}

function unlessUnreadable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!VolumeError.is(error, "unavailable")) throw error;
    return undefined;
  }
}
