import assert from "node:assert/strict";
import { FakeClusterView } from "../../../tests/fakes/cluster_view.ts";
import { aCreate, testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord, plainImage, subvolumeImage } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { volumeIdFor } from "../../volume/model/ids/ids.ts";
import type { VolumeHealth } from "../../volume/model/health/health.ts";
import { createVolume } from "./create.ts";
import { deleteVolume } from "./delete.ts";
import { expandVolume } from "./expand.ts";
import { getVolumeHealth, listVolumeHealth } from "./health.ts";

const context = testContext();
const epoch = { counter: 3, nonce: "0123abcd" };

function reasonsOf({ problems }: VolumeHealth): string[] {
  return problems.map(({ reason }) => reason);
}

Deno.test("getVolumeHealth() reads one volume in one command", async () => {
  const { deps, store } = testController();
  store.put(aDisk(aRecord()));
  assert.deepEqual(await getVolumeHealth(deps, "pvc-1", context), { id: "pvc-1", problems: [] });
  assert.deepEqual(store.calls.map((call) => call.method), ["view"]);
  store.edit("pvc-1", { exported: true });
  assert.deepEqual(reasonsOf(await getVolumeHealth(deps, "pvc-1", context)), ["ExportedWithoutHolder"]);
  store.put({ ...store.disks.get("pvc-1")!, id: "other", exported: false });
  const both = ["ExportedWithoutHolder", "ImageShared"];
  assert.deepEqual(reasonsOf(await getVolumeHealth(deps, "pvc-1", context)), both);
});

Deno.test("getVolumeHealth() reports a volume of which only the image is left", async () => {
  const { deps, store } = testController();
  store.putImage(plainImage("pvc-1"), 1n);
  assert.deepEqual(reasonsOf(await getVolumeHealth(deps, "pvc-1", context)), ["DiskMissing"]);
});

Deno.test("getVolumeHealth() calls a volume missing only when it provably is", async () => {
  const { deps, store, clock } = testController();
  const get = () => getVolumeHealth(deps, "pvc-1", context);
  await assert.rejects(get(), refusal("not-found", /volume=pvc-1/));
  store.hardware.set("pvc-1", "raid");
  await assert.rejects(get(), refusal("not-found"));
  store.hardware.clear();
  store.put(aDisk(aRecord({ cluster: "ffffffff" })));
  await assert.rejects(get(), refusal("not-found"));
  store.disks.clear();
  store.reboot();
  await assert.rejects(get(), refusal("unavailable", /booted only/));
  await clock.advance(120_000);
  store.pools = [];
  await assert.rejects(get(), refusal("unavailable", /not mounted/));
});

Deno.test("getVolumeHealth() judges nothing while a router that has restarted may still be bringing disks back", async () => {
  const { deps, store } = testController();
  store.put(aDisk(aRecord({ epoch, holders: [aHolder("a")] }), { exported: false }));
  store.reboot();
  await assert.rejects(getVolumeHealth(deps, "pvc-1", context), refusal("unavailable", /booted only/));
});

Deno.test("listVolumeHealth() lists only volumes that something is wrong with, in order", async () => {
  const { deps, store } = testController();
  for (const id of ["pvc-3", "pvc-2", "pvc-1"]) store.put(aDisk(aRecord(), { id }));
  assert.deepEqual(await listVolumeHealth(deps, context), []);
  assert.deepEqual(store.calls.map((call) => call.method), ["inventory", "files"]);
  store.edit("pvc-3", { exported: true });
  store.allFiles.delete(subvolumeImage("pvc-1"));
  store.putImage(plainImage("pvc-4"), 1n);
  store.put(aDisk(aRecord({ cluster: "ffffffff" }), { id: "pvc-5", exported: true }));
  const health = await listVolumeHealth(deps, context);
  assert.deepEqual(health.map((one) => [one.id, ...reasonsOf(one)]), [
    ["pvc-1", "ImageMissing"],
    ["pvc-3", "ExportedWithoutHolder"],
    ["pvc-4", "DiskMissing"],
  ]);
});

Deno.test("listVolumeHealth() does not judge by what changed between its two looks", async () => {
  const changes: Record<string, (made: ReturnType<typeof testController>) => Promise<unknown>> = {
    create: ({ deps }) => createVolume(deps, aCreate("b"), context),
    delete: ({ deps }) => deleteVolume(deps, volumeIdFor("a"), context),
    expand: ({ deps }) =>
      expandVolume(deps, volumeIdFor("a"), { requiredBytes: 5n << 30n, limitBytes: 0n }, context),
  };
  for (const [name, change] of Object.entries(changes)) {
    const made = testController();
    const { deps, store } = made;
    await createVolume(deps, aCreate("a"), context);
    store.put(aDisk(aRecord(), { id: "sick", exported: true }));
    const files = store.files.bind(store);
    store.files = async (...asked) => {
      store.files = files;
      await change(made);
      return await files(...asked);
    };
    const health = await listVolumeHealth(deps, context);
    assert.deepEqual(
      health.map((one) => [one.id, ...reasonsOf(one)]),
      [["sick", "ExportedWithoutHolder"]],
      name,
    );
  }
});

Deno.test("listVolumeHealth() reports a pool that went away with its volumes, and fails where it shows none", async () => {
  const { deps, store } = testController();
  store.put(aDisk(aRecord()));
  store.pools = [];
  const [health] = await listVolumeHealth(deps, context);
  assert.deepEqual([health?.id, reasonsOf(health!)], ["pvc-1", ["PoolNotMounted"]]);
  store.disks.clear();
  await assert.rejects(listVolumeHealth(deps, context), refusal("unavailable", /not mounted/));
});

Deno.test("listVolumeHealth() does not answer while disks may be missing", async () => {
  const { deps, store, clock } = testController();
  store.put(aDisk(aRecord()));
  store.hidden.add("pvc-1");
  store.reboot();
  await assert.rejects(listVolumeHealth(deps, context), refusal("unavailable", /booted only/));
  await clock.advance(119_999);
  await assert.rejects(listVolumeHealth(deps, context), refusal("unavailable"));
});

Deno.test("a router that restarts has no pod restarted whose StorageClass demands a device layer", async () => {
  for (const [deviceLayer, expected] of [["multipath", []], ["auto", ["RouterRestarted"]]] as const) {
    const cluster = new FakeClusterView();
    cluster.contexts.set("pvc-1", { deviceLayer });
    const { deps, store, clock } = testController({}, 1, cluster);
    const sinceSeconds = Math.floor(clock.now() / 1000);
    store.put(aDisk(aRecord({ epoch, holders: [aHolder("a", { sinceSeconds })] })));
    await clock.advance(60_000);
    store.reboot();
    await clock.advance(300_000);
    assert.deepEqual(reasonsOf(await getVolumeHealth(deps, "pvc-1", context)), expected, deviceLayer);
  }
});

Deno.test("a router that restarts under volumes in use has their pods restarted, unless it keeps identities over a boot", async () => {
  const known = [{}, { bootIdentity: "new" }, { bootIdentity: "kept" }] as const;
  for (const settings of known) {
    const { deps, store, clock } = testController(settings);
    const sinceSeconds = Math.floor(clock.now() / 1000);
    store.put(aDisk(aRecord({ epoch, holders: [aHolder("a", { sinceSeconds })] })));
    store.put(aDisk(aRecord(), { id: "pvc-2", imagePath: plainImage("pvc-2") }));
    await clock.advance(60_000);
    store.reboot();
    await clock.advance(300_000);
    const expected = settings === known[2] ? [] : ["RouterRestarted"];
    assert.deepEqual(reasonsOf(await getVolumeHealth(deps, "pvc-1", context)), expected);
    assert.deepEqual(
      (await listVolumeHealth(deps, context)).map(({ id }) => id),
      expected.map(() => "pvc-1"),
    );
    store.put(aDisk(aRecord({ epoch, holders: [aHolder("a", { sinceSeconds: sinceSeconds + 90 })] })));
    assert.deepEqual(reasonsOf(await getVolumeHealth(deps, "pvc-1", context)), [], "attached since");
  }
});

Deno.test("a router that answers late is not taken for one that has restarted", async () => {
  const { deps, store, clock } = testController();
  store.reboot();
  await clock.advance(300_000);
  const sinceSeconds = Math.floor(clock.now() / 1000) - 299;
  store.put(aDisk(aRecord({ epoch, holders: [aHolder("a", { sinceSeconds })] })));
  const files = store.files.bind(store);
  store.files = async (part, call) => {
    const answer = await files(part, call);
    await clock.advance(60_000);
    return answer;
  };
  assert.deepEqual(await listVolumeHealth(deps, context), []);
});

Deno.test("volumes above a critical fault of a drive are degraded, without another command", async () => {
  const { deps, store, clock } = testController();
  store.put(aDisk(aRecord()));
  store.put(aDisk(aRecord(), { id: "pvc-2" }));
  const fault = { severity: "critical", slot: "nvme1", pools: ["pool"], message: "it is bad" } as const;
  deps.hardware.keep([
    { ...fault, reason: "DriveReadOnly" },
    { ...fault, reason: "ArrayUnsound" },
    { ...fault, reason: "MemberFailed", pools: ["other"] },
    { ...fault, reason: "DriveWorn", severity: "warning" },
  ]);
  const both = ["PoolDegraded", "DriveFailing"];
  assert.deepEqual(reasonsOf(await getVolumeHealth(deps, "pvc-1", context)), both);
  assert.deepEqual(store.calls.map((call) => call.method), ["view"]);
  store.calls.length = 0;
  const all = await listVolumeHealth(deps, context);
  assert.deepEqual(all.map((one) => [one.id, ...reasonsOf(one)]), [["pvc-1", ...both], ["pvc-2", ...both]]);
  assert.equal(store.calls.length, 2);
  store.pools = store.pools.map((pool) => ({ ...pool, state: "degraded" }));
  const [first] = await listVolumeHealth(deps, context);
  assert.deepEqual(reasonsOf(first!), both, "once");
  await clock.advance(3 * 3_600_000);
  assert.deepEqual(
    reasonsOf(await getVolumeHealth(deps, "pvc-1", context)),
    ["PoolDegraded"],
    "too old a reading",
  );
});
