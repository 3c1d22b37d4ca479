import assert from "node:assert/strict";
import { testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { aSnapshotId, testBase, testCluster } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { getSnapshot, listSnapshots, type SnapshotFilter } from "./list.ts";

const context = testContext();
const [a, b, c] = ["a", "b", "c"].map(aSnapshotId).toSorted() as [string, string, string];
const everything: SnapshotFilter = { id: "", source: "" };
const pathOf = (id: string, source: string, end = "/disk.img", base = testBase, cluster = testCluster) =>
  `${base}/${id}.${source}.1.n.${cluster}${end}`;

/** A router with a snapshot of `pvc-1`, two of `pvc-2`, and what looks like more. */
function controller() {
  const made = testController();
  const own = [pathOf(c, "pvc-1"), pathOf(a, "pvc-2", ".img"), pathOf(b, "pvc-2", ".img.0123abcd.part")];
  const others = [
    pathOf(a, "pvc-1", "/disk.img", testBase, "ffffffff"),
    pathOf(a, "pvc-1", "/disk.img", "/pool/backup"),
    pathOf(c, "pvc-1", "/disk.img", `${testBase}/deep`),
    pathOf(aSnapshotId("d"), "pvc-1", ".img.bak"),
    `${testBase}/pvc-1.${testCluster}/disk.img`,
  ];
  for (const path of [...others, ...own]) made.store.putImage(path, 7n);
  const list = async (filter: Partial<SnapshotFilter> = {}) =>
    (await listSnapshots(made.deps, { ...everything, ...filter }, context)).map((one) => [
      one.id,
      one.source,
    ]);
  return { ...made, list };
}

Deno.test("listSnapshots() lists this cluster's in order, but for one that is still copied, in one command", async () => {
  const { store, list } = controller();
  assert.deepEqual(await list(), [[a, "pvc-2"], [c, "pvc-1"]]);
  assert.deepEqual(store.calls.map((call) => call.method), ["files"]);
});

Deno.test("listSnapshots() lets a filter through what it says, and nothing that only reads like it", async () => {
  const { list } = controller();
  const cases: [Partial<SnapshotFilter>, string[]][] = [
    [{ id: a }, [a]],
    [{ id: b }, []],
    [{ id: aSnapshotId("none") }, []],
    [{ source: "pvc-1" }, [c]],
    [{ source: "pvc-2" }, [a]],
    [{ source: "pvc" }, []],
    [{ source: "vc-1" }, []],
    [{ source: "n" }, []],
    [{ source: "1" }, []],
    [{ id: a, source: "pvc-2" }, [a]],
    [{ id: a, source: "pvc-1" }, []],
  ];
  for (const [filter, ids] of cases) {
    assert.deepEqual((await list(filter)).map(([id]) => id), ids, JSON.stringify(filter));
  }
});

Deno.test("listSnapshots() asks nothing for a filter that no snapshot can meet", async () => {
  const { store, list } = controller();
  const filters = [{ id: "pvc-1" }, { id: "snap-1" }, { id: "x[find]" }, { source: a }, { source: "A" }];
  for (const filter of filters) assert.deepEqual(await list(filter), []);
  assert.equal(store.takeCount(), 0);
});

Deno.test("listSnapshots() and getSnapshot() do not answer while files may be missing", async () => {
  const { deps, store, clock, list } = controller();
  store.reboot();
  await assert.rejects(list(), refusal("unavailable", /booted only/));
  await assert.rejects(getSnapshot(deps, a, context), refusal("unavailable"));
  await clock.advance(120_000);
  assert.equal((await list()).length, 2);
  store.pools = [];
  await assert.rejects(list(), refusal("unavailable", /not mounted/));
  await assert.rejects(getSnapshot(deps, aSnapshotId("none"), context), refusal("unavailable"));
});

Deno.test("getSnapshot() shows one, and none that is still copied or not this cluster's", async () => {
  const { deps, store } = controller();
  assert.equal((await getSnapshot(deps, a, context)).imagePath, pathOf(a, "pvc-2", ".img"));
  assert.equal(store.takeCount(), 1);
  for (const id of [b, aSnapshotId("none"), aSnapshotId("d"), "pvc-1", "snap-"]) {
    await assert.rejects(getSnapshot(deps, id, context), refusal("not-found", /there is none/), id);
  }
});
