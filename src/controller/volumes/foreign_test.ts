import { refusedUnchanged } from "../../../tests/fakes/endings.ts";
import assert from "node:assert/strict";
import {
  aCreate,
  aPublish,
  gibibyte,
  testContext,
  testController,
  testParameters,
} from "../../../tests/fakes/controller_world.ts";
import { aDisk, aRecord, testPrefix } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import type { FakeVolumeStore } from "../../../tests/fakes/volume_store.ts";
import { volumeIdFor } from "../../volume/model/ids.ts";
import { allowFormat } from "./allow_format.ts";
import { createVolume } from "./create.ts";
import { deleteVolume } from "./delete.ts";
import { expandVolume } from "./expand.ts";
import { listVolumeHealth } from "./health.ts";
import { publishVolume } from "../attachments/publish.ts";
import { getVolume, listVolumes } from "./read.ts";
import { createSnapshot } from "../snapshots/create.ts";
import { unpublishVolume } from "../attachments/unpublish.ts";
import type { ControllerWorld } from "../deps.ts";

const context = testContext();
const grown = { requiredBytes: 2n * gibibyte, limitBytes: 0n };

/** The volume name whose slot is occupied. */
const name = "wanted";

const changingCalls: Record<string, (world: ControllerWorld, id: string) => Promise<unknown>> = {
  DeleteVolume: (world, id) => deleteVolume(world, id, context),
  ControllerPublishVolume: (world, id) => publishVolume(world, id, aPublish("a"), testParameters, context),
  ControllerUnpublishVolume: (world, id) => unpublishVolume(world, id, "a", context),
  "ControllerUnpublishVolume from all": (world, id) => unpublishVolume(world, id, "", context),
  ControllerExpandVolume: (world, id) => expandVolume(world, id, grown, context),
  "allow-format": (world, id) => allowFormat(world, id, context),
  CreateSnapshot: (world, id) => createSnapshot(world, { name: "s", source: id }, context),
};

/** Cloning looks at the new volume first, and has to look once more at a source that is no disk of files. */
const clone = (world: ControllerWorld, id: string) =>
  createVolume(world, aCreate("c", { source: { kind: "volume", id } }), context);

/** What can be in a slot that is not this cluster's volume. */
const occupants: Record<string, (store: FakeVolumeStore, id: string) => void> = {
  raid: (store, id) => store.hardware.set(id, "raid"),
  hardware: (store, id) => store.hardware.set(id, "hardware"),
  "a file disk without a record": (store, id) =>
    store.put(aDisk(aRecord(), { id, comment: "backups", exported: true })),
  "another cluster's volume": (store, id) => store.put(aDisk(aRecord({ cluster: "ffffffff" }), { id })),
  "a damaged record": (store, id) => {
    const disk = aDisk(aRecord(), { id, exported: true });
    store.put({ ...disk, comment: disk.comment.replace("b=1", "b=2") });
  },
  "a newer record": (store, id) => {
    const disk = aDisk(aRecord(), { id });
    store.put({ ...disk, comment: disk.comment.replace("rds1", "rds2") });
  },
  "a volume of the earlier driver": (store, id) => {
    const imagePath = `/pool/csi/${id}.img`;
    store.put(
      aDisk(aRecord(), { id, imagePath, exported: true, exportNqn: `${testPrefix}:${id}`, comment: "" }),
    );
  },
};
const earlierId = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";

for (const [occupant, occupy] of Object.entries(occupants)) {
  for (const [call, run] of Object.entries(changingCalls)) {
    Deno.test(`${call} refuses ${occupant} and sends nothing that changes anything`, async () => {
      for (const id of ["storage-pool", "nvme1", volumeIdFor(name), earlierId]) {
        const { world, store } = testController();
        occupy(store, id);
        await refusedUnchanged(
          store,
          () => run(world, id),
          refusal("precondition", new RegExp(`volume=${id}`)),
        );
        assert.equal(store.calls.length, 1);
        assert.match(store.calls[0]!.method, /view/i);
      }
    });
  }

  Deno.test(`CreateVolume refuses ${occupant} as a source and sends nothing that changes anything`, async () => {
    for (const id of ["storage-pool", "nvme1", earlierId]) {
      const { world, store } = testController();
      occupy(store, id);
      await refusedUnchanged(
        store,
        () => clone(world, id),
        refusal("precondition", new RegExp(`volume=${id}`)),
      );
      assert.ok(store.calls.every((call) => /view/i.test(call.method)));
    }
  });

  Deno.test(`CreateVolume refuses a slot with ${occupant} and sends nothing that changes anything`, async () => {
    const { world, store } = testController();
    occupy(store, volumeIdFor(name));
    await refusedUnchanged(store, () => createVolume(world, aCreate(name), context), refusal("precondition"));
    assert.deepEqual(store.calls.map((call) => call.method), ["createView"]);
  });

  Deno.test(`reading neither lists nor shows ${occupant}`, async () => {
    const { world, store } = testController();
    occupy(store, "x");
    assert.deepEqual(await listVolumes(world, context), []);
    // Its image is named as only this cluster names one: the record was lost or edited.
    const sick = /record/.test(occupant) ? ["RecordDamaged"] : [];
    const health = await listVolumeHealth(world, context);
    assert.deepEqual(health.flatMap(({ problems }) => problems.map(({ reason }) => reason)), sick);
    const kind = /record/.test(occupant) ? "precondition" : "not-found";
    await assert.rejects(getVolume(world, "x", context), refusal(kind));
    store.disks.clear();
    occupy(store, earlierId);
    // Without a record a folder of the name of the earlier driver's volume is somebody's.
    const ofEarlier = /damaged|newer|earlier/.test(occupant) ? "precondition" : "not-found";
    await refusedUnchanged(store, () => getVolume(world, earlierId, context), refusal(ofEarlier));
  });
}

Deno.test("a volume of the earlier driver whose record was lost after an epoch is not told to be gone", async () => {
  const { world, store } = testController();
  const disk = aDisk(aRecord(), { id: earlierId, comment: "backups", exported: true });
  store.put({ ...disk, imagePath: `/pool/csi/${earlierId}.img` });
  await assert.rejects(getVolume(world, earlierId, context), refusal("precondition", /record .* is gone/));
});
