import assert from "node:assert/strict";
import { aDisk, aRecord, testCluster, testPrefix } from "../../../tests/fakes/records.ts";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { folderOf, importedSource, isImported, usesOwnImage } from "../model/sources.ts";
import { assertImportable, type ImportClaim, importedComment, type ImportScene } from "./import.ts";
import { assertOwned } from "./ownership.ts";
import type { StoredVolume } from "../model/inventory.ts";
import { formatComment } from "../model/record.ts";

const claim: ImportClaim = {
  kind: { access: "mount", filesystem: "xfs" },
  mode: "single-node-single-writer",
  exportIsUnused: false,
};
const imagePath = "/pool/films/all of them.img";
const disk: StoredVolume = {
  id: "films",
  imagePath,
  sizeBytes: 1n << 30n,
  exported: false,
  exportNqn: "",
  exportPort: 0,
  comment: "films",
};
const pool = {
  mountPoint: "pool",
  filesystem: "btrfs",
  sizeBytes: 1n << 40n,
  freeBytes: 1n << 40n,
  state: "clean",
  subvolumeLabel: undefined,
};

function scene(stored: StoredVolume = disk, over: Partial<ImportScene> = {}): ImportScene {
  return {
    cluster: testCluster,
    basePaths: ["/pool/csi"],
    settleMs: 120_000,
    upMs: 1e9,
    pools: [pool],
    volumes: [stored],
    files: [{ path: stored.imagePath, sizeBytes: stored.sizeBytes, directory: false }],
    ...over,
  };
}

Deno.test("assertImportable() accepts a foreign disk whose file lies anywhere on a pool of this driver", () => {
  for (const path of [imagePath, "/pool/disk.img", "/pool/csi/x", "/pool/a.b/c.d/e"]) {
    const stored = { ...disk, imagePath: path };
    assertImportable(stored, claim, scene(stored));
  }
});

const sharer = { ...disk, id: "other", imagePath: "/pool//films/./x/../all of them.img" };
const exported = { ...disk, exported: true, exportNqn: `${testPrefix}:films` };

/** Each refusal, with its message. */
const refused: readonly (readonly [string, StoredVolume, Partial<ImportScene>, RegExp])[] = [
  ["a volume of this cluster", aDisk(aRecord(), { id: "films" }), {}, /already/],
  ["another cluster's", aDisk(aRecord({ cluster: "ffffffff" }), { id: "films" }), {}, /another cluster/],
  [
    "another way to name the file",
    disk,
    { volumes: [disk, sharer] },
    /another disk uses its file: disk=other/,
  ],
  ["an export", exported, {}, /may be in use/],
  ["a disk in use by the router", { ...disk, routerUses: ["its file system is mounted"] }, {}, /is mounted/],
  ["an empty file", { ...disk, sizeBytes: 0n }, {}, /whole sectors/],
  ["half a sector", { ...disk, sizeBytes: 1025n }, {}, /whole sectors/],
  [
    "a file of its own size",
    disk,
    { files: [{ path: imagePath, sizeBytes: 1n << 29n, directory: false }] },
    /another size/,
  ],
  ["no file", disk, { files: [] }, /does not exist/],
  ["a folder", disk, { files: [{ path: imagePath, sizeBytes: 0n, directory: true }] }, /is a folder/],
  ["a volume's image", { ...disk, imagePath: "/pool/csi/pvc-1.0a1b2c3d.img" }, {}, /of a cluster/],
  ["a volume's subvolume", { ...disk, imagePath: "/pool/csi/pvc-1.0a1b2c3d/disk.img" }, {}, /of a cluster/],
  [
    "an unfinished copy",
    { ...disk, imagePath: "/pool/csi/pvc-1.0a1b2c3d.img.00112233.part" },
    {},
    /of a cluster/,
  ],
  [
    "a snapshot",
    { ...disk, imagePath: `/pool/csi/snap-${"0".repeat(28)}.v.1.n.0a1b2c3d/disk.img` },
    {},
    /of a cluster/,
  ],
  [
    "the legacy driver's image",
    { ...disk, imagePath: "/pool/csi/pvc-0f8fad5b-d9cb-469f-a165-70867728950e.img" },
    {},
    /legacy driver/,
  ],
  [
    "the legacy driver's slot",
    { ...disk, id: "pvc-0f8fad5b-d9cb-469f-a165-70867728950e" },
    {},
    /legacy driver/,
  ],
  ["a path that climbs", { ...disk, imagePath: "/pool/../pool/x" }, {}, /no plain path/],
  ["a file that is a pool", { ...disk, imagePath: "/pool" }, {}, /no plain path/],
  ["another pool", { ...disk, imagePath: "/tank/x.img" }, {}, /--base-path/],
];

for (const [what, stored, over, text] of refused) {
  Deno.test(`assertImportable() refuses ${what}`, () => {
    assert.throws(() => assertImportable(stored, claim, scene(stored, over)), refusal("precondition", text));
  });
}

Deno.test("assertImportable() concludes nothing from a router that does not show everything", () => {
  for (const over of [{ upMs: 1000 }, { pools: [] }]) {
    assert.throws(() => assertImportable(disk, claim, scene(disk, over)), refusal("unavailable"));
  }
});

Deno.test("assertImportable() treats an export as unused only on a person's word", () => {
  assertImportable(exported, { ...claim, exportIsUnused: true }, scene(exported));
  const mounted = { ...exported, routerUses: ["its file system is mounted"] };
  assert.throws(
    () => assertImportable(mounted, { ...claim, exportIsUnused: true }, scene(mounted)),
    refusal("precondition"),
  );
});

Deno.test("importedComment() is never blank, differs from all earlier ones, and is valid for that slot and that file alone", () => {
  const random = new SeededRandom(1);
  const write = () => formatComment(importedComment(disk, claim, testCluster, 0, { nowMs: 1_000, random }));
  const comment = write();
  assert.notEqual(comment, write());
  assert.ok(comment.startsWith("films {rds1 "));
  const owned = (over: Partial<StoredVolume>) =>
    assertOwned({ ...disk, comment, ...over }, testCluster, "test");
  const { record } = owned({});
  assert.deepEqual([record.blankEpoch, record.epoch?.counter, record.capabilities], [0, 0, "xfs/o"]);
  assert.ok(isImported(record));
  assert.equal(record.withdrawnAtSeconds, 2, "whoever had it may still write");
  assert.equal(usesOwnImage(owned({}), testCluster), true);
  assert.equal(usesOwnImage(owned({ id: "copy" }), testCluster), false);
  assert.equal(usesOwnImage(owned({ imagePath: "/pool/films/two.img" }), testCluster), false);
  assert.equal(folderOf(owned({}), testCluster), "/pool/films");
  assert.notEqual(importedSource("a", "b/c"), importedSource("a/b", "c"));
});
