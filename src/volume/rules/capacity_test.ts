import assert from "node:assert/strict";
import { aDisk, aPool, aRecord } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { assertRoom, availableBytes, getPool, overPromisedBytes, type Promises } from "./capacity.ts";
import type { CreateView, StoredFile } from "../model/inventory.ts";
import { formatSnapshotName } from "../model/snapshots/snapshots.ts";

const pool = aPool({ sizeBytes: 1000n, freeBytes: 1000n });
const disk = (sizeBytes: bigint, imagePath = "/pool/csi/x.img") =>
  aDisk(aRecord(), { sizeBytes, imagePath, comment: "" });

const promises = (volumes: Promises["volumes"], files: readonly StoredFile[] = []) => ({ volumes, files });
const file = (path: string, sizeBytes: bigint, directory = false) => ({ path, sizeBytes, directory });
const name = formatSnapshotName({
  id: `snap-${"0".repeat(28)}`,
  source: "pvc-1",
  createdAtSeconds: 1,
  blank: false,
  encrypted: false,
  cluster: "ffffffff",
});

Deno.test("availableBytes() goes by the first segment of the path, for disks of every owner", () => {
  const disks = [
    disk(1n),
    disk(2n, "/pool/elsewhere/y.img"),
    disk(4n, "/pool2/csi/z.img"),
    disk(8n, "/other/pool/z"),
  ];
  assert.equal(availableBytes(pool, promises(disks), 1), 1000n - 3n);
});

Deno.test("availableBytes() counts every snapshot of the pool once, of every owner, and no other file", () => {
  const cases: [string, StoredFile[], bigint][] = [
    ["in a subvolume", [file(`/pool/csi/${name}`, 0n, true), file(`/pool/csi/${name}/disk.img`, 7n)], 7n],
    ["a file", [file(`/pool/csi/${name}.img`, 7n)], 7n],
    ["half copied", [file(`/pool/csi/${name}.img.0123abcd.part`, 5n)], 5n],
    ["on another pool", [file(`/pool2/csi/${name}.img`, 7n)], 0n],
    ["an image of a volume", [file("/pool/csi/pvc-1.ffffffff.img", 7n)], 0n],
    ["what looks like one", [file(`/pool/csi/${name}.img.bak`, 7n), file(`/pool/csi/x${name}.img`, 7n)], 0n],
    ["what else is in its folder", [file(`/pool/csi/${name}/notes.txt`, 7n)], 0n],
    ["a folder of that name", [file(`/pool/csi/${name}.img`, 7n, true)], 0n],
  ];
  for (const [what, files, taken] of cases) {
    assert.equal(availableBytes(pool, promises([], files), 1), 1000n - taken, what);
  }
  const shown = file(`/pool/csi/${name}.img`, 7n);
  const onDisk = promises([disk(9n, shown.path)], [shown]);
  assert.equal(availableBytes(pool, onDisk, 1), 1000n - 9n, "a snapshot that somebody made a disk of");
});

Deno.test("availableBytes() is the least of what is free and what is not promised yet", () => {
  const cases: [string, bigint, bigint[], number, bigint][] = [
    ["empty", 1000n, [], 1, 1000n],
    ["promised though nothing is written", 1000n, [300n, 400n], 1, 300n],
    ["written by others", 200n, [300n], 1, 200n],
    ["full to the byte", 1000n, [1000n], 1, 0n],
    ["over-promised", 1000n, [700n, 700n], 1, 0n],
    ["overcommitted, less free than promisable", 1000n, [700n], 2, 1000n],
    ["overcommitted", 1000n, [1200n], 1.5, 300n],
    ["a fraction that floats cannot hold", 1000n, [], 1.001, 1000n],
    ["less than all of it", 1000n, [100n], 0.9, 800n],
    ["more free than the pool has", 5000n, [], 1, 1000n],
  ];
  for (const [name, freeBytes, sizes, overcommit, available] of cases) {
    const disks = sizes.map((size) => disk(size));
    assert.equal(availableBytes({ ...pool, freeBytes }, promises(disks), overcommit), available, name);
  }
});

Deno.test("overPromisedBytes() counts only what is above the limit", () => {
  assert.equal(overPromisedBytes(pool, promises([disk(1000n)]), 1), 0n);
  assert.equal(overPromisedBytes(pool, promises([disk(1000n), disk(1n)]), 1), 1n);
  assert.equal(overPromisedBytes(pool, promises([disk(1500n)]), 1.5), 0n);
  assert.equal(overPromisedBytes(pool, promises([disk(900n)]), 1, 100n), 0n);
  assert.equal(overPromisedBytes(pool, promises([disk(900n)]), 1, 101n), 1n);
  const snapshot = file(`/pool/csi/${name}/disk.img`, 7n);
  assert.equal(overPromisedBytes(pool, promises([disk(1000n)], [snapshot]), 1), 7n);
});

Deno.test("assertRoom() refuses one byte too many and a pool that is not mounted", () => {
  const snapshot = file(`/pool/csi/${name}/disk.img`, 100n);
  const inventory: CreateView = {
    volumes: [disk(300n)],
    pools: [pool],
    upMs: 1,
    foreign: undefined,
    files: [snapshot],
  };
  assertRoom(inventory, "/pool/csi", 600n, 1);
  assert.throws(
    () => assertRoom(inventory, "/pool/csi", 601n, 1),
    refusal("exhausted", /needs 601 B, 600 B left/),
  );
  assert.throws(() => assertRoom(inventory, "/pool2/csi", 1n, 1), refusal("unavailable", /pool=pool2/));
  assert.equal(getPool(inventory, "/pool"), pool);
});
