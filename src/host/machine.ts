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

/**
 * The machine that this process runs on, read where its kubelet reads it: in the root of the host's first process, and
 * where that does not match in the root of each process named `kubelet`, which may run in a container of its own. Needs the
 * host's processes in sight; without them nothing is known, and nothing is compared.
 */
export function thisMachine(files: KernelFiles): Machine {
  return {
    is(hash) {
      const ofHost = hashesIn(files, "1");
      if (ofHost?.includes(hash)) return true;
      const ofKubelets = kubelets(files)?.map((pid) => hashesIn(files, pid)) ?? [undefined];
      if (ofKubelets.some((hashes) => hashes?.includes(hash))) return true;
      // What could not be read may be what the kubelet reported.
      if (ofHost === undefined || ofHost.length === 0) return undefined;
      return ofKubelets.includes(undefined) ? undefined : false;
    },
  };
}

/** Every hash that a kubelet with the root of that process may report; undefined when the files cannot be read. */
function hashesIn(files: KernelFiles, pid: string): readonly string[] | undefined {
  const root = `/proc/${pid}/root`;
  return unlessUnreadable(() => {
    const id = machineIdFiles.map((path) => textOf(files, `${root}${path}`)).find((text) => text !== "") ??
      "";
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

/** Undefined when the processes cannot be listed; one whose name cannot be read is left out. */
function kubelets(files: KernelFiles): readonly string[] | undefined {
  const pids = unlessUnreadable(() => files.list("/proc") ?? [])?.filter((name) =>
    /^[1-9][0-9]*$/.test(name)
  );
  return pids?.filter((pid) => unlessUnreadable(() => files.readText(`/proc/${pid}/comm`)) === "kubelet");
}

function unlessUnreadable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!VolumeError.is(error, "unavailable")) throw error;
    return undefined;
  }
}
