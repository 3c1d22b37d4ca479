import assert from "node:assert/strict";
import type { Bench } from "../../kit/suite.ts";
import { onServer, type Scene, startNode } from "./scene.ts";
import { DirectoryVolume, nfsMounts, patiently, shares } from "./volume.ts";

const count = 50;

/** Many volumes on one mount, which leave in another order than they came. */
export async function manyVolumes(bench: Bench, scene: Scene): Promise<boolean> {
  const { server, a, drivers, address } = scene;
  const names = Array.from({ length: count }, (_, at) => `many-${at}`);
  await server.sh(`cd ${onServer("/pool/volumes")} && mkdir ${names.join(" ")}`);
  const volumes = names.map((name) =>
    new DirectoryVolume(name, { addresses: address, export: "/pool", path: `/pool/volumes/${name}` })
  );

  return await bench.story([
    [`${count} volumes that come at once share one mount`, async () => {
      const began = performance.now();
      await Promise.all(volumes.map((volume) => patiently(() => volume.publish(drivers.a.clients))));
      const seconds = ((performance.now() - began) / 1000).toFixed(0);
      assert.deepEqual(await shares(a), [`${address}:/pool`]);
      assert.equal((await nfsMounts(a)).length, count + 1);
      await a.sh(
        `for i in $(seq 0 ${count - 1}); do echo $i > /var/lib/kubelet/pods/many-$i/mount/own; done`,
      );
      for (const at of [0, 7, count - 1]) {
        assert.equal(await server.sh(`cat ${onServer(`/pool/volumes/many-${at}/own`)}`), `${at}`);
      }
      return `published in ${seconds} s`;
    }],
    [
      "a restart that has lost its memory keeps the mount until the last volume leaves, in any order",
      async () => {
        const order = volumes.map((volume, at) => ({ volume, at: (at * 37 + 11) % count }))
          .toSorted((one, other) => one.at - other.at).map(({ volume }) => volume);
        const [early, late] = [order.slice(0, count / 2), order.slice(count / 2)];
        await Promise.all(early.map((volume) => patiently(() => volume.unpublish(drivers.a.clients))));
        assert.equal((await shares(a)).length, 1);
        await drivers.a.kill();
        drivers.a = await startNode(a, "a");
        assert.equal((await shares(a)).length, 1);
        await Promise.all(
          late.slice(1).map((volume) => patiently(() => volume.unpublish(drivers.a.clients))),
        );
        assert.equal((await shares(a)).length, 1, "one volume is left");
        await late[0]!.unpublish(drivers.a.clients);
        assert.deepEqual(await nfsMounts(a), []);
        return `${early.length} before the restart, ${late.length} after it`;
      },
    ],
    ["a mount that a killed driver has left without a volume is unmounted by the next start", async () => {
      const volume = volumes[0]!;
      await volume.publish(drivers.a.clients);
      await drivers.a.kill();
      await a.sh(`umount ${volume.target}`);
      assert.equal((await shares(a)).length, 1);
      drivers.a = await startNode(a, "a");
      await a.until("! grep -q ' nfs4 ' /proc/self/mountinfo", { limitSeconds: 60 });
      return "gone";
    }],
  ]);
}
