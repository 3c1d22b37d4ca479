import { join } from "node:path";
import type { Driver } from "../kit/driver.ts";
import { driverPorts, startDriver } from "../kit/driver.ts";
import type { Guest } from "../kit/guest.ts";
import { startNfsServer } from "../kit/nfs_server.ts";
import type { Suite } from "../kit/suite.ts";
import { deadServer } from "./directory/dead_server.ts";
import { manyVolumes } from "./directory/many_volumes.ts";
import { oneVolume } from "./directory/one_volume.ts";
import { rebootAndKill } from "./directory/reboot_and_kill.ts";
import { twoNodes } from "./directory/two_nodes.ts";

/** Two nodes and an NFS server of the kernel. */
export interface Scene {
  readonly server: Guest;
  readonly a: Guest;
  readonly b: Guest;
  readonly drivers: { a: Driver; b: Driver };
  /** The address of the server. */
  readonly address: string;
}

/** Shared directories over the kernel's own NFS server and client. */
export const suite: Suite = {
  what: "shared directories of two nodes over NFSv4: locks, reboots, kills, a dead server, links",
  limitMinutes: 20,
  needsBinary: true,
  alone: true,
  run: async (bench) => {
    // The first one carries the network, and the server is to lose its power.
    const { server, a, b } = await bench.guests(["a", "server", "b"], {
      ports: driverPorts,
      memoryMiB: 1024,
      modules: ["nfsd"],
      disks: [{ name: "pool", sizeBytes: 1 << 30 }],
    });
    await startNfsServer(server, server.disk("pool"));
    // Nodes of one name, as cloned machines have it: only the driver's name of the client tells them apart.
    await Promise.all([a, b].map((guest) => guest.sh("hostname node")));
    const drivers = { a: await startNode(a, "a"), b: await startNode(b, "b") };
    const scene = { server, a, b, drivers, address: server.address };
    await oneVolume(bench, scene);
    await twoNodes(bench, scene);
    await manyVolumes(bench, scene);
    await rebootAndKill(bench, scene);
    await deadServer(bench, scene);
  },
};

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
