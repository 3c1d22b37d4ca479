import assert from "node:assert/strict";
import { nfsClients } from "../../kit/nfs_server.ts";
import type { Bench } from "../../kit/suite.ts";
import { onServer, type Scene } from "./scene.ts";
import { DirectoryVolume } from "./volume.ts";

const rounds = 40;
const lines = 100;

type Test = readonly [name: string, body: () => Promise<string>];

/** Two nodes write, count and rename in one directory. */
export async function twoNodes(bench: Bench, scene: Scene): Promise<boolean> {
  const { server, a, b, drivers, address } = scene;
  await server.sh(`mkdir -p ${onServer("/pool/volumes/shared")}`);
  const volume = new DirectoryVolume("shared", {
    addresses: address,
    export: "/pool",
    path: "/pool/volumes/shared",
  });
  const at = volume.target;

  return await bench.story([
    ["two nodes of one host name are two clients to the server", async () => {
      await Promise.all([volume.publish(drivers.a.clients), volume.publish(drivers.b.clients)]);
      const names = await nfsClients(server);
      assert.equal(new Set(names).size, 2, names.join());
      for (const name of names) assert.match(name, /rds-csi-[0-9a-f]{32}\/node/);
      return names.join(", ");
    }],
    ...seeing(scene, at),
    locking(scene, at),
    renaming(scene, at),
    ["both nodes leave, and nothing is mounted", async () => {
      await Promise.all([volume.unpublish(drivers.a.clients), volume.unpublish(drivers.b.clients)]);
      for (const guest of [a, b]) await guest.sh("! grep -q ' nfs4 ' /proc/self/mountinfo");
      return "no mount on either node";
    }],
  ]);
}

/** What one node sees of the other. */
function seeing({ server, a, b }: Scene, at: string): readonly Test[] {
  return [
    ["what one node has written and closed, the other one reads", async () => {
      for (let round = 0; round < 20; round++) {
        const [writer, reader] = round % 2 === 0 ? [a, b] : [b, a];
        await writer.sh(`echo ${round} > ${at}/value`);
        assert.equal(await reader.sh(`cat ${at}/value`), `${round}`);
      }
      return "20 rounds";
    }],
    ["a node sees a name at once that it has just not found", async () => {
      await a.run(`cat ${at}/later`);
      await server.sh(`echo now > ${onServer("/pool/volumes/shared/later")}`);
      assert.equal(await a.sh(`cat ${at}/later`), "now");
      return "made on the server";
    }],
  ];
}

/** A lock between the nodes. */
function locking({ a, b }: Scene, at: string): Test {
  return ["two nodes count in one file under a lock, and none of their steps is lost", async () => {
    await a.sh(`echo 0 > ${at}/counter`);
    const count = `for i in $(seq ${rounds}); do
      flock -x ${at}/lock sh -c 'read -r n < ${at}/counter; echo $((n + 1)) > ${at}/counter'; done`;
    await Promise.all([a, b].map((guest) => guest.sh(count, { limitSeconds: 300 })));
    assert.equal(await a.sh(`cat ${at}/counter`), `${2 * rounds}`);
    return `${rounds} steps each`;
  }];
}

/** Renames of both nodes onto one name. */
function renaming({ server, a, b }: Scene, at: string): Test {
  return ["two nodes rename onto one name, and every reader sees one of them whole", async () => {
    const write = (name: string, times: number) =>
      `for i in $(seq ${times}); do
          n=0; while [ $n -lt ${lines} ]; do echo "${name} $i"; n=$((n + 1)); done > ${at}/new-${name}
          mv ${at}/new-${name} ${at}/current; done`;
    await a.sh(write("start", 1));
    let isOver = false;
    const over = Promise.all(
      [a, b].map((guest) => guest.sh(write(guest.name, rounds), { limitSeconds: 300 })),
    )
      .then(() => undefined, (error: unknown) => error).finally(() => isOver = true);
    let [reads, reopened] = [0, 0];
    while (!isOver) {
      const { status, stdout, stderr } = await b.run(`cat ${at}/current`);
      if (status !== 0) {
        // Linux's server may lose an open file whose name another node has replaced: a program has to open it again.
        assert.match(stderr, /Stale file handle/);
        reopened++;
        continue;
      }
      const found = stdout.split("\n");
      assert.equal(found.length, lines);
      assert.equal(new Set(found).size, 1);
      reads++;
    }
    assert.equal(await over, undefined);
    assert.ok(reads > 5, `only ${reads} reads`);
    assert.equal(await server.sh(`ls ${onServer("/pool/volumes/shared")} | grep -c new- || true`), "0");
    return `${2 * rounds} renames, ${reads} reads, ${reopened} of a file that was replaced while it was read`;
  }];
}
