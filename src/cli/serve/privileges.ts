import { needsLegacyListener } from "../../csi/server/legacy_unix_listener.ts";

/**
 * The kubelet's folder: the usual one, k0s and MicroK8s. It contains staging and target paths, and the node's state.
 */
export const kubeletFolders: readonly string[] = [
  "/var/lib/kubelet",
  "/var/lib/k0s/kubelet",
  "/var/snap/microk8s/common/var/lib/kubelet",
];

/** Lists of the kernel's modules, if a container has them; never written. */
export const moduleFolders: readonly string[] = ["/lib/modules", "/usr/lib/modules"];

/**
 * Gives up what a controller does not need: it runs no tool, calls no library, and uses no folder of a node. From then on
 * this process cannot get it back. It comes before the first caller is heard.
 *
 * @param endpoint where it is going to listen: that folder is kept
 */
export async function dropControllerPrivileges(endpoint = ""): Promise<void> {
  await Deno.permissions.revoke({ name: "run" });
  await Deno.permissions.revoke({ name: "ffi" });
  for (const path of [...kubeletFolders, ...moduleFolders]) {
    if (endpoint.includes(`${path}/`)) continue;
    await Deno.permissions.revoke({ name: "read", path });
    await Deno.permissions.revoke({ name: "write", path });
  }
}

/**
 * Gives up the network for a node without a controller, once it listens, unless it connects volumes over the network:
 * it dials nothing then. (A node with NVMe/TCP reads the router's discovery log.) A runtime that serves a unix socket
 * through loopback connections still needs the network.
 */
export async function dropNetworkPrivilege(): Promise<void> {
  if (needsLegacyListener(Deno.version.deno)) return;
  await Deno.permissions.revoke({ name: "net" });
}
