import assert from "node:assert/strict";
import type { FormatRefusal } from "../ports/node_events.ts";
import { decideFormat, type FormatDecision, type FormatQuestion, judgedSignature } from "./format.ts";
import { contradictorySignatures, type DeviceProbe } from "../ports/node_ports.ts";

const blank: DeviceProbe = { blank: true, signature: { state: "none" } };
const garbage: DeviceProbe = { blank: false, signature: { state: "none" } };
const unreadable: DeviceProbe = { blank: true, signature: { state: "unknown", reason: "exit=4" } };
const holding = (type: string): DeviceProbe => ({ blank: false, signature: { state: "found", type } });

const fresh: FormatQuestion = {
  volumeId: "pvc-1",
  wanted: "ext4",
  mayFormat: true,
  epoch: "3-0a0b0c0d",
  claim: { namespace: "apps", name: "data" },
  sameEpoch: true,
  readOnly: false,
  sizeMatches: true,
  probe: blank,
  mkfs: "none",
  sameDevice: true,
  everMounted: false,
  complete: false,
};

const interrupted: Partial<FormatQuestion> = { mkfs: "started", probe: garbage };
const halfMade: Partial<FormatQuestion> = { mkfs: "started", probe: holding("ext4") };

/** Each with the expected action or refusal. */
const cases: readonly [string, Partial<FormatQuestion>, FormatDecision["action"] | FormatRefusal][] = [
  ["a blank device of a volume never written", {}, "format"],
  ["a blank device that may not be formatted", { mayFormat: false }, "not-blank-on-record"],
  ["a blank device to be used read-only", { readOnly: true }, "read-only"],
  ["a blank device of another size", { sizeMatches: false }, "other-size"],
  ["a blank device with state of another epoch", { sameEpoch: false }, "other-epoch"],
  ["a blank device where mkfs had ended", { mkfs: "done" }, "filesystem-lost"],
  ["a blank device that was mounted before", { everMounted: true }, "filesystem-lost"],
  ["a device that cannot be probed", { probe: unreadable }, "unreadable"],
  ["a device with data of no known kind", { probe: garbage }, "unknown-data"],
  ["a device with another file system", { probe: holding("xfs") }, "other-filesystem"],
  ["a device with a partition table", { probe: holding("dos partition table") }, "other-filesystem"],
  ["a device with a non-blank signature though blank ends", {
    probe: { blank: true, signature: { state: "found", type: "zfs_member" } },
  }, "other-filesystem"],
  ["the wanted file system in the first epoch", { probe: holding("ext4") }, "mount-existing"],
  ["the wanted file system later", { probe: holding("ext4"), mayFormat: false }, "mount-existing"],
  ["the wanted file system, read-only", { probe: holding("ext4"), readOnly: true }, "mount-existing"],
  [
    "the wanted file system on a grown device",
    { probe: holding("ext4"), sizeMatches: false },
    "mount-existing",
  ],
  ["the wanted file system after mkfs had ended", { probe: holding("ext4"), mkfs: "done" }, "mount-existing"],
  ["mkfs begun, nothing of it on the device", { mkfs: "started" }, "reformat-interrupted"],
  ["mkfs begun, no signature yet", interrupted, "reformat-interrupted"],
  ["mkfs begun, signature there, incomplete", halfMade, "reformat-interrupted"],
  ["mkfs begun, its end not on record, complete", { ...halfMade, complete: true }, "mount-existing"],
  ["mkfs begun, mounted since, incomplete now", { ...halfMade, everMounted: true }, "mount-existing"],
  ["mkfs begun, mounted since, nothing there now", { ...interrupted, everMounted: true }, "filesystem-lost"],
  ["mkfs begun, another file system there", { ...interrupted, probe: holding("xfs") }, "other-filesystem"],
  ["mkfs begun, may not be formatted any more", { ...interrupted, mayFormat: false }, "not-blank-on-record"],
  [
    "mkfs begun, half made, may not be formatted any more",
    { ...halfMade, mayFormat: false },
    "not-blank-on-record",
  ],
  ["mkfs begun in another epoch", { ...interrupted, sameEpoch: false }, "other-epoch"],
  ["mkfs begun on another device", { ...interrupted, sameDevice: false }, "other-device"],
  ["mkfs begun, size changed", { ...interrupted, sizeMatches: false }, "other-size"],
  ["mkfs begun, read-only now", { ...interrupted, readOnly: true }, "read-only"],
  ["mkfs begun, unreadable now", { ...interrupted, probe: unreadable }, "unreadable"],
];

for (const [name, change, expected] of cases) {
  Deno.test(`decideFormat() answers ${expected} for ${name}`, () => {
    const decision = decideFormat({ ...fresh, ...change });
    assert.equal(decision.action === "refuse" ? decision.refusal : decision.action, expected);
  });
}

Deno.test("decideFormat() formats in exactly one combination of the plain conditions", () => {
  const flags = ["mayFormat", "sameEpoch", "sizeMatches", "readOnly", "everMounted"] as const;
  let formatting = 0;
  for (let bits = 0; bits < 2 ** flags.length; bits++) {
    const change = Object.fromEntries(flags.map((flag, i) => [flag, (bits >> i & 1) === 1]));
    for (const probe of [blank, garbage, unreadable, holding("ext4"), holding("xfs")]) {
      for (const mkfs of ["none", "done"] as const) {
        if (decideFormat({ ...fresh, ...change, probe, mkfs }).action === "format") formatting++;
      }
    }
  }
  assert.equal(formatting, 1);
});

const advised: readonly (readonly [what: string, change: Partial<FormatQuestion>, advice: RegExp])[] = [
  [
    "an empty device",
    { mayFormat: false, claim: undefined },
    /needed, unpublish it and run: rds-csi allow-format pvc-1$/,
  ],
  [
    "an empty one that is only to be read",
    { readOnly: true },
    /read-only: volume=pvc-1; let a pod write to it first$/,
  ],
  [
    "another content",
    { probe: holding("LVM2_member") },
    /LVM2_member, not .*pvc-1; nothing was changed: .*snapshot.* with the fsType or volumeMode of that$/,
  ],
  ["another file system", { probe: holding("xfs") }, /xfs, not ext4: .*so use it with fsType xfs$/],
  ["an encryption header", { probe: holding("crypto_LUKS") }, /so use it with encrypted=true$/],
  ["data of no known kind", { probe: garbage }, /with the fsType or volumeMode of that$/],
  ["a file system that is gone", { probe: garbage, mkfs: "done" }, /what happened to the data$/],
  [
    "an mkfs that was begun in another epoch",
    { ...interrupted, sameEpoch: false },
    /needed, delete its claim$/,
  ],
];
for (const [what, change, advice] of advised) {
  Deno.test(`decideFormat() says what helps with ${what}`, () => {
    const decision = decideFormat({ ...fresh, ...change });
    assert.equal(decision.action === "refuse" && decision.kind, "precondition");
    assert.match(decision.action === "refuse" ? decision.reason : "", advice);
  });
}

Deno.test("decideFormat() gives the claim's owner the complete command, where only his consent is missing", () => {
  const reasonOf = (change: Partial<FormatQuestion>) => {
    const decision = decideFormat({ ...fresh, ...change });
    return decision.action === "refuse" ? decision.reason : decision.action;
  };
  const command = "kubectl annotate --overwrite -n apps pvc data rds.csi.srvlab.io/allow-format=pvc-1@4";
  assert.ok(reasonOf({ mayFormat: false }).endsWith(`run: ${command}`), reasonOf({ mayFormat: false }));
  const others: Partial<FormatQuestion>[] = [
    { mayFormat: false, probe: garbage },
    { mayFormat: false, probe: holding("xfs") },
    { mayFormat: false, readOnly: true },
    { mayFormat: false, claim: undefined },
    { mayFormat: false, epoch: "of the legacy driver" },
    { mayFormat: false, everMounted: true },
    { sizeMatches: false },
  ];
  for (const change of others) assert.doesNotMatch(reasonOf(change), /kubectl/, JSON.stringify(change));
});

Deno.test("decideFormat() calls an unreadable device unavailable, and never advises to allow formatting", () => {
  const decision = decideFormat({ ...fresh, probe: unreadable });
  assert.equal(decision.action === "refuse" && decision.kind, "unavailable");
  assert.doesNotMatch(decision.action === "refuse" ? decision.reason : "", /allow-format/);
});

Deno.test("judgedSignature() goes by the file system that a volume was made for, unless the disk was a person's", () => {
  const filesystem = { type: "ext4", uuid: "u" };
  const raid = { state: "found", type: "isw_raid_member", filesystem } as const;
  assert.deepEqual(judgedSignature(raid, "ext4", false), { state: "found", ...filesystem });
  assert.deepEqual(judgedSignature(raid, "ext4", true), raid);
  assert.deepEqual(judgedSignature(raid, "xfs", false), raid);
  const several = { ...raid, type: contradictorySignatures };
  assert.deepEqual(judgedSignature(several, "ext4", true), { state: "found", ...filesystem });
  assert.deepEqual(judgedSignature(several, "xfs", true), several);
  for (
    const signature of [
      blank.signature,
      unreadable.signature,
      holding("xfs").signature,
      holding("ext4").signature,
    ]
  ) {
    assert.deepEqual(judgedSignature(signature, "ext4", false), signature);
  }
});
