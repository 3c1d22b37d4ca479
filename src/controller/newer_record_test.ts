// After a rollback a record may hold fields that only a newer version knows. They may change what the record means, so
// nothing is done by it; but no node may be kept from giving the volume up.
import assert from "node:assert/strict";
import { FakeClusterView } from "../../tests/fakes/cluster_view.ts";
import {
  aCreate,
  aPublish,
  gibibyte,
  inTime,
  testContext,
  testController,
  testParameters,
} from "../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord } from "../../tests/fakes/records.ts";
import { refusal } from "../../tests/fakes/refusal.ts";
import { volumeCalls } from "../../tests/fakes/volume_calls.ts";
import { volumeIdFor } from "../volume/model/ids/ids.ts";
import { type VolumeRecord } from "../volume/model/record.ts";
import { publishedNodeIds } from "../volume/rules/publish.ts";
import { publishVolume } from "./attachments/publish.ts";
import { releaseVolume } from "./attachments/release.ts";
import { withdrawVolume } from "./attachments/unpublish.ts";
import type { ControllerDeps } from "./deps.ts";
import { importVolume } from "./import/import.ts";
import { adoptVolume } from "./legacy/adopt.ts";
import { ReconcileLoop } from "./reconcile/loop.ts";
import { createSnapshot } from "./snapshots/create.ts";
import { allowFormat } from "./volumes/allow_format.ts";
import { createVolume } from "./volumes/create.ts";
import { deleteVolume } from "./volumes/delete.ts";
import { expandVolume } from "./volumes/expand.ts";
import { listVolumeHealth } from "./volumes/health.ts";
import { getVolume, listVolumes } from "./volumes/read.ts";

const context = testContext();
const newerFields = ["y=0a0b0c0d", "z=1,2"];
const epoch = { counter: 3, nonce: "0123abcd" };
const shared = (nodeId: string) => aHolder(nodeId, { mode: "multi-node-multi-writer" });
const id = volumeIdFor("a");

/** A controller on a router with one volume, whose record a newer version has written. */
function controller(record: Partial<VolumeRecord> = {}, exported = (record.holders ?? []).length > 0) {
  const made = testController();
  made.store.put(aDisk(aRecord({ epoch, newerFields, ...record }), { id, exported }));
  const { record: read, ...calls } = volumeCalls(made, id);
  return { ...made, ...calls, read };
}

const refused: Readonly<Record<string, (deps: ControllerDeps) => Promise<unknown>>> = {
  CreateVolume: (deps) => createVolume(deps, aCreate("a"), context),
  "CreateVolume from it": (deps) =>
    createVolume(deps, aCreate("c", { source: { kind: "volume", id } }), context),
  DeleteVolume: (deps) => deleteVolume(deps, id, context),
  ControllerPublishVolume: (deps) => publishVolume(deps, id, aPublish("a"), testParameters, context),
  ControllerExpandVolume: (deps) =>
    expandVolume(deps, id, { requiredBytes: 2n * gibibyte, limitBytes: 0n }, context),
  CreateSnapshot: (deps) => createSnapshot(deps, { name: "s", source: id }, context),
  "allow-format": (deps) => allowFormat(deps, id, context),
  release: (deps) => releaseVolume(deps, id, context),
  import: (deps) => importVolume(deps, { ...anImport, id }, context),
  adopt: (deps) => adoptVolume(deps, id, anAdoption, context),
};

const anAdoption = {
  kind: { access: "mount", filesystem: "ext4" },
  mode: "single-node-writer",
  holders: [],
  forgotten: 0,
} as const;

const anImport = {
  imagePath: undefined,
  kind: undefined,
  mode: "single-node-writer",
  exportIsUnused: true,
  dryRun: false,
} as const;

for (const [call, run] of Object.entries(refused)) {
  Deno.test(`${call} refuses a volume whose record a newer version wrote, and changes nothing`, async () => {
    for (const holders of [[], [aHolder("a")]]) {
      const { deps, store } = controller({ holders });
      const before = store.snapshot();
      const newer = refusal("precondition", /newer version of this driver wrote its record.*fields=y, z/);
      await assert.rejects(run(deps), newer);
      assert.deepEqual(store.snapshot(), before);
      assert.ok(store.calls.every(({ method }) => /view/i.test(method)), JSON.stringify(store.calls));
    }
  });
}

Deno.test("unpublishing takes the volume from its last node, and keeps the fields of the newer version", async () => {
  const { unpublish, disk, read } = controller({ holders: [aHolder("a")] });
  await unpublish();
  assert.equal(disk().exported, false);
  assert.deepEqual([read().holders, read().newerFields], [[], newerFields]);
  assert.ok(read().withdrawnAtSeconds! > 0);
  await unpublish();
  assert.deepEqual(read().newerFields, newerFields);
});

Deno.test("unpublishing takes the volume from one of two nodes, and keeps the fields of the newer version", async () => {
  const made = controller({ capabilities: "block/x", holders: [shared("a"), shared("b")] });
  await made.unpublish();
  assert.deepEqual([made.disk().exported, made.holders(), made.read().newerFields], [true, "b", newerFields]);
});

Deno.test("withdrawVolume() takes such a volume from all of its nodes", async () => {
  const { deps, store, read } = controller({ capabilities: "block/x", holders: [shared("a"), shared("b")] });
  assert.deepEqual(await withdrawVolume(deps, id, context), ["a", "b"]);
  assert.equal(store.disks.get(id)!.exported, false);
  assert.deepEqual([read().holders, read().newerFields], [[], newerFields]);
});

Deno.test("such a volume is listed and shown with its holders, and is not sick", async () => {
  const { deps, notes } = controller({ holders: [aHolder("a")] });
  const listed = await listVolumes(deps, context);
  assert.deepEqual(listed.map((volume) => [volume.stored.id, publishedNodeIds(volume)]), [[id, ["a"]]]);
  assert.deepEqual(publishedNodeIds(await getVolume(deps, id, context)), ["a"]);
  assert.deepEqual(await listVolumeHealth(deps, context), []);
  assert.deepEqual(notes, []);
});

Deno.test("the reconcile loop leaves such a volume as it is, wanted or not, and says nothing", async () => {
  for (const exported of [true, false]) {
    const { deps, store, clock, notes, events } = controller({ holders: [aHolder("a")] }, exported);
    const before = store.snapshot();
    const cluster = new FakeClusterView();
    if (!exported) cluster.attach(id, "a");
    const rounds = new ReconcileLoop(deps, cluster, {
      intervalMs: 60_000,
      reconcile: { mode: "on", graceMs: 60_000 },
      namesOnRouter: true,
    });
    const stop = new AbortController();
    const running = rounds.run(stop.signal);
    await clock.advance(600_000);
    stop.abort();
    await inTime(clock, running);
    assert.deepEqual([store.snapshot(), notes], [before, []]);
    assert.ok(events.every(({ kind }) => kind === "health"));
  }
});
