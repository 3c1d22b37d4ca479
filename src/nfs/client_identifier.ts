import type { KernelFiles } from "../host/kernel_files.ts";
import type { SysfsWriter } from "../host/sysfs_writer.ts";
import { VolumeError } from "../volume/errors.ts";
import { digest } from "../volume/model/digest.ts";
import type { MountEntry } from "../volume/ports/node_ports.ts";
import { isNfs } from "../volume/rules/host/nfs_mounts.ts";

/** The kernel's attribute: it belongs to a network namespace, and exists once the module nfs is loaded. */
export const identifierPath = "/sys/fs/nfs/net/nfs_client/identifier";
/** A person's choice on the kernel's command line, which the attribute would replace. */
const parameterPath = "/sys/module/nfs/parameters/nfs4_unique_id";
/** The servers that this network namespace has a client for: a line of titles, then one line each. */
const serversPath = "/proc/fs/nfsfs/servers";
/** The machine id of the host, and of this process's own root where the host's processes are not visible. */
const machineIdPaths = ["/proc/1/root/etc/machine-id", "/etc/machine-id"];

/** The name of this node's NFS client: the same after each boot, and another one on every other node. */
export interface ClientIdentifier {
  /**
   * Sets it if it is empty and nothing is mounted over NFS. A server takes two nodes of one name for one client that
   * has restarted, and drops the locks of the one when the other appears.
   */
  ensure(table: readonly MountEntry[]): void;
}

/** The adapters of {@linkcode kernelIdentifier}. */
export interface IdentifierAdapters {
  readonly files: KernelFiles;
  readonly attributes: Pick<SysfsWriter, "write">;
  readonly nodeId: string;
  readonly notes: {
    info(message: string, fields: Readonly<Record<string, unknown>>): void;
    warn(message: string, fields: Readonly<Record<string, unknown>>): void;
  };
}

/** The kernel's identifier. A person's, or that of another driver, stays. */
export function kernelIdentifier({ files, attributes, nodeId, notes }: IdentifierAdapters): ClientIdentifier {
  return {
    ensure(table) {
      const found = files.readText(identifierPath);
      if (found === undefined || !["", "(null)"].includes(found)) return;
      if ((files.readText(parameterPath) ?? "") !== "") return;
      if (table.some(isNfs) || hasServers(files)) return;
      const identifier = identifierOf(machineId(files), nodeId);
      try {
        attributes.write(identifierPath, identifier);
        notes.info("this node's NFS client has a name now", { identifier });
      } catch (error) {
        if (!VolumeError.is(error, "unavailable")) throw error;
        notes.warn(
          "cannot name this node's NFS client: nodes of one host name would lose each other's locks",
          {
            reason: error.message,
          },
        );
      }
    },
  };
}

/** The identifier of a node: at most 40 characters, the kernel takes 64. */
export function identifierOf(machineId: string, nodeId: string): string {
  return `rds-csi-${digest(`${machineId} ${nodeId}`, 32)}`;
}

function machineId(files: KernelFiles): string {
  for (const path of machineIdPaths) {
    try {
      const text = files.readText(path)?.trim() ?? "";
      if (text !== "") return text;
    } catch (error) {
      // Without it the node id alone distinguishes the nodes of a cluster.
      if (!VolumeError.is(error, "unavailable")) throw error;
    }
  }
  return "";
}

/** Also of mounts that are detached, or in other mount namespaces. */
function hasServers(files: KernelFiles): boolean {
  const lines = (files.readText(serversPath) ?? "").split("\n").filter((line) => line.trim() !== "");
  return lines.length > 1;
}
