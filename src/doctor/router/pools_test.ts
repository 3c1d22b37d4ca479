import assert from "node:assert/strict";
import type { Fragment } from "../../routeros/console/command.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { Finding } from "../../volume/model/finding.ts";
import type { CheckSettings, RouterClient } from "./check.ts";
import { judgePools, parsePoolDisks, type PoolDisk, poolsCheck, type PoolSettings } from "./pools.ts";

const tebibyte = 1n << 40n;
const pool: PoolDisk = {
  slot: "raid1",
  filesystem: "btrfs",
  label: "pool",
  mounted: true,
  mountPoint: "pool",
  state: "clean",
  sizeBytes: 7n * tebibyte,
  freeBytes: 3n * tebibyte,
  filesystemUuid: "40437dbc-2318-45dc-817b-b3bb95cf48ab",
  master: "",
  failed: false,
  exported: false,
  below: [],
};
/** A disk without a file system. */
const bare: PoolDisk = {
  ...pool,
  slot: "nvme1",
  filesystem: "",
  label: "",
  mounted: false,
  mountPoint: "",
  state: "",
  freeBytes: 0n,
  filesystemUuid: "",
};
const plain: PoolSettings = { basePaths: ["/pool/csi"], overcommit: 1 };

function ofPool(own: Partial<PoolDisk>): Finding {
  const [finding, ...more] = judgePools([{ ...pool, ...own }], plain);
  assert.deepEqual(more, []);
  return finding!;
}

/** A stripe over two mirrors of two drives each, as RouterOS nests arrays. */
function striped(mirror: Partial<PoolDisk> = {}, drive: Partial<PoolDisk> = {}): Finding[] {
  const mirrors = [0, 1].map((n) => ({ ...bare, slot: `raid1-m${n}`, master: "raid1", state: "clean" }));
  const drives = mirrors.flatMap(({ slot }) =>
    ["a", "b"].map((n) => ({ ...bare, slot: slot + n, master: slot }))
  );
  mirrors[1] = { ...mirrors[1]!, ...mirror };
  drives[3] = { ...drives[3]!, ...drive };
  return judgePools([{ ...pool, filesystem: "xfs" }, ...mirrors, ...drives], plain);
}

const only = ([finding, ...more]: readonly Finding[]): Finding => {
  assert.deepEqual(more, []);
  return finding!;
};
const member: PoolDisk = { ...bare, filesystem: "btrfs", label: "pool", filesystemUuid: pool.filesystemUuid };

const deleteFirst =
  /^add drives, or delete only what is not needed: snapshots .*, then claims.*; after a loss .* delete nothing/;
const cases: readonly (readonly [what: string, Finding, state: string, found: RegExp, fix?: RegExp])[] = [
  ["a clean pool", ofPool({}), "ok", /^\/pool: btrfs, label pool, clean, 3 TiB of 7 TiB free$/],
  ["a pool of bytes", ofPool({ sizeBytes: 1536n, freeBytes: 1023n }), "ok", /1023 B of 1.5 KiB free$/],
  ["a pool beyond units", ofPool({ sizeBytes: 1n << 62n, freeBytes: 1n << 62n }), "ok", /4096 PiB of/],
  ["a pool without a state", ofPool({ state: "" }), "ok", /label pool, 3 TiB/],
  ["a degraded pool", ofPool({ state: "degraded" }), "problem", /not clean/, /slot~"raid1"/],
  [
    "Btrfs without a label",
    ofPool({ label: "" }),
    "warning",
    /no snapshots/,
    /a label that no other one has/,
  ],
  ["XFS without a label", ofPool({ label: "", filesystem: "xfs" }), "ok", /xfs/],
  [
    "a nearly full pool",
    ofPool({ freeBytes: tebibyte / 4n }),
    "warning",
    /may run out of space/,
    deleteFirst,
  ],
  ["a full pool", ofPool({ freeBytes: tebibyte / 20n }), "problem", /it is full: volumes/, deleteFirst],
  [
    "a full XFS",
    ofPool({ freeBytes: 0n, filesystem: "xfs", label: "" }),
    "problem",
    /it is full/,
    deleteFirst,
  ],
  [
    "a pool that checks itself",
    ofPool({ state: "clean, sync:repair, resync = 3%" }),
    "ok",
    /clean, sync:repair, resync = 3%, 3/,
  ],
  [
    "a degraded pool that copies",
    ofPool({ state: "degraded, sync:recover, recovery = 3%" }),
    "problem",
    /not clean/,
    /raid1/,
  ],
  ["clean mirrors below a stripe", only(striped()), "ok", /^\/pool: xfs/],
  [
    "a mirror that copies below a stripe",
    only(striped({ state: "clean, sync:resync" })),
    "ok",
    /^\/pool: xfs/,
  ],
  [
    "a degraded mirror below a stripe",
    only(striped({ state: "degraded" })),
    "problem",
    /raid1-m1 below it is degraded/,
    /raid1/,
  ],
  [
    "a failed drive below a stripe",
    only(striped({}, { failed: true })),
    "problem",
    /its member raid1-m1b has failed/,
    /raid1/,
  ],
  ["Btrfs over two drives", only(judgePools([pool, member], plain)), "ok", /label pool, with nvme1, clean/],
  [
    "a drive that another machine has",
    only(judgePools([pool, { ...member, filesystem: "ext4", exported: true }], plain)),
    "ok",
    /./,
  ],
];

Deno.test("judgePools() finds a drive of a Btrfs that is mounted as well, and never the mount of a base path", () => {
  const drive = { ...pool, slot: "nvme1", mountPoint: "nvme1" };
  for (const disks of [[pool, drive], [drive, pool], [pool, { ...drive, label: "old" }]]) {
    const [second, first, ...more] = judgePools(disks, plain);
    assert.deepEqual([second!.state, first!.state, more], ["problem", "ok", []]);
    assert.match(second!.found, /^\/nvme1: nvme1 is a drive of the file system of \/pool, .* a second time/);
    assert.match(second!.fix!, /\/nvme1.*slot="nvme1"\] mount-filesystem=no/);
  }
  const other = { ...drive, filesystemUuid: "another" };
  assert.deepEqual(judgePools([pool, other], plain).map(({ state }) => state), ["ok", "ok"]);
});

for (const [what, finding, state, found, fix = /^$/] of cases) {
  Deno.test(`doctor finds a pool with ${what} to be: ${state}`, () => {
    assert.equal(finding.state, state);
    assert.match(finding.found, found);
    assert.match(finding.fix ?? "", fix);
  });
}

Deno.test("judgePools() warns of a file system that is not mounted, unless it is a drive of a mounted one", () => {
  for (const other of [{ filesystemUuid: "another" }, { filesystemUuid: "" }, { filesystem: "xfs" }]) {
    const [, finding] = judgePools([pool, { ...member, ...other }], plain);
    assert.equal(finding!.state, "warning");
    assert.match(finding!.found, /^nvme1 .* is not mounted$/);
  }
});

Deno.test("nobody is advised to mount a file system with the label of a mounted pool", () => {
  const fixOf = (own: Partial<PoolDisk>) =>
    judgePools([pool, {
      ...pool,
      slot: "usb1",
      mounted: false,
      mountPoint: "",
      filesystemUuid: "another",
      ...own,
    }], plain)
      .map(({ fix }) => fix)[1];
  assert.match(fixOf({})!, /^if it is a copy of \/pool, give it another label before/);
  for (const own of [{ label: "usb" }, { label: "" }, { filesystem: "xfs" }]) {
    assert.match(fixOf(own)!, /mount-filesystem=yes/);
  }
});

Deno.test("nobody is advised to mount a part of a volume, or of a drive that another machine has", () => {
  const drive: PoolDisk = { ...bare, slot: "nvme9", exported: true };
  const part: PoolDisk = { ...member, slot: "part1", filesystem: "xfs", filesystemUuid: "" };
  const inner: PoolDisk = { ...part, slot: "inner", below: ["part1"] };
  const advised = (files: { id: string; exported: boolean }[], ...parts: PoolDisk[]) =>
    judgePools([pool, drive, ...parts], plain, files).slice(1).map(({ found }) => found.split(" ")[0]);
  assert.deepEqual(advised([], { ...part, below: ["nvme8"] }), ["part1"]);
  assert.deepEqual(advised([], { ...part, below: ["nvme9"] }), []);
  assert.deepEqual(advised([], { ...part, below: ["nvme9"] }, inner), []);
  for (const exported of [true, false]) {
    assert.deepEqual(advised([{ id: "pvc-1", exported }], { ...part, below: ["pvc-1"] }, inner), []);
  }
  assert.deepEqual(advised([], { ...part, below: ["inner"] }, inner), ["part1", "inner"], "a circle ends");
});

Deno.test("judgePools() reports a part of an exported disk that the router has mounted", () => {
  const part: PoolDisk = {
    ...pool,
    slot: "pvc-1-part1",
    mountPoint: "part",
    filesystemUuid: "",
    below: ["pvc-1"],
  };
  const judged = (exported: boolean) => judgePools([pool, part], plain, [{ id: "pvc-1", exported }]);
  const [finding, ...pools] = judged(true);
  assert.equal(finding!.state, "problem");
  assert.match(finding!.found, /^\/part: pvc-1-part1 is a part of pvc-1, which is exported/);
  assert.deepEqual(pools.map(({ state }) => state), ["ok"]);
  assert.deepEqual(judged(false).map(({ state }) => state), ["ok", "ok"], "a person's pool in a file");
});

Deno.test("judgePools() warns of overcommit if a volume takes its whole size at once", () => {
  const warned = (own: Partial<PoolDisk>, settings: Partial<PoolSettings>) =>
    judgePools([{ ...pool, ...own }], { ...plain, overcommit: 2, ...settings })
      .filter(({ state }) => state === "warning").map((
        { found, fix },
      ) => [/takes its whole size/.test(found), fix]);
  const expected = [[true, "set --overcommit 1"]];
  assert.deepEqual(warned({ filesystem: "xfs" }, {}), expected);
  assert.deepEqual(warned({}, {}), [], "Btrfs, of which nothing is known");
  assert.deepEqual(warned({ filesystem: "xfs" }, { overcommit: 1 }), []);
  assert.deepEqual(warned({ filesystem: "xfs" }, { basePaths: ["/other/csi"] }), []);
});

Deno.test("judgePools() reports missing pools when none is mounted, and names a file system that could be", () => {
  const findings = judgePools([{ ...pool, mounted: false, mountPoint: "" }, bare], plain);
  assert.deepEqual(findings.map(({ state }) => state), ["warning", "problem"]);
  assert.match(findings[0]!.fix!, /slot="raid1"/);
});

Deno.test("parsePoolDisks() reads a router's output for hardware and pools", () => {
  const rows = [
    { slot: "nvme1", fs: "-", size: 5, "raid-master": "raid1", "raid-member-failed": "yes" },
    {
      slot: "raid1",
      fs: "btrfs",
      "fs-label": "pool",
      "fs-uuid": pool.filesystemUuid,
      mounted: "yes",
      "mount-point": "/pool",
      state: ["clean", "sync:check"],
      size: "10",
      free: 4,
      "raid-master": "none",
      "raid-member-failed": false,
      "nvme-tcp-export": "no",
    },
    { slot: "nvme2", "iscsi-export": true },
    { slot: "nvme1-part1", parent: "nvme1", "crypted-backend": "none" },
    { slot: "crypt1", parent: "", "crypted-backend": "nvme1-part1" },
  ];
  assert.deepEqual(parsePoolDisks(JSON.stringify(rows)), [
    { ...bare, sizeBytes: 5n, master: "raid1", failed: true },
    { ...pool, state: "clean, sync:check", sizeBytes: 10n, freeBytes: 4n },
    { ...bare, slot: "nvme2", sizeBytes: 0n, exported: true },
    { ...bare, slot: "nvme1-part1", sizeBytes: 0n, below: ["nvme1"] },
    { ...bare, slot: "crypt1", sizeBytes: 0n, below: ["nvme1-part1"] },
  ]);
});

Deno.test("parsePoolDisks() takes what is no boolean for no failed member", () => {
  for (const value of ["maybe", 1, null, ["yes"], ""]) {
    const [disk] = parsePoolDisks(JSON.stringify([{ slot: "nvme1", "raid-member-failed": value }]));
    assert.equal(disk!.failed, false, JSON.stringify(value));
  }
});

for (
  const [key, value] of [
    ["size", "931.5GiB"],
    ["free", "900.0GiB"],
    ["fs", 7],
    ["fs-label", 2024],
    ["fs-uuid", 7],
    ["state", 7],
    ["mounted", "maybe"],
    ["mount-point", 7],
    ["raid-master", 7],
    ["parent", 7],
  ] as const
) {
  Deno.test(`judgePools() names a disk whose ${key} cannot be read, and judges the others`, () => {
    const healthy = { slot: "raid1", fs: "btrfs", "fs-label": "pool", mounted: true, "mount-point": "pool" };
    const stick = { slot: "usb1", fs: "ext4", mounted: true, "mount-point": "usb1", size: 100, free: 50 };
    const rows = [{ ...healthy, size: 10, free: 5 }, { ...stick, [key]: value }];
    const disks = parsePoolDisks(JSON.stringify(rows));
    const [odd, fine, ...more] = judgePools(disks, plain);
    assert.deepEqual([odd!.state, fine!.state, more], ["warning", "ok", []]);
    assert.match(odd!.found, new RegExp(`^usb1: the router's row of it cannot be read: .*the key ${key} `));
    assert.match(odd!.fix!, /slot~"usb1"/);
    // A pool that volumes lie on.
    const [own, ...rest] = judgePools(disks, { ...plain, basePaths: ["/usb1/csi"] });
    assert.deepEqual([own!.state, rest.map(({ state }) => state)], ["problem", ["ok"]]);
  });
}

Deno.test("judgePools() does not say that no pool is mounted where the row of one cannot be read", () => {
  const rows = [{ slot: "raid1", mounted: true, "mount-point": "pool", size: "931.5GiB", free: 5 }];
  const { state, found } = only(judgePools(parsePoolDisks(JSON.stringify(rows)), plain));
  assert.equal(state, "problem");
  assert.match(found, /^raid1: the router's row of it cannot be read/);
});

Deno.test("judgePools() takes an array whose state cannot be read for unsound", () => {
  const rows = [
    { slot: "raid1", fs: "xfs", mounted: true, "mount-point": "pool", size: 10, free: 5, state: "clean" },
    { slot: "raid1-m0", "raid-master": "raid1", state: 7 },
  ];
  const [odd, own] = judgePools(parsePoolDisks(JSON.stringify(rows)), plain);
  assert.deepEqual([odd!.state, own!.state], ["warning", "problem"]);
  assert.match(own!.found, /raid1-m0 below it is of a state that cannot be read/);
});

Deno.test("poolsCheck advises nobody to mount a drive that another machine has, where the router refuses a list of keys", async () => {
  const rows = [
    { slot: "pool", fs: "xfs", mounted: true, "mount-point": "pool", size: 10, free: 5, state: "clean" },
    { slot: "nvme2", fs: "ext4", mounted: false, size: 10, "nvme-tcp-export": true },
  ];
  /** It refuses every list of keys but that of labels. */
  const read = (_what: string, { text }: Fragment) => {
    if (text.includes("fs=")) return Promise.resolve("[]");
    if (text.includes("proplist")) throw new VolumeError("unavailable", "bad parameter iscsi-export");
    return Promise.resolve(JSON.stringify(rows));
  };
  const inventory = () => Promise.resolve({ volumes: [], pools: [], upMs: 0 });
  const findings = await poolsCheck.run(
    { read, inventory } as unknown as RouterClient,
    plain as CheckSettings,
  );
  assert.deepEqual(findings.map(({ state, fix }) => [state, fix]), [["ok", undefined]]);
});
