import assert from "node:assert/strict";
import { aPool } from "../../../../tests/fakes/records.ts";
import { refusal } from "../../../../tests/fakes/refusal.ts";
import { assertVolumeId, isVolumeId, volumeIdFor } from "../ids/ids.ts";
import { isSnapshotId, snapshotIdFor } from "./snapshots.ts";
import { plainLocation, subvolumeLocation } from "../layout.ts";
import type { StoredFile } from "../inventory.ts";
import {
  anySnapshot,
  assertSameSource,
  formatSnapshotName,
  ownSnapshots,
  parseSnapshots,
  snapshotLocations,
  type SnapshotName,
  snapshotPart,
} from "./snapshots.ts";

const cluster = "0123abcd";
const other = "ffffffff";
const id = snapshotIdFor("a", cluster);
const name: SnapshotName = {
  id,
  source: "pvc-1",
  createdAtSeconds: 1_767_225_600,
  blank: false,
  encrypted: false,
  cluster,
};
const pool = aPool();

const file = (path: string): StoredFile => ({ path, sizeBytes: 7n, directory: false });
const folder = (path: string): StoredFile => ({ path, sizeBytes: 0n, directory: true });
const pathOf = (over: Partial<SnapshotName> = {}, end = "/disk.img", base = "/pool/csi") =>
  `${base}/${formatSnapshotName({ ...name, ...over })}${end}`;

Deno.test("snapshotIdFor() makes an id of one form from any name, different for each name and each cluster", () => {
  const names = [
    "a",
    "b",
    "snapshot-0f8fad5b-d9cb-469f-a165-70867728950e",
    "x".repeat(128),
    'q"uo$te;[find]',
  ];
  const ids = names.map((one) => snapshotIdFor(one, cluster));
  assert.equal(new Set(ids).size, names.length);
  for (const one of ids) assert.equal(isSnapshotId(one), true, one);
  assert.notEqual(snapshotIdFor("a", cluster), snapshotIdFor("a", other));
  for (const wrong of ["", "x".repeat(129), "a\nb"]) {
    assert.throws(() => snapshotIdFor(wrong, cluster), refusal("invalid"));
  }
});

Deno.test("a snapshot id is never accepted as a volume id, nor the other way round", () => {
  for (const one of ["a", "b", "snapshot-1"]) {
    assert.equal(isVolumeId(snapshotIdFor(one, cluster)), false);
    assert.throws(() => assertVolumeId(snapshotIdFor(one, cluster)), refusal("invalid"));
    assert.equal(isSnapshotId(volumeIdFor(one)), false);
  }
  const volumes = ["pvc-0f8fad5b-d9cb-469f-a165-70867728950e", `snap-${"0".repeat(27)}`, "snap-0"];
  for (const volume of volumes) {
    assert.equal(isVolumeId(volume), true);
    assert.equal(isSnapshotId(volume), false);
  }
});

Deno.test("isSnapshotId() refuses every other form", () => {
  const hex = "0".repeat(28);
  const wrong = [
    "",
    `snap-${hex}0`,
    `snap-${hex.slice(1)}`,
    `snap-${hex.slice(1)}G`,
    `SNAP-${hex}`,
    `snap_${hex}`,
  ];
  for (const one of [...wrong, `xsnap-${hex}`, `snap-${hex}\n`, `snap-${hex}.`]) {
    assert.equal(isSnapshotId(one), false, JSON.stringify(one));
  }
});

Deno.test("parseSnapshots() reads back every name that formatSnapshotName() wrote", () => {
  const names: Partial<SnapshotName>[] = [
    {},
    { blank: true },
    { encrypted: true },
    { blank: true, encrypted: true },
    { createdAtSeconds: 0 },
    { createdAtSeconds: 36 ** 8 - 1 },
    { source: "x".repeat(32) },
    { source: "pvc-0f8fad5b-d9cb-469f-a165-70867728950e" },
    { source: `snap-${"0".repeat(27)}` },
    { source: "b", cluster: other },
    { id: snapshotIdFor("b", cluster) },
  ];
  const forms: [string, boolean][] = [["/disk.img", true], [".img", true], [".img.0123abcd.part", false]];
  for (const over of names) {
    for (const base of ["/pool", "/pool/csi", "/pool/very/deep"]) {
      for (const [end, ready] of forms) {
        const path = pathOf(over, end, base);
        const snapshot = { ...name, ...over, imagePath: path, sizeBytes: 7n, ready };
        assert.deepEqual(parseSnapshots([file(path)]), [snapshot], path);
        assert.ok(path.includes(anySnapshot) && path.includes(snapshotPart(snapshot.id)));
      }
    }
  }
});

Deno.test("parseSnapshots() accepts no other name", () => {
  const wrong = [
    folder(pathOf({}, "")),
    folder(pathOf({}, ".img")),
    folder(pathOf({}, "/disk.img")),
    file(pathOf({}, "")),
    file(pathOf({}, "/other.img")),
    file(pathOf({}, "/deep/disk.img")),
    file(pathOf({}, ".img.bak")),
    file(pathOf({}, ".img.part")),
    file(pathOf({}, ".img.0123ABCD.part")),
    file(pathOf({}, ".img.0123abcd.part.part")),
    file(pathOf().replace("/snap-", "/x-snap-")),
    file(pathOf().replace("/snap-", "/snap-0")),
    file(pathOf().replace(".n.", ".x.")),
    file(pathOf().replace(".n.", ".")),
    file(pathOf({ source: "" })),
    file(pathOf({ source: "-a" })),
    file(pathOf({ source: "a-" })),
    file(pathOf({ source: "A" })),
    file(pathOf({ source: "a.b" })),
    file(pathOf({ source: "x".repeat(33) })),
    file(pathOf({ source: id })),
    file(pathOf({ createdAtSeconds: 36 ** 8 })),
    file(pathOf({ createdAtSeconds: -1 })),
    file(pathOf({ cluster: "0123abc" })),
    file(pathOf({ cluster: "0123ABCD" })),
    file(pathOf({ cluster: "" })),
    file("/pool/csi/snap-1.img"),
    file(`/pool/csi/${id}.img`),
    file(`/pool/csi/pvc-1.${cluster}.img`),
    file(`/pool/csi/snap-${"0".repeat(27)}.${cluster}.img`),
  ];
  for (const one of wrong) assert.deepEqual(parseSnapshots([one]), [], one.path);
});

Deno.test("parseSnapshots() orders by id and then by age", () => {
  const ids = ["a", "b", "c"].map((one) => snapshotIdFor(one, cluster)).toSorted();
  const paths = [
    pathOf({ id: ids[2]! }),
    pathOf({ id: ids[0]!, createdAtSeconds: 9 }),
    pathOf({ id: ids[1]! }),
    pathOf({ id: ids[0]!, createdAtSeconds: 10 }),
  ];
  const found = parseSnapshots(paths.map((path) => file(path)));
  assert.deepEqual(found.map((one) => one.imagePath), [paths[1], paths[3], paths[2], paths[0]]);
});

Deno.test("ownSnapshots() returns one snapshot of each id of one cluster, and prefers a complete one", () => {
  const part = ".img.0123abcd.part";
  const cases: [string, string[], string | undefined][] = [
    ["another cluster's", [pathOf({ cluster: other })], undefined],
    ["both clusters'", [pathOf({ cluster: other, createdAtSeconds: 1 }), pathOf()], pathOf()],
    ["half copied", [pathOf({}, part)], pathOf({}, part)],
    [
      "half copied, then whole",
      [pathOf({ createdAtSeconds: 1 }, part), pathOf({}, ".img")],
      pathOf({}, ".img"),
    ],
    [
      "whole, then half copied",
      [pathOf({ createdAtSeconds: 1 }, ".img"), pathOf({}, part)],
      pathOf({
        createdAtSeconds: 1,
      }, ".img"),
    ],
    ["twice whole", [pathOf(), pathOf({ createdAtSeconds: 1 })], pathOf({ createdAtSeconds: 1 })],
    [
      "twice half copied",
      [pathOf({}, part), pathOf({ createdAtSeconds: 1 }, part)],
      pathOf({
        createdAtSeconds: 1,
      }, part),
    ],
  ];
  for (const [what, paths, shown] of cases) {
    const own = ownSnapshots(parseSnapshots(paths.map((path) => file(path))), cluster, ["/pool/csi"]);
    assert.deepEqual(own.map((one) => one.imagePath), shown === undefined ? [] : [shown], what);
  }
  const two = [pathOf(), pathOf({ id: snapshotIdFor("b", cluster) })].map((path) => file(path));
  assert.equal(ownSnapshots(parseSnapshots(two), cluster, ["/pool/csi"]).length, 2);
});

Deno.test("ownSnapshots() ignores a copy in another folder, which does not hide the real one", () => {
  const elsewhere = ["/pool/backup", "/pool/csi/deep", "/pool2/csi", "/pool"].map((base) =>
    file(pathOf({}, "/disk.img", base))
  );
  const own = (files: StoredFile[]) => ownSnapshots(parseSnapshots(files), cluster, ["/pool/csi", "/fast"]);
  assert.deepEqual(own(elsewhere), []);
  assert.deepEqual(own([...elsewhere, file(pathOf())]).map((one) => one.imagePath), [pathOf()]);
  assert.equal(own([file(pathOf({}, ".img", "/fast"))]).length, 1);
});

Deno.test("assertSameSource() refuses a snapshot of another volume", () => {
  assertSameSource(name, "pvc-1");
  assert.throws(
    () => assertSameSource(name, "pvc-2"),
    refusal("exists-incompatible", /source=pvc-1 requested=pvc-2/),
  );
});

Deno.test("snapshotLocations() finds everything of one snapshot of one cluster in the allowed folders, once", () => {
  const subvolume = subvolumeLocation(pathOf({}, ""), "pool-fs");
  const part = pathOf({ createdAtSeconds: 1 }, ".img.0123abcd.part");
  const files = [
    folder(pathOf({}, "")),
    file(pathOf()),
    file(pathOf({ createdAtSeconds: 1 }, ".img")),
    file(part),
    file(pathOf({ source: "pvc-2", blank: true }, ".img", "/pool/more")),
  ];
  const others = [
    folder(pathOf({ cluster: other }, "")),
    file(pathOf({ cluster: other })),
    file(pathOf({ cluster: other }, ".img")),
    file(pathOf({ id: snapshotIdFor("b", cluster) }, ".img")),
    file(pathOf({}, ".img", "/pool/elsewhere")),
    file(pathOf({}, ".img", "/pool/csi/deep")),
    file(pathOf({}, ".img.bak")),
    file(pathOf({}, "/notes.txt")),
    file(pathOf({ createdAtSeconds: 2 }, "")),
    folder(pathOf({ createdAtSeconds: 2 }, ".img")),
    file(`/pool/csi/${id}.img`),
  ];
  const bases = ["/pool/csi", "/pool/more"];
  const locations = snapshotLocations([...others, ...files], id, cluster, bases, [pool]);
  assert.deepEqual(
    locations.toSorted((a, b) => (a.path < b.path ? -1 : 1)),
    [
      plainLocation(pathOf({ createdAtSeconds: 1 }, ".img")),
      plainLocation(part),
      subvolume,
      plainLocation(pathOf({ source: "pvc-2", blank: true }, ".img", "/pool/more")),
    ].toSorted((a, b) => (a.path < b.path ? -1 : 1)),
  );
  assert.deepEqual(snapshotLocations(others, id, cluster, bases, [pool]), []);
});

Deno.test("snapshotLocations() finds an empty subvolume", () => {
  const found = snapshotLocations([folder(pathOf({}, ""))], id, cluster, ["/pool/csi"], [pool]);
  assert.deepEqual(found, [subvolumeLocation(pathOf({}, ""), "pool-fs")]);
});
