import { needsLegacyListener } from "../../csi/server/legacy_unix_listener.ts";

/**
 * Gives up what a controller does not need: it runs no tool and calls no library. From then on not even this process
 * can.
 */
export async function dropControllerPrivileges(): Promise<void> {
  await Deno.permissions.revoke({ name: "run" });
  await Deno.permissions.revoke({ name: "ffi" });
}

/**
 * Gives up what a node without a controller does not need once it listens, if it reaches volumes by other means than the
 * network: it dials nobody then. (One of NVMe/TCP reads the router's discovery log.) The runtime that serves a unix
 * socket through loopback connections goes on needing the network.
 */
export async function dropNetworkPrivilege(): Promise<void> {
  if (needsLegacyListener(Deno.version.deno)) return;
  await Deno.permissions.revoke({ name: "net" });
}
