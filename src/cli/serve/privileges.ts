import { needsLegacyListener } from "../../csi/server/legacy_unix_listener.ts";

/**
 * Gives up what a controller does not need: it runs no tool and calls no library. From then on this process cannot get
 * it back.
 */
export async function dropControllerPrivileges(): Promise<void> {
  await Deno.permissions.revoke({ name: "run" });
  await Deno.permissions.revoke({ name: "ffi" });
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
