import assert from "node:assert/strict";
import { aDisk, aRecord } from "../../tests/fakes/records.ts";
import { refusal } from "../../tests/fakes/refusal.ts";
import { assertRoom, availableBytes, getPool, overPromisedBytes, volumesOn } from "./capacity.ts";
import type { Pool } from "./ports.ts";

const pool: Pool = { mountPoint: "pool", filesystem: "btrfs", sizeBytes: 1000n, freeBytes: 1000n };
const disk = (sizeBytes: bigint, imagePath = "/pool/csi/x.img", comment = "") =>
  aDisk(aRecord(), { sizeBytes, imagePath, comment });

Deno.test("volumesOn() goes by the first segment of the path, whoever owns the disk", () => {
  const disks = [
    disk(1n),
    disk(2n, "/pool/elsewhere/y.img"),
    disk(4n, "/pool2/csi/z.img"),
    disk(8n, "/other/pool/z"),
  ];
  assert.deepEqual(volumesOn(pool, disks), disks.slice(0, 2));
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
    assert.equal(availableBytes({ ...pool, freeBytes }, disks, overcommit), available, name);
  }
});

Deno.test("overPromisedBytes() counts only what is above the limit", () => {
  assert.equal(overPromisedBytes(pool, [disk(1000n)], 1), 0n);
  assert.equal(overPromisedBytes(pool, [disk(1000n), disk(1n)], 1), 1n);
  assert.equal(overPromisedBytes(pool, [disk(1500n)], 1.5), 0n);
});

Deno.test("assertRoom() refuses one byte too many and a pool that is not mounted", () => {
  const inventory = { volumes: [disk(400n)], pools: [pool], upMs: 1 };
  assertRoom(inventory, "/pool/csi", 600n, 1);
  assert.throws(
    () => assertRoom(inventory, "/pool/csi", 601n, 1),
    refusal("exhausted", /pool=pool needed=601 available=600/),
  );
  assert.throws(() => assertRoom(inventory, "/pool2/csi", 1n, 1), refusal("unavailable", /pool=pool2/));
  assert.equal(getPool(inventory, "/pool"), pool);
});
