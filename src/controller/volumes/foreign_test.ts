import { refusedUnchanged } from "../../../tests/fakes/endings.ts";
import assert from "node:assert/strict";
import {
  aCreate,
  aPublish,
  gibibyte,
  testContext,
  testController,
  testParameters,
} from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aRecord, testPrefix } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import type { FakeVolumeStore } from "../../../tests/fakes/volume_store.ts";
import { volumeIdFor } from "../../volume/model/ids/ids.ts";
import { allowFormat } from "./allow_format.ts";
import { createVolume } from "./create.ts";
import { deleteVolume } from "./delete.ts";
import { expandVolume } from "./expand.ts";
import { listVolumeHealth } from "./health.ts";
import { publishVolume } from "../attachments/publish.ts";
import { getVolume, listVolumes } from "./read.ts";
import { createSnapshot } from "../snapshots/create.ts";
import { unpublishVolume } from "../attachments/unpublish.ts";
import type { ControllerDeps } from "../deps.ts";

const context = testContext();
const grown = { requiredBytes: 2n * gibibyte, limitBytes: 0n };

/** The volume name whose slot is occupied. */
const name = "wanted";

const changingCalls: Record<string, (deps: ControllerDeps, id: string) => Promise<unknown>> = {
  DeleteVolume: (deps, id) => deleteVolume(deps, id, context),
  ControllerPublishVolume: (deps, id) => publishVolume(deps, id, aPublish("a"), testParameters, context),
  ControllerUnpublishVolume: (deps, id) => unpublishVolume(deps, id, "a", context),
  "ControllerUnpublishVolume from all": (deps, id) => unpublishVolume(deps, id, "", context),
  ControllerExpandVolume: (deps, id) => expandVolume(deps, id, grown, context),
  "allow-format": (deps, id) => allowFormat(deps, id, context),
  CreateSnapshot: (deps, id) => createSnapshot(deps, { name: "s", source: id }, context),
};

/** Cloning looks at the new volume first, and has to look once more at a source that is no disk of files. */
const clone = (deps: ControllerDeps, id: string) =>
  createVolume(deps, aCreate("c", { source: { kind: "volume", id } }), context);

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
  "a volume of the legacy driver": (store, id) => {
    const imagePath = `/pool/csi/${id}.img`;
    store.put(
      aDisk(aRecord(), { id, imagePath, exported: true, exportNqn: `${testPrefix}:${id}`, comment: "" }),
    );
  },
};
const legacyId = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";

for (const [occupant, occupy] of Object.entries(occupants)) {
  for (const [call, run] of Object.entries(changingCalls)) {
    Deno.test(`${call} refuses ${occupant} and sends nothing that changes anything`, async () => {
      for (const id of ["storage-pool", "nvme1", volumeIdFor(name), legacyId]) {
        const { deps, store } = testController();
        occupy(store, id);
        await refusedUnchanged(
          store,
          () => run(deps, id),
          refusal("precondition", new RegExp(`volume=${id}`)),
        );
        assert.equal(store.calls.length, 1);
        assert.match(store.calls[0]!.method, /view/i);
      }
    });
  }

  Deno.test(`CreateVolume refuses ${occupant} as a source and sends nothing that changes anything`, async () => {
    for (const id of ["storage-pool", "nvme1", legacyId]) {
      const { deps, store } = testController();
      occupy(store, id);
      await refusedUnchanged(
        store,
        () => clone(deps, id),
        refusal("precondition", new RegExp(`volume=${id}`)),
      );
      assert.ok(store.calls.every((call) => /view/i.test(call.method)));
    }
  });

  Deno.test(`CreateVolume refuses a slot with ${occupant} and sends nothing that changes anything`, async () => {
    const { deps, store } = testController();
    occupy(store, volumeIdFor(name));
    await refusedUnchanged(store, () => createVolume(deps, aCreate(name), context), refusal("precondition"));
    assert.deepEqual(store.calls.map((call) => call.method), ["createView"]);
  });

  Deno.test(`reading neither lists nor shows ${occupant}`, async () => {
    const { deps, store } = testController();
    occupy(store, "x");
    assert.deepEqual(await listVolumes(deps, context), []);
    // Its image is named as only this cluster names one: the record was lost or edited.
    const sick = /record/.test(occupant) ? ["RecordDamaged"] : [];
    const health = await listVolumeHealth(deps, context);
    assert.deepEqual(health.flatMap(({ problems }) => problems.map(({ reason }) => reason)), sick);
    const kind = /record/.test(occupant) ? "precondition" : "not-found";
    await assert.rejects(getVolume(deps, "x", context), refusal(kind));
    store.disks.clear();
    occupy(store, legacyId);
    // Without a record a folder of the name of the legacy driver's volume is somebody's.
    const ofLegacy = /damaged|newer|legacy/.test(occupant) ? "precondition" : "not-found";
    await refusedUnchanged(store, () => getVolume(deps, legacyId, context), refusal(ofLegacy));
  });
}

Deno.test("a volume of the legacy driver whose record was lost after an epoch is not told to be gone", async () => {
  const { deps, store } = testController();
  const disk = aDisk(aRecord(), { id: legacyId, comment: "backups", exported: true });
  store.put({ ...disk, imagePath: `/pool/csi/${legacyId}.img` });
  await assert.rejects(getVolume(deps, legacyId, context), refusal("precondition", /record .* is gone/));
});
