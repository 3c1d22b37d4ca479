import assert from "node:assert/strict";
import { VolumeError } from "../volume/errors.ts";
import { parseDisks, parseFiles, parseResource } from "./rows.ts";

function unavailable(action: () => unknown, form: RegExp): void {
  assert.throws(action, (error) => VolumeError.is(error, "unavailable") && form.test(error.message));
}

const disk = {
  ".id": "*1F",
  "block-device": true,
  comment: "{rds1 …}",
  "file-offset": 0,
  "file-path": "/pool/csi/s1.img",
  "file-size": 53687091200,
  fs: "-",
  "mount-filesystem": false,
  "nvme-tcp-export": true,
  "nvme-tcp-server-nqn": "nqn.2000-02.com.mikrotik:s1:1-ab",
  "nvme-tcp-server-port": 4420,
  size: 53687091200,
  slot: "s1",
  type: "file",
};
const pool = {
  ".id": "*B",
  free: 7301927047168,
  fs: "btrfs",
  "mount-point": "pool",
  mounted: true,
  size: 7681574174720,
  slot: "raid1",
  state: "clean",
  type: "raid",
};
const volume = {
  id: "s1",
  imagePath: "/pool/csi/s1.img",
  sizeBytes: 53687091200n,
  exported: true,
  exportNqn: "nqn.2000-02.com.mikrotik:s1:1-ab",
  exportPort: 4420,
  comment: "{rds1 …}",
};

function without<T extends object>(item: T, ...keys: string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(item).filter(([key]) => !keys.includes(key)));
}

function disksOf(...rows: object[]) {
  return parseDisks(JSON.stringify(rows));
}

Deno.test("parseDisks() sorts file disks, other disks and mounted pools", () => {
  assert.deepEqual(disksOf(disk, pool, { slot: "nvme1", type: "hardware", mounted: false }), {
    volumes: [volume],
    others: [{ id: "raid1", kind: "raid" }, { id: "nvme1", kind: "hardware" }],
    pools: [{
      mountPoint: "pool",
      filesystem: "btrfs",
      sizeBytes: 7681574174720n,
      freeBytes: 7301927047168n,
    }],
  });
});

for (
  const [name, row] of [
    ["sizes and ports in digits", { ...disk, size: "53687091200", "nvme-tcp-server-port": "4420" }],
    ["booleans as words", { ...disk, "nvme-tcp-export": "yes", "mount-filesystem": "no" }],
    ["a rounded file-size", { ...disk, "file-size": "50.0GiB" }],
    ["no file-size", without(disk, "file-size")],
    ["an exact file-size and no size", without(disk, "size")],
    ["a path without leading slash", { ...disk, "file-path": "pool/csi/s1.img" }],
    ["unknown keys", { ...disk, "something-new": { a: [1] } }],
  ] as const
) {
  Deno.test(`parseDisks() reads a disk with ${name}`, () => {
    assert.deepEqual(disksOf(row).volumes, [volume]);
  });
}

Deno.test("parseDisks() takes what the router leaves out of an unexported disk for empty", () => {
  const row = {
    ...without(disk, "comment", "nvme-tcp-server-nqn", "nvme-tcp-server-port"),
    "nvme-tcp-export": false,
  };
  assert.deepEqual(disksOf(row).volumes, [{
    ...volume,
    comment: "",
    exported: false,
    exportNqn: "",
    exportPort: 0,
  }]);
});

for (const key of ["slot", "type", "file-path", "nvme-tcp-export"]) {
  Deno.test(`parseDisks() throws unavailable without ${key}, naming it`, () => {
    unavailable(() => disksOf(without(disk, key)), new RegExp(key));
  });
}

Deno.test("parseDisks() throws unavailable when no exact size is given", () => {
  unavailable(() => disksOf({ ...without(disk, "size"), "file-size": "50.0GiB" }), /size/);
  unavailable(() => disksOf({ ...disk, size: "50.0GiB" }), /size/);
});

Deno.test("parseDisks() throws unavailable for two disks in one slot", () => {
  unavailable(() => disksOf(disk, { ...disk, "file-path": "/pool/other" }), /s1/);
});

Deno.test("parseDisks() orders volumes by the code units of their ids", () => {
  const ids = disksOf(...["b", "a-", "B", "a0", "a"].map((slot) => ({ ...disk, slot }))).volumes.map((
    { id },
  ) => id);
  assert.deepEqual(ids, ["B", "a", "a-", "a0", "b"]);
});

Deno.test("parseDisks() takes only mounted disks that tell their space for pools", () => {
  assert.deepEqual(disksOf({ ...pool, mounted: false }).pools, []);
  assert.deepEqual(disksOf(without(pool, "mounted")).pools, []);
  assert.deepEqual(disksOf(without(pool, "free")).pools, []);
  assert.deepEqual(disksOf({ ...pool, "mount-point": "" }).pools, []);
  assert.equal(disksOf({ ...pool, "mount-point": "/pool/", mounted: "yes" }).pools[0]?.mountPoint, "pool");
});

Deno.test("parseDisks() throws unavailable for a pool whose free space cannot be read", () => {
  unavailable(() => disksOf({ ...pool, free: "6.6TiB" }), /free/);
});

Deno.test("parseFiles() keeps the files that were asked for, with a leading slash", () => {
  const rows = [
    { name: "pool/csi/s1.img", type: ".img file", size: 1024 },
    { name: "/pool/csi", type: "directory" },
    { name: "pool/csi/other.img", type: ".img file", size: 1 },
  ];
  assert.deepEqual(parseFiles(JSON.stringify(rows), ["/pool/csi/s1.img", "/pool/csi"]), [
    { path: "/pool/csi/s1.img", directory: false, sizeBytes: 1024n },
    { path: "/pool/csi", directory: true, sizeBytes: 0n },
  ]);
});

Deno.test("parseFiles() throws unavailable for a file without name, type or size", () => {
  const file = { name: "pool/a", type: "file", size: 1 };
  for (const key of Object.keys(file)) {
    unavailable(() => parseFiles(JSON.stringify([without(file, key)]), ["/pool/a"]), new RegExp(key));
  }
});

Deno.test("parseResource() reads the uptime", () => {
  assert.equal(parseResource(`{"uptime":"2w1d03:04:05","version":"7.24 (stable)"}`).upMs, 1307045000);
});

Deno.test("parseResource() throws unavailable when the uptime is missing or unreadable", () => {
  unavailable(() => parseResource(`{"version":"7.24"}`), /uptime/);
  unavailable(() => parseResource(`{"uptime":"soon"}`), /soon/);
  unavailable(() => parseResource(`{"uptime":5}`), /uptime/);
});
