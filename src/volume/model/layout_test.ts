import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
import {
  baseOf,
  isImageOf,
  leftoversOf,
  placeFor,
  placeOf,
  plainPlace,
  stemOf,
  subvolumePlace,
  unfinishedCopies,
  unfinishedPath,
  withinPool,
} from "./layout.ts";
import type { ImagePlace, Pool, StoredFile } from "./inventory.ts";

const pool: Pool = {
  mountPoint: "pool",
  filesystem: "btrfs",
  sizeBytes: 1n,
  freeBytes: 1n,
  state: "clean",
  subvolumeLabel: "pool-fs",
};
const plainPool: Pool = { ...pool, mountPoint: "fast", filesystem: "xfs", subvolumeLabel: undefined };
const pools = [pool, plainPool];
const bases = ["/pool/csi", "/pool", "/fast/csi"];
const stem = stemOf("pvc-1", "0123abcd");

const file = (path: string): StoredFile => ({ path, sizeBytes: 1n, directory: false });
const folder = (path: string): StoredFile => ({ path, sizeBytes: 0n, directory: true });
const leftovers = (files: readonly StoredFile[], basePaths = bases, mounted = pools) =>
  leftoversOf(files, stem, basePaths, mounted);

Deno.test("stemOf() names volume and cluster", () => assert.equal(stem, "pvc-1.0123abcd"));

Deno.test("placeFor() gives a volume a subvolume where there can be one, else a file", () => {
  const inFolder = {
    path: `/pool/csi/${stem}/disk.img`,
    subvolume: { label: "pool-fs", path: `csi/${stem}` },
  };
  const onTop = { path: `/pool/${stem}/disk.img`, subvolume: { label: "pool-fs", path: stem } };
  assert.deepEqual(placeFor("/pool/csi", stem, pool, "nested"), inFolder);
  assert.deepEqual(placeFor("/pool", stem, pool, "nested"), onTop);
  assert.deepEqual(placeFor("/pool", stem, pool, "flat"), onTop);
  assert.deepEqual(placeFor("/pool/csi", stem, pool, "flat"), plainPlace(`/pool/csi/${stem}.img`));
  for (const names of ["nested", "flat"] as const) {
    assert.deepEqual(placeFor("/fast/csi", stem, plainPool, names), plainPlace(`/fast/csi/${stem}.img`));
  }
});

Deno.test("withinPool() names what is in a pool as its file system does", () => {
  assert.equal(withinPool("/pool/csi/deep/x"), "csi/deep/x");
  assert.equal(withinPool("/pool/x"), "x");
});

Deno.test("isImageOf() knows both forms in whatever folder, and nothing that looks like them", () => {
  for (const base of [...bases, "/pool/old/deep"]) {
    for (const path of [`${base}/${stem}.img`, `${base}/${stem}/disk.img`]) {
      assert.equal(isImageOf(path, stem), true, path);
      assert.equal(baseOf(path, stem), base);
    }
  }
  const others = [
    `/pool/csi/${stem}`,
    `/pool/csi/${stem}.img.0123abcd.part`,
    `/pool/csi/${stem}/other.img`,
    `/pool/csi/${stem}/deep/disk.img`,
    `/pool/csi/${stem}0.img`,
    `/pool/csi/${stem}0/disk.img`,
    `/pool/csi/x${stem}.img`,
    `/pool/csi/x-${stem}/disk.img`,
    `/pool/csi/pvc-1.0123abce.img`,
    `/pool/csi/pvc-1.img`,
    `/pool/csi/snap-x.pvc-1.zz.n.0123abcd.img`,
    `${stem}.img`,
  ];
  for (const path of others) assert.equal(isImageOf(path, stem), false, path);
});

Deno.test("baseOf() takes the last segment that is the volume's", () => {
  assert.equal(baseOf(`/pool/${stem}/${stem}/disk.img`, stem), `/pool/${stem}`);
});

Deno.test("placeOf() tells where an image lies, on any pool", () => {
  const cases: [string, ImagePlace][] = [
    [`/pool/csi/${stem}.img`, plainPlace(`/pool/csi/${stem}.img`)],
    [`/fast/csi/${stem}.img`, plainPlace(`/fast/csi/${stem}.img`)],
    [`/gone/csi/${stem}.img`, plainPlace(`/gone/csi/${stem}.img`)],
    [`/pool/csi/${stem}/disk.img`, subvolumePlace(`/pool/csi/${stem}`, "pool-fs")],
    [`/pool/${stem}/disk.img`, subvolumePlace(`/pool/${stem}`, "pool-fs")],
  ];
  for (const [path, place] of cases) assert.deepEqual(placeOf(path, pools), place, path);
});

Deno.test("placeOf() does not guess in which subvolume an image lies", () => {
  for (
    const path of [`/fast/csi/${stem}/disk.img`, `/gone/csi/${stem}/disk.img`, `/pool2/${stem}/disk.img`]
  ) {
    assert.throws(() => placeOf(path, pools), refusal("unavailable", /shows no label/), path);
  }
});

Deno.test("leftoversOf() finds each form of what a volume can leave, once", () => {
  const subvolume = subvolumePlace(`/pool/csi/${stem}`, "pool-fs");
  const cases: [string, StoredFile[], ImagePlace[]][] = [
    ["nothing", [], []],
    ["a file", [file(`/fast/csi/${stem}.img`)], [plainPlace(`/fast/csi/${stem}.img`)]],
    ["a file on top of a pool", [file(`/pool/${stem}.img`)], [plainPlace(`/pool/${stem}.img`)]],
    ["an empty subvolume", [folder(`/pool/csi/${stem}`)], [subvolume]],
    ["a subvolume", [folder(`/pool/csi/${stem}`), file(`/pool/csi/${stem}/disk.img`)], [subvolume]],
    ["a subvolume whose image comes first", [
      file(`/pool/csi/${stem}/disk.img`),
      folder(`/pool/csi/${stem}`),
    ], [subvolume]],
    ["a subvolume that is not shown as a folder", [file(`/pool/csi/${stem}/disk.img`)], [subvolume]],
    ["an unfinished copy", [file(`/pool/csi/${stem}.img.0123abcd.part`)], [
      plainPlace(`/pool/csi/${stem}.img.0123abcd.part`),
    ]],
    ["one in each folder", [file(`/pool/${stem}.img`), file(`/fast/csi/${stem}.img`)], [
      plainPlace(`/pool/${stem}.img`),
      plainPlace(`/fast/csi/${stem}.img`),
    ]],
  ];
  for (const [name, files, places] of cases) assert.deepEqual(leftovers(files), places, name);
});

Deno.test("leftoversOf() never takes what is not the volume's own", () => {
  const others = [
    file(`/pool/csi/pvc-1.ffffffff.img`),
    folder(`/pool/csi/pvc-1.ffffffff`),
    file("/pool/csi/pvc-1.img"),
    folder("/pool/csi/pvc-1"),
    file(`/pool/csi/${stem}0.img`),
    folder(`/pool/csi/${stem}0`),
    file(`/pool/csi/${stem}0/disk.img`),
    file(`/pool/csi/${stem}-old.img`),
    file(`/pool/csi/x${stem}.img`),
    folder(`/pool/csi/x${stem}`),
    file(`/pool/old/${stem}.img`),
    folder(`/pool/old/${stem}`),
    file(`/pool/old/${stem}/disk.img`),
    file(`/pool/csi/deep/${stem}.img`),
    file(`/pool2/csi/${stem}.img`),
    file(`/pool/csi2/${stem}.img`),
    file(`/pool/csi/${stem}`),
    folder(`/pool/csi/${stem}.img`),
    file(`/pool/csi/${stem}/notes.txt`),
    file(`/pool/csi/${stem}/deep/disk.img`),
    folder(`/pool/csi/${stem}/disk.img`),
    file(`/pool/csi/${stem}.img.bak`),
    file(`/pool/csi/${stem}.img.part`),
    file(`/pool/csi/${stem}.img.0123abcd.part2`),
    file(`/pool/csi/${stem}.img.0123ABCD.part`),
    file(`/pool/csi/${stem}.img.0123abcd0.part`),
    folder(`/pool/csi/${stem}.img.0123abcd.part`),
    file(`/pool/csi/snap-${"0".repeat(28)}.pvc-1.zz.n.0123abcd.img`),
  ];
  for (const other of others) assert.deepEqual(leftovers([other]), [], other.path);
  assert.deepEqual(leftovers([file(`/pool/csi/${stem}.img`)], ["/fast/csi"]), []);
});

Deno.test("leftoversOf() is not deceived by folders whose paths have the same length", () => {
  const deep = `/pool/csi/${stem}0123/${stem}.img`;
  assert.deepEqual(leftovers([file(deep)], [`/fast/csi/${"x".repeat(stem.length + 4)}`, "/pool/csi"]), []);
});

Deno.test("leftoversOf() does not call a subvolume gone whose pool shows no label", () => {
  const files = [folder(`/pool/csi/${stem}`), file(`/pool/csi/${stem}/disk.img`)];
  for (const mounted of [[], [{ ...pool, subvolumeLabel: undefined }]]) {
    assert.throws(() => leftovers(files, bases, mounted), refusal("unavailable", /shows no label/));
  }
});

Deno.test("unfinishedPath() is a leftover and an unfinished copy, and no image", () => {
  const path = unfinishedPath(`/pool/csi/${stem}.img`, "0123abcd");
  assert.deepEqual(leftovers([file(path)]), [plainPlace(path)]);
  assert.deepEqual(unfinishedCopies([file(path)], stem, bases), [path]);
  assert.equal(isImageOf(path, stem), false);
});

Deno.test("unfinishedCopies() takes neither an image nor another one's copy", () => {
  const others = [
    file(`/pool/csi/${stem}.img`),
    file(`/pool/csi/${stem}/disk.img`),
    file(`/pool/csi/${stem}0.img.0123abcd.part`),
    file(`/pool/csi/x${stem}.img.0123abcd.part`),
    file(`/pool/old/${stem}.img.0123abcd.part`),
    file(`/pool/csi/${stem}.img.0123abcd.part.bak`),
    folder(`/pool/csi/${stem}.img.0123abcd.part`),
  ];
  assert.deepEqual(unfinishedCopies(others, stem, bases), []);
});
