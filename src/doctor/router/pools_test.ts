import assert from "node:assert/strict";
import { judgePools, parsePoolDisks, type PoolDisk } from "./pools.ts";

const tebibyte = 1n << 40n;
const pool: PoolDisk = {
  slot: "raid1",
  filesystem: "btrfs",
  label: "pool",
  mounted: true,
  mountPoint: "storage-pool",
  state: "clean",
  sizeBytes: 7n * tebibyte,
  freeBytes: 3n * tebibyte,
};

const cases: readonly (readonly [what: string, disk: Partial<PoolDisk>, state: string, words: RegExp])[] = [
  ["a clean pool", {}, "ok", /^\/storage-pool: btrfs, label pool, clean, 3.0 TiB of 7.0 TiB free$/],
  ["a pool without a state", { state: "" }, "ok", /label pool, 3.0 TiB/],
  ["a degraded pool", { state: "degraded" }, "problem", /not clean/],
  ["Btrfs without a label", { label: "" }, "warning", /no snapshots/],
  ["XFS without a label", { label: "", filesystem: "xfs" }, "ok", /xfs/],
  ["a full pool", { freeBytes: tebibyte / 4n }, "warning", /may not be there/],
];

for (const [what, disk, state, words] of cases) {
  Deno.test(`judgePools() finds ${what} to be: ${state}`, () => {
    const [finding, ...more] = judgePools([{ ...pool, ...disk }]);
    assert.deepEqual(more, []);
    assert.equal(finding!.state, state);
    assert.match(finding!.found, words);
  });
}

Deno.test("judgePools() misses the pools when none is mounted, and names a file system that could be", () => {
  const findings = judgePools([
    { ...pool, mounted: false, mountPoint: "" },
    { ...pool, slot: "nvme1", filesystem: "", mounted: false, mountPoint: "" },
  ]);
  assert.deepEqual(findings.map(({ state }) => state), ["warning", "problem"]);
  assert.match(findings[0]!.fix!, /slot="raid1"/);
});

Deno.test("parsePoolDisks() reads what a router says of hardware and of pools", () => {
  const rows = [
    { slot: "nvme1", fs: "-", size: 5 },
    {
      slot: "raid1",
      fs: "btrfs",
      "fs-label": "pool",
      mounted: "yes",
      "mount-point": "/storage-pool",
      state: "clean",
      size: "10",
      free: 4,
    },
  ];
  assert.deepEqual(parsePoolDisks(JSON.stringify(rows)), [
    {
      slot: "nvme1",
      filesystem: "",
      label: "",
      mounted: false,
      mountPoint: "",
      state: "",
      sizeBytes: 5n,
      freeBytes: 0n,
    },
    { ...pool, sizeBytes: 10n, freeBytes: 4n },
  ]);
});
