import assert from "node:assert/strict";
import { aClusterVolume, anAttachment, FakeClusterView } from "../../../tests/fakes/cluster_view.ts";
import { gibibyte, testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { testCluster } from "../../../tests/fakes/records.ts";
import { getOwned } from "../../volume/rules/ownership.ts";
import { importVolume } from "./import.ts";

const id = "films";
const path = "/pool/disks/films.img";
const disk = { sizeBytes: gibibyte, exported: false, exportNqn: "", exportPort: 0, comment: "" };
const request = {
  id,
  kind: { access: "mount", filesystem: "ext4" },
  mode: "single-node-writer",
  exportIsUnused: false,
  dryRun: false,
} as const;

for (const imagePath of [undefined, path]) {
  const what = imagePath === undefined ? "a disk" : "a file";
  Deno.test(`importVolume() gives ${what} no epoch that looks older than one that a node was given before`, async () => {
    const cluster = new FakeClusterView();
    cluster.used = [aClusterVolume(id)];
    cluster.attached = [anAttachment(id, "node-1", { epochCounter: 3 })];
    const { deps, store } = testController({}, 1, cluster);
    if (imagePath === undefined) store.put({ ...disk, id, imagePath: path });
    store.putFile("/pool/disks", 0n, true);
    if (imagePath !== undefined) store.putImage(path, gibibyte);
    assert.equal((await importVolume(deps, { ...request, imagePath }, testContext())).outcome, "imported");
    assert.equal(getOwned(store.disks.get(id)!, testCluster, "test").record.epoch?.counter, 3);
  });
}
