import assert from "node:assert/strict";
import { testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { testBase } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { assertLegacySnapshotGone, getSnapshot, listSnapshots } from "../snapshots/list.ts";

const context = testContext();
const id = "snap-7c9e6679-7425-40de-944b-e07fc1f90ae7-at-3a9f8c02d1";
const path = `${testBase}/${id}.img`;
const left = {
  id,
  imagePath: path,
  sizeBytes: 1n << 30n,
  exported: false,
  exportNqn: "",
  exportPort: 0,
  comment: "",
};

Deno.test("assertLegacySnapshotGone() refuses while disk or image is there, changes nothing, and takes one command", async () => {
  const { store, deps } = testController();
  store.put(left);
  const before = store.snapshot();
  await assert.rejects(
    assertLegacySnapshotGone(deps, "delete", id, context),
    refusal("precondition", /disk=snap-7c/),
  );
  assert.equal(store.takeCount(), 1);
  assert.deepEqual(store.snapshot(), before);
  store.disks.delete(id);
  await assert.rejects(
    assertLegacySnapshotGone(deps, "delete", id, context),
    refusal("precondition", /disk=none/),
  );
  store.allFiles.delete(path);
  await assertLegacySnapshotGone(deps, "delete", id, context);
});

Deno.test("assertLegacySnapshotGone() concludes nothing from what is not shown while that proves nothing", async () => {
  for (const trouble of ["young", "unmounted"] as const) {
    const { store, deps, clock } = testController();
    store.put(left);
    store.hidden.add(id);
    if (trouble === "young") {
      store.reboot();
      store.allFiles.delete(path);
    } else store.pools = [];
    await assert.rejects(
      assertLegacySnapshotGone(deps, "delete", id, context),
      refusal("unavailable", trouble === "young" ? /booted only/ : /not mounted/),
    );
    await clock.advance(1);
  }
});

Deno.test("listSnapshots() and getSnapshot() say of one by its id what it is, and list it nowhere", async () => {
  const { store, deps } = testController();
  store.put(left);
  const list = (id: string, source = "") => listSnapshots(deps, { id, source }, context);
  await assert.rejects(list(id), refusal("precondition", /of its data/));
  await assert.rejects(getSnapshot(deps, id, context), refusal("precondition", /of its data/));
  assert.deepEqual(await list(""), []);
  assert.deepEqual(await list("", "pvc-0f8fad5b-d9cb-469f-a165-70867728950e"), []);
  const none = id.replace("snap-7", "snap-8");
  assert.deepEqual(await list(none), []);
  await assert.rejects(getSnapshot(deps, none, context), refusal("not-found"));
});
