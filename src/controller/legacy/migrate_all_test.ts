import assert from "node:assert/strict";
import { aClusterVolume, anAttachment, FakeClusterView } from "../../../tests/fakes/cluster_view.ts";
import { testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { testBase, testCluster, testPrefix } from "../../../tests/fakes/records.ts";
import { judgeOwnership } from "../../volume/rules/ownership.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { migrateAll, migrateAtStart } from "./migrate_all.ts";

function legacyId(digit: number): string {
  return `pvc-${digit}f8fad5b-d9cb-469f-a165-70867728950e`;
}

function earlier(digit: number, over: Partial<StoredVolume> = {}): StoredVolume {
  const id = legacyId(digit);
  return {
    id,
    imagePath: `${testBase}/${id}.img`,
    sizeBytes: 1n << 30n,
    exported: true,
    exportNqn: `${testPrefix}:${id}`,
    exportPort: 4420,
    comment: "",
    ...over,
  };
}

function scene() {
  const cluster = new FakeClusterView();
  const test = testController({}, 1, cluster);
  for (const digit of [1, 2, 3]) test.store.put(earlier(digit));
  cluster.used = [1, 2].map((digit) => aClusterVolume(legacyId(digit)));
  cluster.attached = [anAttachment(legacyId(1), "node-1")];
  const stateOf = (digit: number) =>
    judgeOwnership(test.store.disks.get(legacyId(digit))!, testCluster).state;
  return { ...test, cluster, stateOf };
}

Deno.test("migrateAll() takes over what this cluster names, and changes nothing but comments", async () => {
  const { deps, store, stateOf } = scene();
  const before = [...store.disks.values()];
  assert.equal((await migrateAll(deps, testContext())).taken, 2);
  assert.deepEqual([1, 2, 3].map(stateOf), ["owned", "owned", "earlier-driver"]);
  assert.deepEqual([...store.disks.values()].map((disk) => ({ ...disk, comment: "" })), before);
  assert.equal((await migrateAll(deps, testContext())).taken, 0);
  assert.deepEqual(store.violations, []);
});

Deno.test("migrateAll() reports a doubt and goes on with the others", async () => {
  const { deps, cluster, notes, stateOf } = scene();
  cluster.attached = [anAttachment(legacyId(1), "node-1"), anAttachment(legacyId(1), "node-2")];
  assert.equal((await migrateAll(deps, testContext())).taken, 1);
  assert.deepEqual([1, 2].map(stateOf), ["earlier-driver", "owned"]);
  assert.deepEqual(notes, ["cannot take over a volume of the legacy driver"]);
});

Deno.test("migrateAll() leaves a volume whose comment somebody changes in the same moment", async () => {
  const { deps, store, stateOf } = scene();
  store.mishap("change", { before: () => store.edit(legacyId(1), { comment: "mine" }) });
  assert.equal((await migrateAll(deps, testContext())).taken, 1);
  assert.equal(stateOf(1), "earlier-driver");
  assert.equal(store.disks.get(legacyId(1))!.comment, "mine");
});

Deno.test("migrateAtStart() waits for the cluster, and ends with the signal", async () => {
  const { deps, cluster, clock, stateOf } = scene();
  cluster.readable = false;
  const stop = new AbortController();
  const running = migrateAtStart(deps, stop.signal);
  await clock.advance(30_000);
  assert.equal(stateOf(1), "earlier-driver");
  cluster.readable = true;
  await clock.advance(30_000);
  await running;
  assert.equal(stateOf(1), "owned");
  cluster.readable = false;
  deps.store.inventory = () => Promise.reject(new Error("away"));
  const endless = migrateAtStart(deps, stop.signal);
  await clock.advance(30_000);
  stop.abort(new Error("stop"));
  await endless;
  assert.equal(clock.waiting, 0);
});

Deno.test("migrateAtStart() waits until the router has brought all its disks back", async () => {
  const { deps, store, clock, stateOf } = scene();
  store.reboot();
  store.hidden.add(legacyId(2));
  const running = migrateAtStart(deps, new AbortController().signal);
  await clock.advance(60_000);
  store.hidden.clear();
  await clock.advance(90_000);
  await running;
  assert.deepEqual([1, 2].map(stateOf), ["owned", "owned"]);
});
