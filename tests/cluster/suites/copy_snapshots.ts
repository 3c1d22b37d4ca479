import assert from "node:assert/strict";
import { blocksOf, readPage } from "../../docs/pages.ts";
import type { Suite } from "../kit/bench.ts";
import { type Cluster, renderAndApply } from "../kit/cluster.ts";
import { assertNothingLeft } from "../kit/nothing_left.ts";
import { claimOf, idle, paths, podOf } from "../kit/objects.ts";
import { Workload } from "../kit/workload.ts";
import { importImage, PagePerson, type } from "./pages/person.ts";

/** The page's own names: the claim, and its copy. */
const [claim, copy] = ["data", "data-copy"];

/** The Job of docs/guides/copy-snapshots.md copies what was written before the snapshot, while its source is in use. */
export const suite: Suite = {
  what:
    "every command for a shell in docs/guides/copy-snapshots.md: a snapshot is copied to a volume of another class",
  limitMinutes: 6,
  run: async (bench) => {
    const blocks = blocksOf(readPage("docs/guides/copy-snapshots.md")).filter(({ language }) =>
      language === "sh"
    );
    const copying = blocks.findIndex(({ text }) => text.includes("kind: Job"));
    assert(copying > 0);
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
    await bench.test("a pod has written to the claim, and goes on", () => begin(cluster, work));
    await type(bench, person, blocks.slice(0, copying));
    await work.exec("writer", "echo later >/data/file; sync");
    await type(bench, person, blocks.slice(copying, copying + 1));
    await bench.test("the copy holds what the source held then", async () => {
      await work.create(paths.pods, podOf("reader", idle, { filesystems: [copy] }));
      await work.running("reader");
      const seen = await work.exec("reader", `cat /${copy}/file; stat -c %a:%u /${copy}/folder`);
      assert.equal(seen, "before\n750:7");
      return seen.replace("\n", ", ");
    });
    await type(bench, person, blocks.slice(copying + 1));
    await bench.test("with the claims and the Job everything goes", async () => {
      await work.remove(paths.pods, "writer", "reader");
      await work.remove(paths.claims, claim, copy);
      for (const path of [paths.volumes, paths.snapshotContents, paths.attachments]) await work.gone(path);
      return await assertNothingLeft(cluster, bench.signal);
    });
  },
};

async function begin(cluster: Cluster, work: Workload): Promise<string> {
  await cluster.api.create("/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses", {
    apiVersion: "snapshot.storage.k8s.io/v1",
    kind: "VolumeSnapshotClass",
    metadata: { name: "rds-snapshots" },
    driver: "rds.csi.srvlab.io",
    deletionPolicy: "Delete",
  });
  const asked = { mode: "Filesystem", mebibytes: 1024, storageClass: "rds-ext4" } as const;
  await work.create(paths.claims, claimOf(claim, asked));
  await work.create(paths.pods, podOf("writer", idle, { filesystems: [claim] }));
  await work.running("writer");
  return await work.exec(
    "writer",
    "cd /data; echo before >file; mkdir -m 750 folder; chown 7 folder; sync; cat file",
  );
}
