import assert from "node:assert/strict";
import {
  type BtrfsFilesystem,
  type HardwareDisk,
  type HardwareReading,
  hardwareReasons,
} from "../../model/health/hardware.ts";
import { type HardwareHistory, judgeHardware } from "./hardware.ts";
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

const minute = 60_000;

/** What is found in each of several readings, 15 minutes apart. */
function foundInEach(readings: readonly HardwareReading[]) {
  let history: HardwareHistory | undefined;
  return readings.map((reading, index) => {
    const judged = judgeHardware(reading, history, index * 15 * minute);
    history = judged.history;
    return judged.findings;
  });
}

/** What is found in the last one. */
function foundIn(...readings: readonly HardwareReading[]) {
  return foundInEach(readings).at(-1)!;
}

function keysOf(findings: ReturnType<typeof foundIn>): string[] {
  return findings.map(({ severity, reason, slot }) => `${severity} ${reason} ${slot}`);
}

const hot = withDrive({ celsius: 81 });
const oneLost = { missing: true, devices: [...filesystem.devices!, { slot: undefined, errors: {} }] };
const outside = { master: "", memberFailed: undefined, memberState: undefined };
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
    ["a Btrfs device is lost, and the router says only that", undefined, withFilesystem({ missing: true }), [
      "critical BtrfsDeviceMissing pool",
    ]],
    [
      "a Btrfs device is lost, and the router only lists it so",
      undefined,
      withFilesystem({ ...oneLost, missing: false }),
      [
        "critical BtrfsDeviceMissing pool",
      ],
    ],
    [
      "a drive was taken out of its array, and stays",
      withDrive({ memberFailed: true }),
      withDrive(outside),
      [],
    ],
    [
      "an array was replaced by a disk",
      withArray({ state: "degraded" }),
      withArray({ kind: "hardware" }),
      [],
    ],
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
    const found = before === undefined ? foundIn(now) : foundIn(before, now);
    assert.deepEqual(keysOf(found), expected);
    for (const { pools } of found) assert.deepEqual(pools, ["pool"]);
  });
}

Deno.test("judgeHardware() names a drive by its slot, model and serial number", () => {
  const [found] = foundIn(withDrive({ usedPercent: 104 }));
  assert.equal(found!.message, "nvme1 (SAMSUNG, serial S1) has used 104 % of its expected life");
  const [bare] = foundIn(
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
    { slot: "nvme5", warnings: ["read-only"] },
    { slot: "nvme5-part1", parent: "nvme5", mountPoint: "three" },
    { slot: "nvme5-part2", parent: "nvme5", mountPoint: "four" },
  ];
  const devices = ["nvme2-part1", "nvme3"].map((slot) => ({ slot, errors: {} }));
  const found = foundIn({ disks, filesystems: [{ devices, activity: [] }] });
  assert.deepEqual(found.map(({ slot, pools }) => [slot, ...pools]), [
    ["nvme1", "one"],
    ["nvme2", "two"],
    ["nvme4"],
    ["nvme5", "three", "four"],
  ]);
});

/** Faults, each with the reading that shows it, and others in which it is unknown. */
const faults: readonly (readonly [string, HardwareReading, readonly HardwareReading[]])[] = [
  ["critical ArrayUnsound pool", withArray({ state: "degraded" }), [
    withArray({ state: undefined }),
    withArray({ kind: undefined }),
  ]],
  ["critical MemberFailed nvme1", withDrive({ memberFailed: true }), [
    withDrive({ memberFailed: undefined }),
  ]],
  ["critical MemberFailed nvme1", withDrive({ memberState: "0:faulty" }), [
    withDrive({ memberState: undefined }),
  ]],
  ["critical DriveReadOnly nvme1", withDrive({ warnings: ["read-only"] }), [
    withDrive({ warnings: undefined }),
    withDrive({ warnings: undefined, serial: undefined, model: undefined, master: undefined }),
    { disks: [{ slot: "nvme1" }] },
    { ...sound, disks: undefined },
    {},
  ]],
  ["warning DriveSpareLow nvme1", withDrive({ sparePercent: 10 }), [
    withDrive({ sparePercent: undefined }),
    withDrive({ spareLimitPercent: undefined }),
  ]],
  ["warning DriveSpareLow nvme1", withDrive({ warnings: ["spare-space"] }), [
    withDrive({ warnings: undefined }),
  ]],
  ["warning DriveWorn nvme1", withDrive({ usedPercent: 100 }), [withDrive({ usedPercent: undefined })]],
  ["warning DriveHot nvme1", hot, [
    withDrive({ celsius: undefined }),
    withDrive({ limitCelsius: undefined }),
  ]],
  ["warning ErrorsRose nvme1", withDrive({ ioErrors: 5 }), [
    withDrive({ ioErrors: undefined }),
    withDrive({ ioErrors: 5, serial: undefined }),
  ]],
  ["critical BtrfsDeviceMissing pool", withFilesystem(oneLost), [
    withFilesystem({ missing: undefined, devices: undefined }),
    withFilesystem({ missing: undefined, devices: undefined, uuid: undefined }),
    { ...sound, filesystems: undefined },
  ]],
  ["warning ErrorsRose pool", withFilesystem({ devices: errors }), [
    withFilesystem({ devices: undefined }),
    withFilesystem({ devices: errors, uuid: undefined }),
    withFilesystem({ devices: [{ slot: "pool", errors: {} }] }),
    { ...sound, filesystems: undefined },
  ]],
];

for (const [key, shown, unknown] of faults) {
  Deno.test(`judgeHardware() ends no ${key} by what is unknown`, () => {
    const begun = [sound, shown, ...key.includes("Hot") ? [shown] : []];
    assert.deepEqual(keysOf(foundIn(...begun)), [key]);
    for (const [index, reading] of unknown.entries()) {
      const still = foundIn(...begun, reading, reading);
      assert.deepEqual(keysOf(still), [key], String(index));
      assert.deepEqual(still[0]!.pools, ["pool"]);
      assert.deepEqual(
        keysOf(foundIn(...begun, reading, sound, sound)),
        [],
        `${index}: what is known ends it`,
      );
    }
    const others = { disks: [{ ...second, ioErrors: 2 }], filesystems: [] };
    assert.deepEqual(keysOf(foundIn(...begun, others)), [], "its disk is gone");
  });
}

Deno.test("judgeHardware() keeps a fault on its pool while the router does not report what the disk belongs to", () => {
  const failed = { memberFailed: true, serial: undefined, model: undefined, master: undefined };
  const [found] = foundIn(withDrive({ memberFailed: true }), {
    ...sound,
    disks: [{ ...drive, ...failed }, second, { ...array, mountPoint: undefined }],
  });
  assert.deepEqual([found!.pools, found!.serial], [["pool"], "S1"]);
  const [unmounted] = foundIn(withDrive({ memberFailed: true }), {
    ...sound,
    disks: [{ ...drive, ...failed }, second, { ...array, mountPoint: "" }],
  });
  assert.deepEqual(unmounted!.pools, []);
});

Deno.test("judgeHardware() ends a fault with its drive", () => {
  const worn = withDrive({ usedPercent: 100 });
  const other = { usedPercent: undefined, serial: "S9" };
  for (
    const now of [
      withDrive(other),
      { ...sound, disks: [second, array] },
      withDrive({ ...other, serial: undefined, model: "other" }),
    ]
  ) {
    assert.deepEqual(foundIn(worn, now), []);
  }
});

Deno.test("judgeHardware() compares a counter with what was known last", () => {
  const gone = withDrive({ ioErrors: undefined });
  const [found] = foundIn(sound, gone, { disks: undefined }, withDrive({ ioErrors: 5 }));
  assert.match(found!.message, / had 3 more errors of reads and writes$/);
  const nothing = { ...sound, filesystems: undefined };
  assert.match(
    foundIn(sound, nothing, withFilesystem({ devices: errors }))[0]!.message,
    / had 3 more write errors, which Btrfs counts; .* had 1 more corruption errors/,
  );
});

Deno.test("judgeHardware() calls a drive hot when every reading of 15 minutes says so", () => {
  const hotAt = (step: number, ...readings: readonly HardwareReading[]) => {
    let history: HardwareHistory | undefined;
    return readings.map((reading, index) => {
      const judged = judgeHardware(reading, history, index * step);
      history = judged.history;
      return judged.findings.length;
    });
  };
  assert.deepEqual(hotAt(5 * minute, ...Array(5).fill(hot)), [0, 0, 0, 1, 1]);
  assert.deepEqual(hotAt(60 * minute, hot, hot, sound, hot), [0, 1, 0, 0]);
  const between = [sound, withDrive({ celsius: undefined }), {}];
  for (const one of between) assert.deepEqual(hotAt(10 * minute, hot, one, hot, hot, hot), [0, 0, 0, 0, 1]);
  assert.deepEqual(hotAt(15 * minute, hot, withDrive({ celsius: 81, serial: undefined })), [0, 0]);
});

/** A value with some of its parts taken away, at any depth; items of a list stay. */
function thinned(value: unknown, random: SeededRandom, share = 0.8): unknown {
  if (Array.isArray(value)) return value.map((item) => thinned(item, random, share));
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([key]) =>
    ["slot", "errors", "activity"].includes(key) || random.fraction() < share
  );
  return Object.fromEntries(kept.map(([key, part]) => [key, thinned(part, random, share)]));
}

/** Values of which each may begin or end a fault. */
const choices = {
  ...{
    kind: ["raid", "hardware"],
    serial: ["S1", "S9"],
    model: ["A", "B"],
    master: ["pool", "other"],
    mountPoint: ["pool", ""],
  },
  ...{ state: ["clean", "degraded"], memberFailed: [true, false], memberState: ["0:in_sync", "0:faulty"] },
  warnings: [[], ["read-only", "temperature"], [
    "reliability-degraded",
    "spare-space",
    "volatile-backup-failed",
  ]],
  ...{
    sparePercent: [3, 90],
    spareLimitPercent: [10],
    usedPercent: [5, 120],
    celsius: [40, 99],
    limitCelsius: [80],
  },
  ioErrors: [0, 2, 9],
} as const satisfies { [Key in keyof HardwareDisk]?: readonly HardwareDisk[Key][] };
const choicesOfFilesystems = {
  ...{ uuid: ["u", "v"], label: ["pool-fs"] },
  devices: [
    [{ slot: "nvme1", errors: { write: 1, corruption: 0 } }, { slot: "nvme2", errors: {} }],
    [{ slot: "nvme1", errors: { write: 4, corruption: 2, read: 5 } }, {
      slot: undefined,
      errors: { write: 9 },
    }],
  ],
} as const satisfies { [Key in keyof BtrfsFilesystem]?: readonly BtrfsFilesystem[Key][] };

function chosen<Value>(from: Readonly<Record<string, readonly unknown[]>>, random: SeededRandom): Value {
  const pick = (values: readonly unknown[]) => values[Math.floor(random.fraction() * values.length)];
  return Object.fromEntries(Object.entries(from).map(([key, values]) => [key, pick(values)])) as Value;
}

function anyReading(random: SeededRandom): HardwareReading {
  const disks = ["nvme1", "nvme2", "pool"].map((slot) => ({
    ...chosen<HardwareDisk>(choices, random),
    slot,
  }));
  const filesystem = chosen<BtrfsFilesystem>(choicesOfFilesystems, random);
  const missing = filesystem.devices!.some(({ slot }) => slot === undefined);
  return { disks, filesystems: [{ ...filesystem, missing, activity: [] }] };
}

Deno.test("judgeHardware() begins no fault for fewer values, in any history, and ends none", () => {
  const random = new SeededRandom(7);
  const begun = new Set<string>();
  for (let round = 0; round < 400; round++) {
    const whole = Array.from({ length: 5 }, () => anyReading(random));
    const fewer = whole.map((reading) => thinned(reading, random) as HardwareReading);
    const each = foundInEach(whole).map(keysOf);
    const all = new Set(each.flat());
    for (const key of all) begun.add(key.split(" ")[1]!);
    for (const found of foundInEach(fewer).map(keysOf)) {
      assert.deepEqual(found.filter((key) => !all.has(key)), [], `round ${round}`);
      assert.equal(new Set(found).size, found.length);
    }
    // The same once more, with fewer values: only a counter that stays is known to have risen no more.
    const before = each.at(-1)!.filter((key) => !key.includes("ErrorsRose"));
    const after = keysOf(foundIn(...whole, thinned(whole.at(-1), random, 0.3) as HardwareReading));
    assert.deepEqual(before.filter((key) => !after.includes(key)), [], `round ${round}`);
  }
  assert.deepEqual([...begun].toSorted(), hardwareReasons.toSorted());
});
