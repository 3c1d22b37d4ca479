import assert from "node:assert/strict";
import { codeOf } from "../../../../src/csi/server/client.ts";
import type { Bench } from "../../kit/suite.ts";
import { onServer, reset, type Scene } from "./scene.ts";
import { DirectoryVolume, nfsMounts, shares } from "./volume.ts";

type Test = readonly [name: string, body: () => Promise<string>];

/** One volume on one node: exports, links, owners, read-only binds. */
export async function oneVolume(bench: Bench, scene: Scene): Promise<boolean> {
  // The tests need each other's folders only, so that one may fail alone.
  for (const [name, body] of [...exportsAndLinks(scene), ...ownersAndTargets(scene)]) {
    if (!await bench.test(name, body)) await reset(scene);
  }
  return true;
}

function exportsAndLinks({ server, a, drivers, address }: Scene): readonly Test[] {
  return [
    ["the node registers, because its kernel has NFS", async () => {
      const { nodeId } = await drivers.a.clients.node.call("NodeGetInfo", {}, 30_000);
      assert.equal(nodeId, "a");
      return nodeId;
    }],

    ["a directory is bound from every depth of export, and nothing is left of it", async () => {
      await server.sh(
        `mkdir -p ${onServer("/pool/volumes/deep")} && echo here > ${onServer("/pool/volumes/deep/file")}`,
      );
      const exports = [undefined, "/", "/pool", "/pool/volumes", "/pool/volumes/deep"];
      for (const exported of exports) {
        const volume = new DirectoryVolume("deep", {
          addresses: address,
          path: "/pool/volumes/deep",
          ...exported === undefined ? {} : { export: exported },
        });
        await volume.publish(drivers.a.clients);
        assert.equal(await a.sh(`cat ${volume.target}/file`), "here");
        const sources = (await nfsMounts(a)).filter(([, path]) => path === volume.target).map(([source]) =>
          source
        );
        assert.deepEqual(sources, [`${address}:/pool/volumes/deep`]);
        assert.deepEqual(await shares(a).then((all) => all[0]), `${address}:${exported ?? "/"}`);
        await volume.unpublish(drivers.a.clients);
        assert.deepEqual(await nfsMounts(a), [], `export=${exported}`);
      }
      return `exports: ${exports.map((one) => one ?? "none given").join(", ")}`;
    }],

    ["links in the share that lead elsewhere are refused, and leave no mount", async () => {
      await server.sh(`cd ${onServer("/pool/volumes")} && mkdir -p real/inner && ln -s /etc absolute &&
      ln -s ../../../../../../../../../../../etc relative && ln -s real link && ln -s . self && touch plain`);
      const codes: string[] = [];
      for (const name of ["absolute", "relative", "link", "link/inner", "self/real", "plain", "missing"]) {
        const volume = new DirectoryVolume("link", {
          addresses: address,
          export: "/pool",
          path: `/pool/volumes/${name}`,
        });
        const error = await volume.publish(drivers.a.clients).then(() => undefined, (error) => error);
        codes.push(`${name} ${codeOf(error)}`);
        assert.ok(codeOf(error) === (name === "missing" ? "NOT_FOUND" : "FAILED_PRECONDITION"), codes.join());
        assert.deepEqual(await nfsMounts(a), []);
      }
      return codes.join(", ");
    }],
  ];
}

function ownersAndTargets({ server, a, drivers, address }: Scene): readonly Test[] {
  return [
    ["a new directory gets its owner once, and what a pod changes stays", async () => {
      await server.sh(`mkdir ${onServer("/pool/volumes/owned")}`);
      const volume = new DirectoryVolume("owned", {
        addresses: address,
        export: "/pool",
        path: "/pool/volumes/owned",
        directoryMode: "2770",
        uid: "1001",
        gid: "1002",
      });
      const owner = () => server.sh(`stat -c '%a %u %g' ${onServer("/pool/volumes/owned")}`);
      await volume.publish(drivers.a.clients);
      assert.equal(await owner(), "2770 1001 1002");
      await a.sh(`chmod 700 ${volume.target}`);
      await volume.unpublish(drivers.a.clients);
      await volume.publish(drivers.a.clients);
      assert.equal(await owner(), "700 1001 1002");
      await volume.unpublish(drivers.a.clients);
      return "2770 1001:1002, then 700";
    }],

    ["a read-only target takes no writes, and a writable one beside it does", async () => {
      await server.sh(`mkdir -p ${onServer("/pool/volumes/ro")}`);
      const volume = new DirectoryVolume("ro", {
        addresses: address,
        export: "/pool",
        path: "/pool/volumes/ro",
      });
      await volume.publish(drivers.a.clients);
      const reader = "/var/lib/kubelet/pods/reader/mount";
      await volume.publish(drivers.a.clients, true, reader);
      const { status, stderr } = await a.run(`touch ${reader}/file`);
      assert.notEqual(status, 0);
      assert.match(stderr, /Read-only/);
      await a.sh(`touch ${volume.target}/file && test -e ${reader}/file`);
      await volume.unpublish(drivers.a.clients, reader);
      await volume.unpublish(drivers.a.clients);
      assert.deepEqual(await nfsMounts(a), []);
      return stderr.trim();
    }],

    ["a server that takes only reserved ports is mounted as well", async () => {
      await server.sh(`sed -i 's/,insecure//' /etc/exports && exportfs -ra`);
      try {
        const volume = new DirectoryVolume("ro", {
          addresses: address,
          export: "/pool",
          path: "/pool/volumes/ro",
        });
        await volume.publish(drivers.a.clients);
        await volume.unpublish(drivers.a.clients);
        return "mounted, and unmounted";
      } finally {
        await server.sh(`sed -i 's/no_root_squash/insecure,no_root_squash/' /etc/exports && exportfs -ra`);
      }
    }],
  ];
}
