import assert from "node:assert/strict";
import type { BtrfsFilesystem, HardwareDisk, HardwareReading } from "../../model/health/hardware.ts";
import { judgeHardware } from "./hardware.ts";
import { SeededRandom } from "../../../../tests/fakes/random.ts";

const drive: HardwareDisk = {
  ...{ slot: "nvme1", kind: "hardware", model: "SAMSUNG", serial: "S1", master: "pool" },
  ...{ memberFailed: false, memberState: "0:in_sync", warnings: [], sparePercent: 90, spareLimitPercent: 10 },
  ...{ usedPercent: 5, celsius: 40, limitCelsius: 80, ioErrors: 2 },
};
const second: HardwareDisk = { ...drive, slot: "nvme2", serial: "S2", memberState: "1:in_sync" };
const array: HardwareDisk = {
  slot: "pool",
  kind: "raid",
  filesystem: "btrfs",
  mountPoint: "pool",
  state: "clean",
};
const filesystem: BtrfsFilesystem = {
  ...{ uuid: "u", label: "pool-fs", missing: false, activity: [] },
  devices: [{ slot: "pool", errors: { write: 1, corruption: 0 } }],
};
const sound: HardwareReading = { disks: [drive, second, array], filesystems: [filesystem] };

function withDrive(change: Partial<HardwareDisk>): HardwareReading {
  return { ...sound, disks: [{ ...drive, ...change }, second, array] };
}

function withArray(change: Partial<HardwareDisk>): HardwareReading {
  return { ...sound, disks: [drive, second, { ...array, ...change }] };
}

function withFilesystem(change: Partial<BtrfsFilesystem>): HardwareReading {
  return { ...sound, filesystems: [{ ...filesystem, ...change }] };
}

const hot = withDrive({ celsius: 81 });
const oneLost = { missing: true, devices: [...filesystem.devices!, { slot: undefined, errors: {} }] };
const errors = [{ slot: "pool", errors: { write: 4, corruption: 1 } }];

/** A fault, the readings before and now, and what is found. */
const cases: readonly (readonly [string, HardwareReading | undefined, HardwareReading, readonly string[]])[] =
  [
    ["nothing is known", sound, {}, []],
    ["all is sound", sound, sound, []],
    ["an array checks itself", sound, withArray({ state: "clean, sync:repair, resync = 3%" }), []],
    ["an array is degraded", undefined, withArray({ state: "degraded" }), ["critical ArrayUnsound pool"]],
    ["a state is no array's", undefined, withDrive({ state: "degraded" }), []],
    ["a member failed", undefined, withDrive({ memberFailed: true }), ["critical MemberFailed nvme1"]],
    ["a member is faulty", undefined, withDrive({ memberState: "0:faulty" }), [
      "critical MemberFailed nvme1",
    ]],
    ["a drive is not reliable", undefined, withDrive({ warnings: ["reliability-degraded"] }), [
      "critical DriveUnreliable nvme1",
    ]],
    ["a drive is read-only", undefined, withDrive({ warnings: ["read-only"] }), [
      "critical DriveReadOnly nvme1",
    ]],
    ["a drive lost its backup", undefined, withDrive({ warnings: ["volatile-backup-failed"] }), [
      "warning DriveWarning nvme1",
    ]],
    ["spare is above its limit", undefined, withDrive({ sparePercent: 11 }), []],
    ["spare is at its limit", undefined, withDrive({ sparePercent: 10 }), ["warning DriveSpareLow nvme1"]],
    ["spare without a limit", undefined, withDrive({ sparePercent: 1, spareLimitPercent: undefined }), []],
    ["the drive itself warns of spare", undefined, withDrive({ warnings: ["spare-space"] }), [
      "warning DriveSpareLow nvme1",
    ]],
    ["a drive is nearly worn", undefined, withDrive({ usedPercent: 99 }), []],
    ["a drive is worn", undefined, withDrive({ usedPercent: 100 }), ["warning DriveWorn nvme1"]],
    ["a drive is hot once", sound, hot, []],
    ["a drive is hot, and before is unknown", undefined, hot, []],
    ["a drive is hot twice", hot, hot, ["warning DriveHot nvme1"]],
    ["a drive is at its limit twice", withDrive({ celsius: 80 }), withDrive({ celsius: 80 }), []],
    ["errors rose", sound, withDrive({ ioErrors: 5 }), ["warning ErrorsRose nvme1"]],
    ["errors stay", withDrive({ ioErrors: 5 }), withDrive({ ioErrors: 5 }), []],
    ["errors begin anew", withDrive({ ioErrors: 5 }), withDrive({ ioErrors: 1 }), []],
    ["another drive with errors is in the slot", sound, withDrive({ ioErrors: 5, serial: "S9" }), []],
    [
      "errors of a drive without serial",
      withDrive({ serial: undefined }),
      withDrive({ serial: undefined, ioErrors: 9 }),
      [],
    ],
    ["a Btrfs device is lost", undefined, withFilesystem(oneLost), ["critical BtrfsDeviceMissing pool"]],
    ["Btrfs counts errors", sound, withFilesystem({ devices: errors }), ["warning ErrorsRose pool"]],
    ["Btrfs counts errors from the beginning", undefined, withFilesystem({ devices: errors }), []],
    ["another file system", sound, withFilesystem({ devices: errors, uuid: "v" }), []],
    [
      "a file system in a volume lacks a device",
      undefined,
      withFilesystem({
        ...{ missing: true, devices: [{ slot: "pvc-1", errors: { write: 9 } }] },
      }),
      [],
    ],
  ];

for (const [name, before, now, expected] of cases) {
  Deno.test(`judgeHardware(): ${name}`, () => {
    const found = judgeHardware(before, now);
    assert.deepEqual(found.map(({ severity, reason, slot }) => `${severity} ${reason} ${slot}`), expected);
    for (const { pools } of found) assert.deepEqual(pools, ["pool"]);
  });
}

Deno.test("judgeHardware() names a drive by its slot, model and serial number", () => {
  const [found] = judgeHardware(undefined, withDrive({ usedPercent: 104 }));
  assert.equal(found!.message, "nvme1 (SAMSUNG, serial S1) has used 104 % of its expected life");
  const [bare] = judgeHardware(
    undefined,
    withDrive({ usedPercent: 104, model: undefined, serial: undefined }),
  );
  assert.equal(bare!.message, "nvme1 has used 104 % of its expected life");
});

Deno.test("judgeHardware() finds the pools on a drive through mirrors, partitions and other devices of a Btrfs", () => {
  const disks: HardwareDisk[] = [
    { slot: "nvme1", master: "m0", memberFailed: true },
    { slot: "m0", kind: "raid", master: "stripe", state: "clean" },
    { slot: "stripe", kind: "raid", state: "clean", mountPoint: "one" },
    { slot: "nvme2", warnings: ["read-only"] },
    { slot: "nvme2-part1", parent: "nvme2" },
    { slot: "nvme3", mountPoint: "two" },
    { slot: "nvme4", warnings: ["read-only"] },
  ];
  const devices = ["nvme2-part1", "nvme3"].map((slot) => ({ slot, errors: {} }));
  const found = judgeHardware(undefined, { disks, filesystems: [{ devices, activity: [] }] });
  assert.deepEqual(found.map(({ slot, pools }) => [slot, ...pools]), [
    ["nvme1", "one"],
    ["nvme2", "two"],
    ["nvme4"],
  ]);
});

/** A value with some of its parts taken away, at any depth. */
function thinned(value: unknown, random: SeededRandom): unknown {
  if (Array.isArray(value)) {
    return value.filter(() => random.fraction() < 0.9).map((item) => thinned(item, random));
  }
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).filter(([key]) =>
      key === "slot" || key === "errors" || key === "activity" || random.fraction() < 0.8
    )
      .map(([key, part]) => [key, thinned(part, random)]),
  );
}

Deno.test("judgeHardware() never finds more in fewer values", () => {
  const random = new SeededRandom(7);
  const bad = {
    warnings: ["read-only", "spare-space", "temperature"],
    sparePercent: 3,
    usedPercent: 120,
    celsius: 99,
  } as const;
  const before: HardwareReading = { ...withDrive({ ...bad }), filesystems: [filesystem] };
  const now: HardwareReading = {
    disks: [{ ...drive, ...bad, memberFailed: true, ioErrors: 9 }, { ...second, ...bad, serial: "S2" }, {
      ...array,
      state: "degraded",
    }],
    filesystems: [{ ...filesystem, ...oneLost, devices: [...errors, { slot: undefined, errors: {} }] }],
  };
  const keysOf = (was: HardwareReading | undefined, is: HardwareReading) =>
    judgeHardware(was, is).map(({ reason, slot }) => `${reason} ${slot}`);
  const all = new Set(keysOf(before, now));
  assert.ok(all.size >= 9, [...all].join());
  for (let round = 0; round < 500; round++) {
    const [was, is] = [thinned(before, random), thinned(now, random)] as HardwareReading[];
    const found = keysOf(was, is!);
    assert.deepEqual(found.filter((key) => !all.has(key)), []);
    assert.equal(new Set(found).size, found.length);
  }
});
