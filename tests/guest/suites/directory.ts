import { driverPorts } from "../kit/driver.ts";
import { startNfsServer } from "../kit/nfs_server.ts";
import type { Bench, Suite } from "../kit/suite.ts";
import { deadServer } from "./directory/dead_server.ts";
import { manyVolumes } from "./directory/many_volumes.ts";
import { oneVolume } from "./directory/one_volume.ts";
import { rebootAndKill } from "./directory/reboot_and_kill.ts";
import { reset, type Scene, startNode } from "./directory/scene.ts";
import { twoNodes } from "./directory/two_nodes.ts";

/** Each returns whether the scene is as it was. */
const stories: Readonly<Record<string, (bench: Bench, scene: Scene) => Promise<boolean>>> = {
  one_volume: oneVolume,
  two_nodes: twoNodes,
  many_volumes: manyVolumes,
  reboot_and_kill: rebootAndKill,
  dead_server: deadServer,
};

/** Shared directories over the kernel's own NFS server and client; with GUEST_ONLY, a regular expression, some stories. */
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
    const only = new RegExp(Deno.env.get("GUEST_ONLY") ?? "");
    for (const [name, story] of Object.entries(stories)) {
      if (only.test(name) && !await story(bench, scene)) await reset(scene);
    }
  },
};
