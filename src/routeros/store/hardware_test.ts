import assert from "node:assert/strict";
import { command } from "../console/command.ts";
import { arraysQuery, filesystemsQuery, hardwareQuery, parseFilesystems, parseHardware } from "./hardware.ts";
import { framed, sampleNonce } from "../console/reply.ts";

/** The known fields of the first disk. */
function diskOf(row: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const [disk = {}] = parseHardware(JSON.stringify([{ slot: "nvme1", ...row }]));
  return Object.fromEntries(Object.entries(disk).filter(([, value]) => value !== undefined));
}

Deno.test("each query of hardware fits into one command", () => {
  for (const query of [hardwareQuery, arraysQuery, filesystemsQuery]) command(framed(sampleNonce, 0, query));
});

Deno.test("parseHardware() reads a drive with what it reports of itself", () => {
  const row = {
    ...{ ".id": "*1", type: "hardware", model: "SAMSUNG", serial: "S7", fs: "-", "raid-master": "pool" },
    ...{ "raid-member-failed": false, "raid-member-state": "0:in_sync", "io-errors": 3, temperature: 41 },
    ...{ "warning-temperature": 82, "critical-temperature": 85, "critical-warning": ["read-only"] },
    ...{ "available-spare": 98, "available-spare-threshold": 10, "percentage-used": 7 },
  };
  assert.deepEqual(diskOf(row), {
    ...{ slot: "nvme1", kind: "hardware", model: "SAMSUNG", serial: "S7", filesystem: "", master: "pool" },
    ...{ memberFailed: false, memberState: "0:in_sync", ioErrors: 3, celsius: 41, limitCelsius: 82 },
    ...{ warnings: ["read-only"], sparePercent: 98, spareLimitPercent: 10, usedPercent: 7 },
  });
  const strings = Object.fromEntries(Object.entries(row).map(([key, value]) => [key, String(value)]));
  assert.deepEqual(diskOf({ ...strings, "raid-member-failed": "no" }), diskOf(row));
});

Deno.test("parseHardware() reads an array with its mount", () => {
  const row = {
    type: "raid",
    fs: "xfs",
    mounted: true,
    "mount-point": "/pool",
    state: ["clean", "sync:repair"],
  };
  const array = {
    slot: "nvme1",
    kind: "raid",
    filesystem: "xfs",
    mountPoint: "pool",
    state: "clean, sync:repair",
  };
  assert.deepEqual(diskOf(row), array);
  assert.deepEqual(diskOf({ ...row, state: "clean, sync:repair" }), array);
  const { mountPoint: _, ...unknown } = array;
  assert.deepEqual(diskOf({ ...row, mounted: false }), { ...array, mountPoint: "" });
  assert.deepEqual(diskOf({ ...row, mounted: undefined }), unknown);
  assert.deepEqual(diskOf({ ...row, "mount-point": undefined }), unknown);
});

/** Values that are unknown, by the property. */
const unknown: readonly (readonly [string, readonly unknown[]])[] = [
  ["available-spare", [101, -1, "98%", "many", true, null, [], {}, "", 1.5, "99999999999999999999"]],
  ["available-spare-threshold", [101, -1, "10 %"]],
  ["percentage-used", [256, -1, "7%", false]],
  ["temperature", [201, -61, "41C", [41]]],
  ["warning-temperature", [0, -5, 300, "hot"]],
  ["critical-temperature", [0]],
  ["io-errors", [-1, "none", "1e3", [1]]],
  ["critical-warning", [0, 4, "4", true, null, {}, [["read-only"]], [4]]],
  ["raid-member-failed", [1, "maybe", "", null]],
  ["raid-member-state", [1, true, ["0:in_sync"], ""]],
  ["state", [true, null, { a: 1 }, 5, -1, "5", ["clean", 5]]],
  ["serial", [5, true, ["S7"], "", " "]],
  ["mount-point", ["pool"]],
];

Deno.test("parseHardware() takes what is absent, of another type or out of range for unknown", () => {
  for (const [key, values] of unknown) {
    for (const value of values) {
      assert.deepEqual(diskOf({ [key]: value }), { slot: "nvme1" }, `${key}=${value}`);
    }
  }
});

Deno.test("parseHardware() knows what a disk has not, and takes no placeholder for a name", () => {
  for (const none of ["none", "-", ""]) {
    const row = { fs: none, "raid-master": none, parent: none, model: none, serial: none };
    assert.deepEqual(diskOf(row), { slot: "nvme1", filesystem: "", master: "", parent: "" });
  }
});

Deno.test("parseHardware() takes the warnings of a drive as a set", () => {
  const cases: readonly (readonly [unknown, readonly string[]])[] = [
    ["", []],
    ["none", []],
    [[], []],
    ["read-only,temperature", ["temperature", "read-only"]],
    ["spare-space;made-up", ["spare-space"]],
    [["reliability-degraded"], ["reliability-degraded"]],
  ];
  for (const [value, warnings] of cases) {
    assert.deepEqual(diskOf({ "critical-warning": value }).warnings, warnings);
  }
});

Deno.test("parseHardware() leaves a row without a slot out, and goes on with all others", () => {
  const rows = [{ type: "hardware" }, { slot: 5 }, { slot: "nvme2" }];
  assert.deepEqual(parseHardware(JSON.stringify(rows)).map(({ slot }) => slot), ["nvme2"]);
});

function filesystemOf(row: Readonly<Record<string, unknown>>) {
  return parseFilesystems(JSON.stringify([row]))[0]!;
}

Deno.test("parseFilesystems() reads each device with its errors, and the lost one", () => {
  const row = {
    ...{ ".id": "*1", label: "data", uuid: "9246dfaa", "missing-devs": true, devs: ["disk1", "missing"] },
    ...{
      "write-errors": [1, 0],
      "read-errors": "2;3",
      "flush-errors": "0,0",
      "corruption-errors": ["4", "0"],
    },
    ...{ "generation-errors": [0], scrubbing: true, "scrub-status": "running", "balance-status": "done" },
  };
  assert.deepEqual(filesystemOf(row), {
    ...{ uuid: "9246dfaa", label: "data", missing: true, activity: ["scrub: running"] },
    devices: [
      { slot: "disk1", errors: { write: 1, read: 2, flush: 0, corruption: 4 } },
      { slot: undefined, errors: { write: 0, read: 3, flush: 0, corruption: 0 } },
    ],
  });
  const single = filesystemOf({ devs: "pool", "write-errors": 5 });
  assert.deepEqual(single.devices, [{ slot: "pool", errors: { write: 5 } }]);
});

Deno.test("parseFilesystems() takes a list in which an item is unknown for unknown", () => {
  for (const devs of [[], "", ["a", ""], "a,,b", ["a", true], true, null, { a: 1 }]) {
    assert.equal(filesystemOf({ devs }).devices, undefined, JSON.stringify(devs));
  }
  const counted = [["1", "", "3"], "1,,3", [1], ["x", -1], "", "1,2,3"];
  for (const errors of counted) {
    const { devices } = filesystemOf({ devs: ["a", "b"], "write-errors": errors });
    assert.deepEqual(devices!.map((device) => device.errors), [{}, {}], JSON.stringify(errors));
  }
  const named = filesystemOf({ devs: ["a,b", 'c"d'], "write-errors": [1, 2] });
  assert.deepEqual(named.devices, [{ slot: "a,b", errors: { write: 1 } }, {
    slot: 'c"d',
    errors: { write: 2 },
  }]);
});

Deno.test("parseFilesystems() reads whether a device is missing", () => {
  const cases: readonly (readonly [unknown, boolean | undefined])[] = [
    ...[["yes", true], [true, true], [false, false], ["no", false]] as const,
    ...[[3, undefined], ["x", undefined], [undefined, undefined]] as const,
  ];
  for (const [value, missing] of cases) {
    assert.equal(filesystemOf({ "missing-devs": value }).missing, missing, String(value));
  }
});
