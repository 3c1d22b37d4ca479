import assert from "node:assert/strict";
import { aPool } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { filePrefixOf, isImageOf } from "./image_names.ts";
import {
  imageLocationFor,
  isNeverUsedMark,
  leftoversOf,
  locationOf,
  neverUsedMark,
  plainLocation,
  subvolumeLocation,
  unfinishedCopies,
  unfinishedPath,
  withinPool,
} from "./layout.ts";
import type { ImageLocation, Pool, StoredFile } from "./inventory.ts";

const pool = aPool();
const plainPool: Pool = { ...pool, mountPoint: "fast", filesystem: "xfs", subvolumeLabel: undefined };
const pools = [pool, plainPool];
const bases = ["/pool/csi", "/pool", "/fast/csi"];
const filePrefix = filePrefixOf("pvc-1", "0123abcd");

const file = (path: string): StoredFile => ({ path, sizeBytes: 1n, directory: false });
const folder = (path: string): StoredFile => ({ path, sizeBytes: 0n, directory: true });
const leftovers = (files: readonly StoredFile[], basePaths = bases, mounted = pools) =>
  leftoversOf(files, filePrefix, basePaths, mounted);

Deno.test("neverUsedMark() names each attempt's mark differently, and isNeverUsedMark() knows them all", () => {
  const location = subvolumeLocation("/pool/csi/a", "pool-fs");
  const marks = ["b=1", "b=0"].map((comment) => neverUsedMark(location, comment));
  assert.notEqual(marks[0], marks[1]);
  for (const path of marks) assert.ok(isNeverUsedMark(path, location), path);
  for (const name of ["a/no-disk-", "a/no-disk-yet", "a/no-disk-0a1b2c3d/x", "b/no-disk-yet", "a/disk.img"]) {
    assert.ok(!isNeverUsedMark(`/pool/csi/${name}`, location), name);
  }
});

Deno.test("imageLocationFor() puts a volume into a subvolume where the pool supports that, else into a file", () => {
  const inFolder = {
    path: `/pool/csi/${filePrefix}/disk.img`,
    subvolume: { label: "pool-fs", path: `csi/${filePrefix}` },
  };
  const onTop = { path: `/pool/${filePrefix}/disk.img`, subvolume: { label: "pool-fs", path: filePrefix } };
  assert.deepEqual(imageLocationFor("/pool/csi", filePrefix, pool, "nested"), inFolder);
  assert.deepEqual(imageLocationFor("/pool", filePrefix, pool, "nested"), onTop);
  assert.deepEqual(imageLocationFor("/pool", filePrefix, pool, "flat"), onTop);
  assert.deepEqual(
    imageLocationFor("/pool/csi", filePrefix, pool, "flat"),
    plainLocation(`/pool/csi/${filePrefix}.img`),
  );
  for (const names of ["nested", "flat"] as const) {
    assert.deepEqual(
      imageLocationFor("/fast/csi", filePrefix, plainPool, names),
      plainLocation(`/fast/csi/${filePrefix}.img`),
    );
  }
});

Deno.test("imageLocationFor() refuses a subvolume by a label that a volume has too, and still returns a file", () => {
  const taken = { ...pool, labelTakenBy: "pvc-9" };
  assert.throws(
    () => imageLocationFor("/pool/csi", filePrefix, taken, "nested"),
    refusal("unavailable", /label of its pool: pool=pool volume=pvc-9; have/),
  );
  const file = plainLocation(`/pool/csi/${filePrefix}.img`);
  assert.deepEqual(imageLocationFor("/pool/csi", filePrefix, taken, "flat"), file);
});

Deno.test("a label that two mounts have is refused with the disk and the remedy, and plain files go on", () => {
  const twice = (sameFilesystem: boolean): Pool => ({
    ...pool,
    subvolumeLabel: undefined,
    labelSharedWith: { id: "nvme1", sameFilesystem },
  });
  const image = `/pool/csi/${filePrefix}/disk.img`;
  const file = plainLocation(`/pool/csi/${filePrefix}.img`);
  const cases = [
    [true, /mounts its file system a second time: pool=pool disk=nvme1; set mount-filesystem=no on nvme1/],
    [false, /fs-uuid for both.* mount-filesystem=no on nvme1.*; else give one of the two another label$/],
  ] as const;
  for (const [same, text] of cases) {
    const shared = twice(same);
    const expected = refusal("unavailable", text);
    assert.throws(() => imageLocationFor("/pool/csi", filePrefix, shared, "nested"), expected);
    assert.throws(() => locationOf(image, [shared]), expected);
    assert.deepEqual(imageLocationFor("/pool/csi", filePrefix, shared, "flat"), file);
    assert.deepEqual(locationOf(file.path, [shared]), file);
  }
});

Deno.test("withinPool() returns a path as the pool's file system names it", () => {
  assert.equal(withinPool("/pool/csi/deep/x"), "csi/deep/x");
  assert.equal(withinPool("/pool/x"), "x");
});

Deno.test("locationOf() returns where an image is, on any pool", () => {
  const cases: [string, ImageLocation][] = [
    [`/pool/csi/${filePrefix}.img`, plainLocation(`/pool/csi/${filePrefix}.img`)],
    [`/fast/csi/${filePrefix}.img`, plainLocation(`/fast/csi/${filePrefix}.img`)],
    [`/gone/csi/${filePrefix}.img`, plainLocation(`/gone/csi/${filePrefix}.img`)],
    [`/pool/csi/${filePrefix}/disk.img`, subvolumeLocation(`/pool/csi/${filePrefix}`, "pool-fs")],
    [`/pool/${filePrefix}/disk.img`, subvolumeLocation(`/pool/${filePrefix}`, "pool-fs")],
  ];
  for (const [path, location] of cases) assert.deepEqual(locationOf(path, pools), location, path);
});

Deno.test("locationOf() does not guess an image's subvolume", () => {
  for (
    const path of [
      `/fast/csi/${filePrefix}/disk.img`,
      `/gone/csi/${filePrefix}/disk.img`,
      `/pool2/${filePrefix}/disk.img`,
    ]
  ) {
    assert.throws(() => locationOf(path, pools), refusal("unavailable", /shows no label/), path);
  }
});

Deno.test("leftoversOf() finds each form of remains once", () => {
  const subvolume = subvolumeLocation(`/pool/csi/${filePrefix}`, "pool-fs");
  const cases: [string, StoredFile[], ImageLocation[]][] = [
    ["nothing", [], []],
    ["a file", [file(`/fast/csi/${filePrefix}.img`)], [plainLocation(`/fast/csi/${filePrefix}.img`)]],
    ["a file on top of a pool", [file(`/pool/${filePrefix}.img`)], [
      plainLocation(`/pool/${filePrefix}.img`),
    ]],
    ["an empty subvolume", [folder(`/pool/csi/${filePrefix}`)], [subvolume]],
    ["a subvolume", [folder(`/pool/csi/${filePrefix}`), file(`/pool/csi/${filePrefix}/disk.img`)], [
      subvolume,
    ]],
    ["a subvolume whose image comes first", [
      file(`/pool/csi/${filePrefix}/disk.img`),
      folder(`/pool/csi/${filePrefix}`),
    ], [subvolume]],
    ["a subvolume that is not shown as a folder", [file(`/pool/csi/${filePrefix}/disk.img`)], [subvolume]],
    ["an unfinished copy", [file(`/pool/csi/${filePrefix}.img.0123abcd.part`)], [
      plainLocation(`/pool/csi/${filePrefix}.img.0123abcd.part`),
    ]],
    ["one in each folder", [file(`/pool/${filePrefix}.img`), file(`/fast/csi/${filePrefix}.img`)], [
      plainLocation(`/pool/${filePrefix}.img`),
      plainLocation(`/fast/csi/${filePrefix}.img`),
    ]],
  ];
  for (const [name, files, locations] of cases) assert.deepEqual(leftovers(files), locations, name);
});

Deno.test("leftoversOf() never returns what is not the volume's own", () => {
  const others = [
    file(`/pool/csi/pvc-1.ffffffff.img`),
    folder(`/pool/csi/pvc-1.ffffffff`),
    file("/pool/csi/pvc-1.img"),
    folder("/pool/csi/pvc-1"),
    file(`/pool/csi/${filePrefix}0.img`),
    folder(`/pool/csi/${filePrefix}0`),
    file(`/pool/csi/${filePrefix}0/disk.img`),
    file(`/pool/csi/${filePrefix}-old.img`),
    file(`/pool/csi/x${filePrefix}.img`),
    folder(`/pool/csi/x${filePrefix}`),
    file(`/pool/old/${filePrefix}.img`),
    folder(`/pool/old/${filePrefix}`),
    file(`/pool/old/${filePrefix}/disk.img`),
    file(`/pool/csi/deep/${filePrefix}.img`),
    file(`/pool2/csi/${filePrefix}.img`),
    file(`/pool/csi2/${filePrefix}.img`),
    file(`/pool/csi/${filePrefix}`),
    folder(`/pool/csi/${filePrefix}.img`),
    file(`/pool/csi/${filePrefix}/notes.txt`),
    file(`/pool/csi/${filePrefix}/deep/disk.img`),
    folder(`/pool/csi/${filePrefix}/disk.img`),
    file(`/pool/csi/${filePrefix}.img.bak`),
    file(`/pool/csi/${filePrefix}.img.part`),
    file(`/pool/csi/${filePrefix}.img.0123abcd.part2`),
    file(`/pool/csi/${filePrefix}.img.0123ABCD.part`),
    file(`/pool/csi/${filePrefix}.img.0123abcd0.part`),
    folder(`/pool/csi/${filePrefix}.img.0123abcd.part`),
    file(`/pool/csi/snap-${"0".repeat(28)}.pvc-1.zz.n.0123abcd.img`),
  ];
  for (const other of others) assert.deepEqual(leftovers([other]), [], other.path);
  assert.deepEqual(leftovers([file(`/pool/csi/${filePrefix}.img`)], ["/fast/csi"]), []);
});

Deno.test("leftoversOf() is not deceived by folders whose paths have the same length", () => {
  const deep = `/pool/csi/${filePrefix}0123/${filePrefix}.img`;
  assert.deepEqual(
    leftovers([file(deep)], [`/fast/csi/${"x".repeat(filePrefix.length + 4)}`, "/pool/csi"]),
    [],
  );
});

Deno.test("leftoversOf() does not report a subvolume as gone when its pool shows no label", () => {
  const files = [folder(`/pool/csi/${filePrefix}`), file(`/pool/csi/${filePrefix}/disk.img`)];
  for (const mounted of [[], [{ ...pool, subvolumeLabel: undefined }]]) {
    assert.throws(() => leftovers(files, bases, mounted), refusal("unavailable", /shows no label/));
  }
});

Deno.test("unfinishedPath() is a leftover and an unfinished copy, and no image", () => {
  const path = unfinishedPath(`/pool/csi/${filePrefix}.img`, "0123abcd");
  assert.deepEqual(leftovers([file(path)]), [plainLocation(path)]);
  assert.deepEqual(unfinishedCopies([file(path)], filePrefix, bases), [path]);
  assert.equal(isImageOf(path, filePrefix), false);
});

Deno.test("unfinishedCopies() returns neither an image nor another volume's copy", () => {
  const others = [
    file(`/pool/csi/${filePrefix}.img`),
    file(`/pool/csi/${filePrefix}/disk.img`),
    file(`/pool/csi/${filePrefix}0.img.0123abcd.part`),
    file(`/pool/csi/x${filePrefix}.img.0123abcd.part`),
    file(`/pool/old/${filePrefix}.img.0123abcd.part`),
    file(`/pool/csi/${filePrefix}.img.0123abcd.part.bak`),
    folder(`/pool/csi/${filePrefix}.img.0123abcd.part`),
  ];
  assert.deepEqual(unfinishedCopies(others, filePrefix, bases), []);
});
