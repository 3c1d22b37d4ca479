import assert from "node:assert/strict";
import { throwsWith } from "../../../tests/fakes/volume_errors.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { parseDisks, parseFiles, withUnsoundArrays } from "./rows.ts";

const unavailable = (action: () => unknown, form: RegExp) => throwsWith(action, "unavailable", form);

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
  "fs-label": "pool-fs",
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
      state: "clean",
      subvolumeLabel: "pool-fs",
    }],
    poolSlots: new Map([["pool", "raid1"]]),
  });
});

Deno.test("withUnsoundArrays() names the arrays below a pool that are not sound, and no other", () => {
  const disks = disksOf(pool);
  const arrays = (...rows: object[]) => withUnsoundArrays(disks, JSON.stringify(rows))[0]!.unsoundArrays;
  const mirror = { slot: "m0", type: "raid", "raid-master": "raid1", state: "degraded" };
  assert.deepEqual(arrays(mirror), [{ slot: "m0", state: "degraded" }]);
  assert.deepEqual(arrays({ ...mirror, state: ["degraded", "sync:recover"] }), [
    { slot: "m0", state: "degraded, sync:recover" },
  ]);
  for (
    const other of [{ "raid-master": "raid2" }, { "raid-master": "none" }, { state: "clean, sync:repair" }]
  ) {
    assert.equal(arrays({ ...mirror, ...other }), undefined, JSON.stringify(other));
  }
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

Deno.test("parseDisks() reports whether the router may mount a disk", () => {
  const read = (value: unknown) =>
    disksOf({ ...disk, "mount-filesystem": value }).volumes.map(({ mayBeMounted }) => mayBeMounted);
  assert.deepEqual([true, "yes", false, "no"].flatMap(read), [true, true, undefined, undefined]);
  assert.equal(disksOf(without(disk, "mount-filesystem")).volumes[0]!.mayBeMounted, undefined);
});

const unreadable: readonly (readonly [what: string, rows: readonly object[], form: RegExp])[] = [
  ...["slot", "type", "file-path"].map((key) =>
    [`a disk without ${key}`, [without(disk, key)], new RegExp(key)] as const
  ),
  ["a disk with a comment that is no text", [{ ...disk, comment: 7 }], /comment/],
  ["two disks in one slot", [disk, { ...disk, "file-path": "/pool/other" }], /s1/],
];

for (const [what, rows, form] of unreadable) {
  Deno.test(`parseDisks() throws unavailable for ${what}, naming it`, () => {
    unavailable(() => disksOf(...rows), form);
  });
}

const gibibyte = 1n << 30n;

for (
  const [what, row, known] of [
    ["a rounded file-size alone", { ...without(disk, "size"), "file-size": "50.0GiB" }, {
      sizeBytes: (gibibyte * 501n + 9n) / 10n,
    }],
    ["a rounded size in words", { ...disk, size: "2 TiB", "nvme-tcp-export": "no" }, {
      sizeBytes: 3n << 40n,
      exported: false,
    }],
    ["no size at all", without(disk, "size", "file-size"), { sizeBytes: 0n, sizeUnknown: true }],
    ["a size that is none", { ...without(disk, "file-size"), size: "much" }, {
      sizeBytes: 0n,
      sizeUnknown: true,
    }],
    ["no export", without(disk, "nvme-tcp-export"), {}],
    ["a port that is none", { ...disk, "nvme-tcp-server-port": "nvme" }, {}],
  ] as const
) {
  Deno.test(`parseDisks() shows a disk with ${what} as one that cannot be read, and all others`, () => {
    const other = { ...disk, slot: "s2" };
    const { volumes, pools } = disksOf(row, other, pool);
    const [{ unreadable: reason, ...shown }, readable] = volumes as [StoredVolume, StoredVolume];
    assert.match(reason ?? "", /\(of "s1"\)/);
    assert.deepEqual(shown, { ...volume, exportPort: 0, ...known });
    assert.deepEqual(readable, { ...volume, id: "s2" });
    assert.equal(pools.length, 1);
  });
}

for (
  const [what, row, known] of [
    ["no plain answer to whether it is mounted", { mounted: "maybe" }, {
      routerUses: ["its file system is mounted"],
    }],
    ["a disk below it that is no text", { parent: 7 }, {}],
  ] as const
) {
  Deno.test(`parseDisks() shows a disk with ${what} as one that cannot be read, and all others`, () => {
    const [first, second] = disksOf({ ...disk, ...row }, { ...disk, slot: "s2" }, pool).volumes;
    const { unreadable: reason, ...shown } = first!;
    assert.match(reason ?? "", /\(of "s1"\)/);
    assert.deepEqual(shown, { ...volume, exportPort: 0, ...known });
    assert.deepEqual(second, { ...volume, id: "s2" });
  });
}

Deno.test("parseDisks() minds no label of a volume that is no text: whoever writes to it writes its label", () => {
  const { volumes, pools } = disksOf({ ...disk, "fs-label": 2024 }, pool);
  assert.deepEqual(volumes, [volume]);
  assert.equal(pools[0]!.labelTakenBy, undefined);
});

Deno.test("parseDisks() notes a disk that is on a volume in whatever form its slot is printed", () => {
  const usesWith = (parent: unknown) =>
    disksOf(disk, { slot: "p1", type: "partition", parent }).volumes[0]!.routerUses;
  for (const parent of ["s1", ["s1"]]) assert.deepEqual(usesWith(parent), ["a disk is on it: disk=p1"]);
  for (const parent of [7, { s1: true }]) assert.equal(usesWith(parent), undefined);
});

for (
  const [key, value] of [
    ["size", "6.9TiB"],
    ["free", "6.6TiB"],
    ["fs", 7],
    ["fs-label", 2024],
    ["state", 7],
    ["mounted", "maybe"],
  ] as const
) {
  Deno.test(`parseDisks() takes a mounted disk for no pool whose ${key} cannot be read, and says why`, () => {
    const other = { ...pool, slot: "usb1", "mount-point": "usb1", "fs-label": "stick", [key]: value };
    const { volumes, pools, unreadablePools = [], poolSlots } = disksOf(disk, pool, other);
    assert.deepEqual([volumes, pools, [...poolSlots.keys()]], [[volume], disksOf(pool).pools, ["pool"]]);
    assert.deepEqual(unreadablePools.map(({ mountPoint }) => mountPoint), ["usb1"]);
    assert.match(unreadablePools[0]!.reason, new RegExp(`the key ${key} .*\\(of "usb1"\\)`));
  });
}

Deno.test("parseDisks() keeps a mounted disk in mind of which not even the mount point can be read", () => {
  const { pools, unreadablePools = [] } = disksOf({ ...pool, "mount-point": 7 });
  assert.deepEqual([pools, unreadablePools.map(({ mountPoint }) => mountPoint)], [[], [""]]);
});

Deno.test("parseDisks() gives no pool a label that a mounted disk has too which cannot be read", () => {
  for (
    const odd of [{ free: "6.6TiB" }, { mounted: "maybe" }, { "mount-point": 7 }, { fs: 7 }, { state: 7 }]
  ) {
    const [found] = disksOf(pool, { ...pool, slot: "usb1", "mount-point": "usb1", ...odd }).pools;
    assert.deepEqual(
      [found!.subvolumeLabel, found!.labelSharedWith?.id],
      [undefined, "usb1"],
      JSON.stringify(odd),
    );
  }
});

Deno.test("withUnsoundArrays() takes one array that cannot be read for unsound, and reads the others", () => {
  const arrays = [
    { slot: "m0", "raid-master": 7, state: "degraded" },
    { slot: "m1", "raid-master": "raid1", state: 7 },
    { "raid-master": "raid1", state: "degraded" },
    { slot: "m3", "raid-master": "raid1", state: "degraded" },
  ];
  const [found] = withUnsoundArrays(disksOf(pool), JSON.stringify(arrays));
  assert.deepEqual(found!.unsoundArrays?.map(({ slot, state }) => [slot, state]), [
    ["m1", "of a state that cannot be read"],
    ["", "degraded"],
    ["m3", "degraded"],
  ]);
});

Deno.test("parseDisks() orders volumes by the code units of their ids", () => {
  const ids = disksOf(...["b", "a-", "B", "a0", "a"].map((slot) => ({ ...disk, slot }))).volumes.map((
    { id },
  ) => id);
  assert.deepEqual(ids, ["B", "a", "a-", "a0", "b"]);
});

Deno.test("parseDisks() takes only mounted disks that tell their space for pools", () => {
  for (
    const change of [{ mounted: false }, { mounted: undefined }, { free: undefined }, { "mount-point": "" }]
  ) {
    assert.deepEqual(disksOf({ ...pool, ...change }).pools, [], JSON.stringify(change));
  }
  assert.equal(disksOf({ ...pool, "mount-point": "/pool/", mounted: "yes" }).pools[0]?.mountPoint, "pool");
});

Deno.test("parseDisks() gives a pool no label where subvolumes cannot be made by it", () => {
  const labelOf = (row: object) => parseDisks(JSON.stringify([row])).pools[0]!.subvolumeLabel;
  // The last could not be sent.
  const changes = [{ fs: "xfs" }, { fs: undefined }, { "fs-label": undefined }, { "fs-label": "" }, {
    "fs-label": "größer",
  }];
  for (const change of changes) {
    assert.equal(labelOf({ ...pool, ...change }), undefined, JSON.stringify(change));
  }
});

Deno.test("parseDisks() gives no pool a label that another one has too", () => {
  const labels = (...more: object[]) => disksOf(pool, ...more).pools.map((one) => one.subvolumeLabel);
  const other = { ...pool, slot: "raid2", "mount-point": "other" };
  assert.deepEqual(labels(other), [undefined, undefined]);
  assert.deepEqual(labels({ ...other, "fs-label": "other-fs" }), ["pool-fs", "other-fs"]);
  assert.deepEqual(
    labels({ ...pool, slot: "raid2" }),
    ["pool-fs", "pool-fs"],
    "two disks of one file system",
  );
});

Deno.test("parseDisks() names the disk that has a pool's label as well, and whether it is the same file system", () => {
  const uuid = "40437dbc-2318-45dc-817b-b3bb95cf48ab";
  const shared = (mine: object, theirs: object) =>
    disksOf({ ...pool, ...mine }, { ...pool, slot: "nvme1", "mount-point": "nvme1", ...theirs }).pools[0]!
      .labelSharedWith;
  const same = { "fs-uuid": uuid };
  assert.deepEqual(shared(same, same), { id: "nvme1", sameFilesystem: true });
  for (const theirs of [{}, { "fs-uuid": "another" }]) {
    assert.deepEqual(shared(same, theirs), { id: "nvme1", sameFilesystem: false });
    assert.deepEqual(shared({}, theirs), { id: "nvme1", sameFilesystem: false });
  }
  assert.equal(shared(same, { ...same, "mount-point": pool["mount-point"] }), undefined, "one mount");
  assert.equal(shared(same, { ...same, mounted: false }), undefined);
});

Deno.test("parseDisks() says which volume has the label of a pool, by what was written into it", () => {
  const inside = { ...disk, slot: "pvc-9", fs: "btrfs", "fs-label": "pool-fs", mounted: false };
  const taken = (...more: object[]) => disksOf(pool, ...more).pools.map((one) => one.labelTakenBy);
  assert.deepEqual(taken(inside), ["pvc-9"]);
  assert.deepEqual(taken({ ...inside, "fs-label": "mine" }, { ...pool, slot: "raid2" }), [
    undefined,
    undefined,
  ]);
});

Deno.test("parseDisks() takes a pool's state as it is, also where there is none", () => {
  assert.equal(disksOf({ ...pool, state: "degraded, recovering" }).pools[0]!.state, "degraded, recovering");
  assert.equal(disksOf(without(pool, "state")).pools[0]!.state, "");
});

const all = () => true;

Deno.test("parseFiles() keeps the files that were asked for, with a leading slash", () => {
  const rows = [
    { name: "pool/csi/s1.img", type: ".img file", size: 1024 },
    { name: "/pool/csi", type: "directory" },
    { name: "pool", type: "disk" },
    { name: "pool/csi/other.img", type: ".img file", size: 1 },
  ];
  assert.deepEqual(parseFiles(JSON.stringify(rows), (path) => !path.includes("other")), [
    { path: "/pool/csi/s1.img", directory: false, sizeBytes: 1024n },
    { path: "/pool/csi", directory: true, sizeBytes: 0n },
    { path: "/pool", directory: true, sizeBytes: 0n },
  ]);
});

Deno.test("parseFiles() throws unavailable for a file without name, type or size", () => {
  const file = { name: "pool/a", type: "file", size: 1 };
  for (const key of Object.keys(file)) {
    unavailable(() => parseFiles(JSON.stringify([without(file, key)]), all), new RegExp(key));
  }
});
