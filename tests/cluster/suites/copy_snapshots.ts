import assert from "node:assert/strict";
import { type Block, blocksOf, readPage } from "../../docs/pages.ts";
import type { Suite } from "../kit/bench.ts";
import { type Cluster, renderAndApply } from "../kit/cluster.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import { claimOf, idle, paths, podOf } from "../kit/objects.ts";
import { Workload } from "../kit/workload.ts";
import { importImage, PagePerson, type } from "./pages/person.ts";

/** The page's own names: claims, and their copies. */
const [files, filesCopy, disk, diskCopy] = ["data", "data-copy", "disk", "disk-copy"];

/** The Jobs of docs/guides/snapshots.md copy what was written before the snapshot, while its source is in use. */
export const suite: Suite = {
  what:
    "every command for a shell under two headings of docs/guides/snapshots.md: snapshots are copied to volumes of other classes",
  limitMinutes: 6,
  run: async (bench) => {
    const [byFiles, byBytes] = blocksOfPage();
    const [choose, takeSnapshot, copyFiles, cleanUp] = byFiles;
    const [chooseDisk, copyBytes] = byBytes;
    const person = await PagePerson.make(bench, "127.0.0.1", {});
    const cluster = await bench.cluster({
      nodes: { n1: "kubelet" },
      install: async (location) => {
        await person.begin(location);
        return await renderAndApply(location, {});
      },
    });
    const work = new Workload(cluster, bench.signal);
    await importImage(cluster, bench);
    await bench.test("a pod has written to both claims, and goes on", () => begin(cluster, work));
    await type(bench, person, [choose, takeSnapshot]);
    await work.exec("writer", "echo later >/data/file; sync");
    await type(bench, person, [copyFiles, cleanUp, chooseDisk, takeSnapshot]);
    await work.exec("writer", "echo later | dd of=/dev/disk conv=notrunc,fsync 2>/dev/null");
    await type(bench, person, [copyBytes, cleanUp]);
    await bench.test("the copies hold what their sources held then", async () => {
      await work.create(paths.pods, podOf("reader", idle, { filesystems: [filesCopy], devices: [diskCopy] }));
      await work.running("reader");
      const seen = await work.exec(
        "reader",
        `cat /${filesCopy}/file; stat -c %a:%u /${filesCopy}/folder; head -c 6 /dev/${diskCopy}`,
      );
      assert.equal(seen, "before\n750:7\nbefore");
      return seen.replaceAll("\n", ", ");
    });
    await bench.test("with the claims everything goes", async () => {
      await work.remove(paths.pods, "writer", "reader");
      await work.remove(paths.claims, files, filesCopy, disk, diskCopy);
      for (const path of [paths.volumes, paths.snapshotContents, paths.attachments]) await work.gone(path);
      return await assertNothingLeft(cluster, bench.signal);
    });
  },
};

/** What is typed for files and for raw blocks. */
function blocksOfPage(): [[Block, Block, Block, Block], [Block, Block]] {
  const blocks = blocksOf(readPage("docs/guides/snapshots.md")).filter(({ language }) => language === "sh");
  const [byFiles, byBytes] = ["By a Job", "A raw block volume"].map((wanted) =>
    blocks.filter(({ heading }) => heading === wanted)
  ) as [Block[], Block[]];
  assert.deepEqual([byFiles.length, byBytes.length], [4, 2]);
  return [byFiles as [Block, Block, Block, Block], byBytes as [Block, Block]];
}

async function begin(cluster: Cluster, work: Workload): Promise<string> {
  await cluster.api.create("/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses", {
    apiVersion: "snapshot.storage.k8s.io/v1",
    kind: "VolumeSnapshotClass",
    metadata: { name: "rds-snapshots" },
    driver: "rds.csi.srvlab.io",
    deletionPolicy: "Delete",
  });
  const asked = { mebibytes: 1024 } as const;
  await work.create(
    paths.claims,
    claimOf(files, { ...asked, mode: "Filesystem", storageClass: "rds-ext4" }),
  );
  await work.create(paths.claims, claimOf(disk, { ...asked, mode: "Block", storageClass: "rds-block" }));
  await work.create(paths.pods, podOf("writer", idle, { filesystems: [files], devices: [disk] }));
  await work.running("writer");
  return await work.exec(
    "writer",
    "echo before | dd of=/dev/disk conv=notrunc,fsync 2>/dev/null; cd /data; echo before >file; " +
      "mkdir -m 750 folder; chown 7 folder; sync; cat file",
  );
}
