import assert from "node:assert/strict";
import { nfsClients, rebootGraceSeconds, startNfsServer } from "../../kit/nfs_server.ts";
import type { Guest } from "../../kit/guest.ts";
import type { Bench } from "../../kit/suite.ts";
import { holdLock } from "./locks.ts";
import { onServer, type Scene, startNode } from "./scene.ts";
import { DirectoryVolume, nfsMounts } from "./volume.ts";

/** Appends numbers to a file, each synced before it is printed. */
async function writer(guest: Guest, path: string) {
  const acknowledged: number[] = [];
  const command = await guest.start(
    `i=0; while [ ! -e /tmp/stop ]; do i=$((i + 1)); echo $i >> ${path} && sync ${path} && echo $i || exit 1; done`,
    { onLine: (line) => acknowledged.push(Number(line)) },
  );
  return {
    acknowledged,
    /** Waits until it has written more. */
    async goesOn(): Promise<void> {
      const before = acknowledged.length;
      const until = performance.now() + 120_000;
      while (acknowledged.length < before + 5) {
        if (performance.now() > until) throw new Error(`the writer stands still after ${before} lines`);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    },
    async stop(): Promise<void> {
      await guest.sh("touch /tmp/stop");
      const { status } = await command.end;
      await guest.sh("rm /tmp/stop");
      assert.equal(status, 0, "a write failed");
    },
  };
}

/** The server reboots and the driver is killed while a pod writes. */
export async function rebootAndKill(bench: Bench, scene: Scene): Promise<boolean> {
  const { server, a, b, drivers, address } = scene;
  await server.sh(`mkdir -p ${onServer("/pool/volumes/io")}`);
  const volume = new DirectoryVolume("io", { addresses: address, export: "/pool", path: "/pool/volumes/io" });
  const [log, lock] = [`${volume.target}/log`, `${volume.target}/lock`];

  return await bench.story([
    ["a pod writes on while the driver is killed, gone, and started again", async () => {
      await volume.publish(drivers.a.clients);
      const pod = await writer(a, log);
      await pod.goesOn();
      await drivers.a.kill();
      await pod.goesOn();
      drivers.a = await startNode(a, "a");
      await pod.goesOn();
      assert.deepEqual(await volume.problems(drivers.a.clients), []);
      await pod.stop();
      return `${pod.acknowledged.length} synced lines`;
    }],
    [
      "a pod waits while the server has no power, and goes on without an error; nothing synced is lost",
      async () => {
        await a.sh(`rm ${log}`);
        const names = await nfsClients(server);
        const pod = await writer(a, log);
        await pod.goesOn();
        const held = await holdLock(a, lock);
        await volume.publish(drivers.b.clients);
        await b.sh(`! flock -n -x ${lock} true`);
        await server.cutPower();
        const began = performance.now();
        await server.boot();
        await startNfsServer(server, server.disk("pool"), rebootGraceSeconds);
        await pod.goesOn();
        const seconds = ((performance.now() - began) / 1000).toFixed(0);
        await pod.stop();
        const lines = (await server.sh(`cat ${onServer("/pool/volumes/io/log")}`)).split("\n").map(Number);
        assert.deepEqual(lines.slice(0, pod.acknowledged.length), pod.acknowledged);
        // The server has lost its memory: only the node can have told it of the lock.
        await b.sh(`! flock -n -x ${lock} true`);
        await held.release();
        await b.sh(`flock -n -x ${lock} true`);
        await volume.unpublish(drivers.b.clients);
        return `${pod.acknowledged.length} synced lines, all there; writes again after ${seconds} s; the lock was kept; ${names.join()}`;
      },
    ],
    ["the volume leaves, and nothing is mounted", async () => {
      await volume.unpublish(drivers.a.clients);
      assert.deepEqual(await nfsMounts(a), []);
      return "no mount";
    }],
  ]);
}
