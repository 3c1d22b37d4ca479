import assert from "node:assert/strict";
import { locationOf, plainLocation, subvolumeLocation } from "../../src/volume/model/layout.ts";
import type { NewVolume } from "../../src/volume/ports/store.ts";
import { FakeClock } from "./clock.ts";
import { inTime, testContext } from "./controller_deps.ts";
import { withWrites } from "../support/store_writes.ts";
import { FakeVolumeStore } from "./volume_store.ts";

const filePrefix = "v.0a";
const imagePath = `/pool/csi/${filePrefix}.img`;
const location = plainLocation(imagePath);
const makeFolder = { path: "/pool/csi", label: "pool-fs" };
const volume: NewVolume = { id: "v", location, sizeBytes: 9n, comment: "one", makeFolder };
const one = { id: "v", comment: "one" };
const context = testContext();
const nqn = (text: string) => ({ export: { nqn: text, port: 4420 } });

/** A router with the volume on it. */
async function router() {
  const clock = new FakeClock();
  const store = withWrites(new FakeVolumeStore(clock));
  await store.add(volume, context);
  return { clock, store };
}

const inner = subvolumeLocation("/pool/csi/w.0a", "pool-fs");
const snapshot = subvolumeLocation("/pool/csi/snap-1.w.x.n.0a", "pool-fs");
const inSubvolume: NewVolume = {
  id: "w",
  location: inner,
  subvolume: { ...inner.subvolume!, readOnly: false },
  sizeBytes: 9n,
  comment: "one",
};

/** A router with a volume in a subvolume, and a read-only snapshot of that. */
async function withSnapshot() {
  const { clock, store } = await router();
  await store.add(inSubvolume, context);
  store.tree.contents.set(inner.path, "data");
  const frozen = { ...snapshot.subvolume!, parent: inner.subvolume!, readOnly: true };
  await store.addSubvolume(frozen, "/snap-1.", context);
  return { clock, store };
}

const copy = `${imagePath}.00ff00ff.part`;
const target = plainLocation("/pool/csi/u.0a.img");
const copied: NewVolume = {
  id: "u",
  location: target,
  sizeBytes: undefined,
  comment: "",
  copied: { path: copy },
};

// Its other behaviour is tested by tests/contract/store_contract_test.ts, together with the real store's.
Deno.test("FakeVolumeStore records what must never happen", async () => {
  const { store } = await router();
  store.lingerMs = 3_000;
  await store.change("v", "one", nqn("q1"), context);
  await store.change("v", "one", nqn("q2"), context);
  await store.change("v", "one", { sizeBytes: 1n }, context);
  await store.remove(one, location, filePrefix, context);
  store.putFile(imagePath);
  await store.add(volume, context);
  assert.deepEqual(store.violations, [
    `${imagePath} through q2 and q1`,
    `${imagePath} was cut`,
    "v was made smaller",
    `${imagePath} through q2 and q1`,
    `${imagePath} went while it could be reached`,
    `v adopted the data in ${imagePath}`,
  ]);
});

Deno.test("FakeVolumeStore records what must never happen to subvolumes and copies", async () => {
  const { store, clock } = await withSnapshot();
  store.lingerMs = 3_000;
  await store.change("w", "one", nqn("q1"), context);
  await store.change("w", "one", { export: false }, context);
  await store.remove({ id: "w", comment: "one" }, inner, "/w.0a", context);
  const frozen = {
    id: "s",
    location: locationOf(snapshot.path, store.pools),
    sizeBytes: undefined,
    comment: "",
  };
  await store.add(frozen, context);
  await store.change("s", "", { sizeBytes: 10n }, context);
  await store.change("s", "", nqn("q2"), context);
  store.tree.contents.set(imagePath, "first");
  store.mishap("copyFile", { takesMs: 2_000 });
  const copying = store.copyFile(imagePath, copy, context);
  await clock.advance(1_000);
  store.tree.contents.set(imagePath, "second");
  assert.deepEqual(await inTime(clock, copying), { done: true });
  await store.add(copied, context);
  assert.deepEqual(store.violations, [
    `${inner.path} went while it could be reached`,
    `${snapshot.path} is read-only, and was grown`,
    `${snapshot.path} is read-only, and was exported`,
    `${copied.location.path} is a copy that is not whole`,
  ]);
});
