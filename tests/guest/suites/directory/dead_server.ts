import assert from "node:assert/strict";
import { codeOf } from "../../../../src/csi/server/client.ts";
import { startNfsServer } from "../../kit/nfs_server.ts";
import type { Bench } from "../../kit/suite.ts";
import { onServer, type Scene } from "./scene.ts";
import { DirectoryVolume, nfsMounts } from "./volume.ts";

async function timed<T>(work: Promise<T>): Promise<readonly [T | undefined, string | undefined, number]> {
  const began = performance.now();
  const [value, error] = await work.then(
    (value) => [value, undefined] as const,
    (error) => [undefined, codeOf(error) ?? String(error)] as const,
  );
  return [value, error, (performance.now() - began) / 1000];
}

type Test = readonly [name: string, body: () => Promise<string>];

/** Two volumes of the server that dies, and one of another server. */
interface Volumes {
  readonly volume: DirectoryVolume;
  readonly second: DirectoryVolume;
  readonly alive: DirectoryVolume;
}

/** A server that does not answer: its volumes can leave, and other servers' volumes go on. */
export async function deadServer(bench: Bench, scene: Scene): Promise<boolean> {
  const { server, b, address } = scene;
  await server.sh(`mkdir -p ${onServer("/pool/volumes/dead")} ${onServer("/pool/volumes/dead2")}`);
  const [volume, second] = ["dead", "dead2"].map((name) =>
    new DirectoryVolume(name, { addresses: address, export: "/pool", path: `/pool/volumes/${name}` })
  ) as [DirectoryVolume, DirectoryVolume];
  // The other node serves, too.
  await startNfsServer(b, b.disk("pool"));
  await b.sh(`mkdir -p ${onServer("/pool/volumes/alive")}`);
  const alive = new DirectoryVolume("alive", {
    addresses: `${address},${b.address}`,
    export: "/pool",
    path: "/pool/volumes/alive",
  });
  const volumes = { volume, second, alive };
  return await bench.story([...whileDead(scene, volumes), ...comingBack(scene, volumes)]);
}

/** The server stands still from the first test on. */
function whileDead(
  { server, a, b, address, drivers }: Scene,
  { volume, second, alive }: Volumes,
): readonly Test[] {
  const clients = drivers.a.clients;
  return [
    ["statistics and health of a dead server's volume end in time and say so", async () => {
      await volume.publish(clients);
      await second.publish(clients);
      await a.sh(`echo written > ${volume.target}/file`);
      assert.deepEqual(await volume.problems(clients), []);
      const { usage } = await volume.stats(clients);
      assert.ok(Number(usage[0]!.total) > 0);
      // As a container that the kubelet cannot end: it keeps the target busy.
      const user = await a.start(`cd ${second.target} && exec sleep 3600`);
      await a.until(`[ "$(readlink /proc/${await user.pid}/cwd)" = ${second.target} ]`);
      await server.freeze();
      const [, code, seconds] = await timed(volume.stats(clients));
      assert.ok(code === "UNAVAILABLE" || code === "DEADLINE_EXCEEDED", code);
      const [problems, , healthSeconds] = await timed(volume.problems(clients));
      assert.deepEqual(problems, ["ServerSilent"]);
      const { backendHealth } = await clients.node.call("NodeGetStorageHealth", {}, 60_000);
      assert.deepEqual(backendHealth.map(({ reason }) => reason), ["ServerSilent"]);
      return `statistics ${code} after ${seconds.toFixed(1)} s, health after ${healthSeconds.toFixed(1)} s`;
    }],
    ["a volume of another server is published meanwhile, from its second address", async () => {
      const [, code, seconds] = await timed(alive.publish(clients));
      assert.equal(code, undefined, drivers.a.service.tail(20));
      await a.sh(`echo alive > ${alive.target}/file`);
      assert.equal(await b.sh(`cat ${onServer("/pool/volumes/alive/file")}`), "alive");
      return `the dead first address cost ${seconds.toFixed(1)} s`;
    }],
    [
      "volumes of a dead server are unpublished, even a busy one, and the service goes on",
      async () => {
        const [, code, seconds] = await timed(volume.unpublish(clients));
        assert.equal(code, undefined);
        const [, last, lastSeconds] = await timed(second.unpublish(clients));
        assert.equal(last, undefined);
        const left = (await nfsMounts(a)).filter(([source]) => source.startsWith(`${address}:`));
        assert.deepEqual(left, []);
        const [, again, againSeconds] = await timed(volume.publish(clients));
        assert.equal(again, "UNAVAILABLE");
        return `${seconds.toFixed(1)} s, the last one ${
          lastSeconds.toFixed(1)
        } s; publishing again ${again} after ${againSeconds.toFixed(1)} s`;
      },
    ],
  ];
}

function comingBack({ server, a, drivers }: Scene, { volume, alive }: Volumes): readonly Test[] {
  const clients = drivers.a.clients;
  return [
    ["once the server answers again its volumes are back with their data", async () => {
      await server.thaw();
      await a.until("! grep -q dead /proc/self/mountinfo");
      await volume.publish(clients);
      assert.equal(await a.sh(`cat ${volume.target}/file`), "written");
      await volume.unpublish(clients);
      await alive.unpublish(clients);
      assert.deepEqual(await nfsMounts(a), []);
      return "the file is there, no mount is left";
    }],
    ["the driver has answered no call with INTERNAL", () => {
      const internal = drivers.a.service.lines.filter((line) => line.includes('"code":"INTERNAL"'));
      assert.deepEqual(internal, []);
      return Promise.resolve(`${drivers.a.service.lines.length} lines`);
    }],
  ];
}
