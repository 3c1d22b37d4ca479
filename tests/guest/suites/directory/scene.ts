import { join } from "node:path";
import { type Driver, startDriver } from "../../kit/driver.ts";
import type { Guest } from "../../kit/guest.ts";
import { startNfsServer } from "../../kit/nfs_server.ts";

/** Two nodes and an NFS server of the kernel. */
export interface Scene {
  readonly server: Guest;
  readonly a: Guest;
  readonly b: Guest;
  readonly drivers: { a: Driver; b: Driver };
  /** The address of the server. */
  readonly address: string;
}

/** Starts the node service in a mount namespace like a container's. */
export async function startNode(guest: Guest, nodeId: string): Promise<Driver> {
  return await startDriver(guest, {
    mode: "node",
    nodeId,
    namespace: "shared",
    flags: ["--kind", "directory", "--log-level", "debug"],
  });
}

/** The path in the server's guest of a path that clients see. */
export function onServer(path: string): string {
  return join("/srv", path);
}

/**
 * Makes the scene what it was at first, after a story that failed: the server answers, both nodes serve, and nothing is
 * mounted. So a failure does not make the next story fail.
 */
export async function reset(scene: Scene): Promise<void> {
  const { server, drivers } = scene;
  if (server.isRunning) await server.thaw();
  else {
    await server.boot();
    await startNfsServer(server, server.disk("pool"));
  }
  for (const name of ["a", "b"] as const) {
    const guest = scene[name];
    await drivers[name].kill();
    await guest.sh(
      `tac /proc/self/mountinfo | sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \\([^ ]*\\) .* - nfs4 .*/\\1/p' |
         while read -r path; do umount -n -c -i --lazy "$path"; done
       ! grep -q ' nfs4 ' /proc/self/mountinfo`,
    );
    drivers[name] = await startNode(guest, name);
  }
}
