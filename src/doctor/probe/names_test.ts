import assert from "node:assert/strict";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { isScratchName, isScratchPath, ScratchNames } from "./names.ts";

const names = new ScratchNames("/pool/csi", new SeededRandom());

Deno.test("everything that ScratchNames names is known again by its name", () => {
  const disks = [names.disk("a"), names.disk("b")];
  assert.notEqual(disks[0]!.slot, disks[1]!.slot);
  for (const name of [names.tag, names.name("x"), ...disks.map(({ slot }) => slot), names.slotOfLength(24)]) {
    assert.ok(isScratchName(name), name);
  }
  for (
    const path of [
      names.path("x.txt"),
      `${names.path("folder")}/x.img`,
      ...disks.map(({ path }) => path),
    ]
  ) {
    assert.ok(isScratchPath(path, "/pool/csi"), path);
  }
});

Deno.test("slotOfLength() gives a slot of exactly that length, and none of a scratch disk", () => {
  for (const length of [24, 32, 33, 64]) assert.equal(names.slotOfLength(length).length, length);
  const slots = Array.from({ length: 30 }, () => new ScratchNames("/p/c", new SeededRandom()).disk("x").slot);
  assert.ok(!slots.includes(names.slotOfLength(24)));
});

const foreign: readonly string[] = [
  "pvc-1",
  "rds-csi-probe",
  "rds-csi-probe-",
  "rds-csi-probe-0123",
  "rds-csi-probe-0123456g",
  "rds-csi-probe-0123456789",
  "rds-csi-probe-01234567z",
  "RDS-CSI-PROBE-01234567",
  "x-rds-csi-probe-01234567",
];

for (const name of foreign) {
  Deno.test(`isScratchName() does not know ${name}`, () => assert.equal(isScratchName(name), false));
}

const elsewhere: readonly string[] = [
  "/pool/rds-csi-probe-01234567-x.img",
  "/pool/csi2/rds-csi-probe-01234567-x.img",
  "/pool/csi/sub/rds-csi-probe-01234567-x.img",
  "/pool/csi",
  "/pool/csi/",
  "/other/pool/csi/rds-csi-probe-01234567-x.img",
];

for (const path of elsewhere) {
  Deno.test(`isScratchPath() does not know ${path}`, () => {
    assert.equal(isScratchPath(path, "/pool/csi"), false);
  });
}
