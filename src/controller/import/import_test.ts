import assert from "node:assert/strict";
import { aClusterVolume, anAttachment, FakeClusterView } from "../../../tests/fakes/cluster_view.ts";
import { gibibyte, testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { testCluster } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { getOwned, judgeOwnership } from "../../volume/rules/ownership.ts";
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

Deno.test("importVolume() leaves the file of a disk whose record the router cuts, and makes no volume of it", async () => {
  const { deps, store } = testController();
  store.putFile("/pool/disks", 0n, true);
  store.putImage(path, gibibyte);
  store.mishap("addAlone", {
    after: () => store.edit(id, { comment: store.disks.get(id)!.comment.slice(0, -9) }),
  });
  const importing = importVolume(deps, { ...request, imagePath: path }, testContext());
  await assert.rejects(importing, refusal("unavailable", /Cannot import the file because/));
  assert.equal(store.allFiles.get(path)?.sizeBytes, gibibyte);
  assert.notEqual(judgeOwnership(store.disks.get(id)!, testCluster).state, "owned");
});

Deno.test("importVolume() gives a disk that was changed meanwhile its comment back", async () => {
  const { deps, store } = testController();
  store.put({ ...disk, id, imagePath: path, comment: "films of mine" });
  store.mishap("change", { after: () => store.edit(id, { sizeBytes: 2n * gibibyte }) });
  const importing = importVolume(deps, { ...request, imagePath: undefined }, testContext());
  await assert.rejects(importing, refusal("busy", /changed at the same time.*check it/));
  assert.equal(store.disks.get(id)!.comment, "films of mine");
});

Deno.test("importVolume() withdraws an export that nobody uses, after the record is written", async () => {
  const { deps, store } = testController();
  store.put({ ...disk, id, imagePath: path, exported: true, exportNqn: "nqn.2014-08.org.example:films" });
  const unused = { ...request, imagePath: undefined, exportIsUnused: true };
  const done = await importVolume(deps, unused, testContext());
  assert.deepEqual([done.outcome, done.withdrawn], ["imported", "nqn.2014-08.org.example:films"]);
  assert.deepEqual(store.calls.map(({ method }) => method), ["view", "createView", "change", "change"]);
  const { exported, comment } = store.disks.get(id)!;
  assert.equal(exported, false);
  assert.equal((await importVolume(deps, unused, testContext())).outcome, "already");
  assert.equal(store.disks.get(id)!.comment, comment);
});

Deno.test("importVolume() withdraws an export that has no name", async () => {
  const { deps, store } = testController();
  const unused = { ...request, imagePath: undefined, exportIsUnused: true };
  store.put({ ...disk, id, imagePath: path, exported: true });
  const done = await importVolume(deps, unused, testContext());
  assert.deepEqual([done.outcome, done.withdrawn], ["imported", ""]);
  assert.equal(store.disks.get(id)!.exported, false);
  store.edit(id, { exported: true, exportNqn: "" });
  const again = importVolume(deps, { ...unused, exportIsUnused: false }, testContext());
  await assert.rejects(again, refusal("precondition", /it is exported, but no node holds it/));
  assert.equal((await importVolume(deps, unused, testContext())).outcome, "already");
  assert.equal(store.disks.get(id)!.exported, false);
});

for (
  const [what, edit] of [
    ["another file", { imagePath: "/pool/disks/other.img" }],
    ["a file of another size", { sizeBytes: 2n * gibibyte }],
  ] as const
) {
  Deno.test(`importVolume() makes no volume of a disk that the router made of ${what}`, async () => {
    const { deps, store } = testController();
    store.putFile("/pool/disks", 0n, true);
    store.putImage(path, gibibyte);
    store.mishap("addAlone", { after: () => store.edit(id, edit) });
    const importing = importVolume(deps, { ...request, imagePath: path }, testContext());
    await assert.rejects(importing, refusal("precondition", /did not take the file as it was/));
    assert.equal(store.disks.get(id)!.comment, "");
  });
}

Deno.test("importVolume() tells what is wrong with a disk also where its record cannot be taken away", async () => {
  const { deps, store } = testController();
  store.putFile("/pool/disks", 0n, true);
  store.putImage(path, gibibyte);
  store.mishap("addAlone", { after: () => store.edit(id, { sizeBytes: 2n * gibibyte }) });
  store.mishap("change", { refusal: "busy" });
  const importing = importVolume(deps, { ...request, imagePath: path }, testContext());
  await assert.rejects(
    importing,
    refusal(
      "precondition",
      /did not take the file as it was.*its record may still be there.*answered "busy"/,
    ),
  );
});

/** An import of a file whose answer was lost, and what repeats it. */
async function lostImport() {
  const { deps, store } = testController();
  store.putFile("/pool/disks", 0n, true);
  store.putImage(path, gibibyte);
  store.mishap("addAlone", { unreadable: true });
  const repeat = () => importVolume(deps, { ...request, imagePath: path }, testContext());
  await assert.rejects(repeat());
  return { store, repeat };
}

for (
  const [what, edit, other] of [
    ["a file of another size", { sizeBytes: gibibyte / 2n }, undefined],
    ["a file that another disk uses", {}, "films2"],
  ] as const
) {
  Deno.test(`importVolume() calls no import of ${what} done because an earlier answer was lost`, async () => {
    const { store, repeat } = await lostImport();
    store.edit(id, edit);
    if (other !== undefined) store.put({ ...disk, id: other, imagePath: path });
    await assert.rejects(
      repeat(),
      refusal("precondition", /of the whole file|another disk was made of its file/),
    );
  });
}

Deno.test("importVolume() says of a file that it was imported before when the answer was lost", async () => {
  const { repeat } = await lostImport();
  assert.equal((await repeat()).outcome, "already");
});
