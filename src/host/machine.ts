import { VolumeError } from "../volume/errors.ts";
import { machineHash } from "../volume/model/machine.ts";
import type { Machine } from "../volume/ports/node_ports.ts";
import type { KernelFiles } from "./kernel_files.ts";

/** Where kubelets read the machine id; the first that is there counts. */
const machineIdFiles = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/**
 * Where kubelets read the UUID of the system (cAdvisor, `GetSystemUUID()`). The last is for machines whose firmware has
 * none, as most boards with ARM: there it is the machine id once more.
 */
const systemUuidFiles = [
  "/sys/class/dmi/id/product_uuid",
  "/proc/device-tree/system-id",
  "/proc/device-tree/vm,uuid",
  "/etc/machine-id",
];

/** What kubelets are called: their own name, or that of a program which has one in it, as MicroK8s and k3s have. */
const kubeletNames = new Set(["kubelet", "kubelite", "k3s", "k3s-server", "k3s-agent"]);

/**
 * The machine that this process runs on, read where its kubelet reads it: in the root of the host's first process, and
 * where that does not match in the root of each kubelet, which may run in a container of its own. Needs the host's
 * processes in sight: where no kubelet is, nobody knows what it reported, and nothing is compared.
 */
export function thisMachine(files: KernelFiles): Machine {
  return {
    is(hash) {
      const ofHost = hashesIn(files, "1");
      if (ofHost?.includes(hash)) return true;
      const ofKubelets = kubelets(files).map((pid) => hashesIn(files, pid));
      if (ofKubelets.some((hashes) => hashes?.includes(hash))) return true;
      // What could not be read may be what the kubelet reported.
      return ofKubelets.length === 0 || [ofHost, ...ofKubelets].includes(undefined) ? undefined : false;
    },
  };
}

/** Every hash that a kubelet with the root of that process may report; undefined when there is none, or none to be read. */
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
 * The UUID with the bytes of its first three fields the other way round: SMBIOS 2.6 has settled their order, so that an update
 * of the firmware, the kernel or a virtual machine's hardware may change it. What is no UUID stays as it is.
 */
function swapped(uuid: string): string {
  return uuid.replace(
    /^(..)(..)(..)(..)-(..)(..)-(..)(..)(-[0-9a-f]{4}-[0-9a-f]{12})$/i,
    "$4$3$2$1-$6$5-$8$7$9",
  );
}

function textOf(files: KernelFiles, path: string): string {
  // Texts of the device tree end with a zero.
  return (files.readText(path) ?? "").replaceAll("\0", "").trim();
}

/** The kubelets in sight; a process whose name cannot be read is left out. */
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
