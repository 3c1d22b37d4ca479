import assert from "node:assert/strict";
import { gibibyte, testContext, testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aRecord, aVolume } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import type { RequestedCapability } from "../../volume/model/requested_capabilities.ts";
import { mebibyte } from "../../volume/model/sizes.ts";
import { getCapacity, getVolume, listVolumes, reasonAgainst } from "./read.ts";

const context = testContext();

Deno.test("getVolume() shows a volume in one command", async () => {
  const { deps, store } = testController();
  store.put(aDisk(aRecord()));
  assert.deepEqual((await getVolume(deps, "pvc-1", context)).record, aRecord());
  assert.equal(store.takeCount(), 1);
});

Deno.test("getVolume() calls a volume missing only when it provably is", async () => {
  const { deps, store, clock } = testController();
  await assert.rejects(getVolume(deps, "pvc-1", context), refusal("not-found", /volume=pvc-1/));
  store.put(aDisk(aRecord()));
  store.hidden.add("pvc-1");
  await assert.rejects(getVolume(deps, "pvc-1", context), refusal("unavailable", /its image is there/));
  store.allFiles.clear();
  store.reboot();
  await assert.rejects(getVolume(deps, "pvc-1", context), refusal("unavailable", /booted only/));
  await clock.advance(120_000);
  store.pools = [];
  await assert.rejects(getVolume(deps, "pvc-1", context), refusal("unavailable", /not mounted/));
});

Deno.test("listVolumes() lists this cluster's volumes in order, in one command, and reports damaged records", async () => {
  const { deps, store, notes } = testController();
  for (const id of ["c", "a", "b"]) store.put(aDisk(aRecord(), { id }));
  store.put(aDisk(aRecord({ cluster: "ffffffff" }), { id: "foreign" }));
  store.put(aDisk(aRecord(), { id: "damaged", comment: "{rds1 }" }));
  store.put(aDisk(aRecord(), { id: "other", comment: "" }));
  const ids = (await listVolumes(deps, context)).map((volume) => volume.stored.id);
  assert.deepEqual(ids, ["a", "b", "c"]);
  assert.equal(store.takeCount(), 1);
  assert.deepEqual(notes, ["the list omits a disk because its record is damaged"]);
});

Deno.test("listVolumes() leaves out a slot that no call could name, and says so", async () => {
  const { deps, store, notes } = testController();
  for (const id of ["a", "-a", "My disk", "x".repeat(33)]) store.put(aDisk(aRecord(), { id }));
  assert.deepEqual((await listVolumes(deps, context)).map((volume) => volume.stored.id), ["a"]);
  assert.deepEqual(notes, Array(3).fill("the list omits a disk because its slot is not a volume id"));
});

Deno.test("listVolumes() and getCapacity() do not answer while disks may be missing", async () => {
  const { deps, store, clock } = testController();
  store.reboot();
  await clock.advance(119_000);
  await assert.rejects(listVolumes(deps, context), refusal("unavailable"));
  await assert.rejects(getCapacity(deps, "/pool/csi", context), refusal("unavailable"));
  await clock.advance(1_000);
  assert.deepEqual(await listVolumes(deps, context), []);
  store.pools = [];
  await assert.rejects(listVolumes(deps, context), refusal("unavailable"));
  await assert.rejects(getCapacity(deps, "/pool/csi", context), refusal("unavailable"));
});

Deno.test("getCapacity() reports in one command what a volume can really have", async () => {
  const { deps, store } = testController();
  store.put(aDisk(aRecord(), { sizeBytes: 30n * gibibyte + 1n, comment: "somebody's" }));
  assert.deepEqual(await getCapacity(deps, "/pool/csi", context), {
    availableBytes: 70n * gibibyte - mebibyte,
    maximumVolumeBytes: 70n * gibibyte - mebibyte,
    minimumVolumeBytes: gibibyte,
  });
  assert.equal(store.takeCount(), 1);
});

Deno.test("reasonAgainst() is silent about what the volume can do and says what it cannot", () => {
  const writer = { access: "mount", fsType: "", mode: "SINGLE_NODE_WRITER" } as const;
  const cases: [RequestedCapability, RegExp | undefined][] = [
    [writer, undefined],
    [{ ...writer, mode: "MULTI_NODE_READER_ONLY" }, undefined],
    [{ ...writer, fsType: "xfs" }, /made for ext4\/w, not for xfs/],
    [{ ...writer, access: "block" }, /not for block/],
    [{ ...writer, mode: "MULTI_NODE_MULTI_WRITER" }, /two nodes would write/],
    [{ ...writer, mode: "UNKNOWN" }, /not supported/],
  ];
  for (const [capability, text] of cases) {
    const reason = reasonAgainst(aVolume(), [writer, capability]);
    if (text === undefined) assert.equal(reason, undefined);
    else assert.match(reason ?? "", text);
  }
  assert.match(reasonAgainst(aVolume({ capabilities: "zfs/w" }), [writer]) ?? "", /made for zfs/);
  const shared = { access: "block", fsType: "", mode: "MULTI_NODE_MULTI_WRITER" } as const;
  assert.match(reasonAgainst(aVolume({ capabilities: "block/w" }), [shared]) ?? "", /two nodes that write/);
  assert.equal(reasonAgainst(aVolume({ capabilities: "block/wx" }), [shared]), undefined);
});
