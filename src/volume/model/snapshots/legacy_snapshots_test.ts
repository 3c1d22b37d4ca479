import assert from "node:assert/strict";
import { aDisk, aRecord, testBase, testCluster, testPrefix } from "../../../../tests/fakes/records.ts";
import { refusal } from "../../../../tests/fakes/refusal.ts";
import {
  assertNoLegacySnapshot,
  isLegacySnapshot,
  isLegacySnapshotId,
  legacySnapshotTime,
  noData,
} from "./legacy_snapshots.ts";
import { isVolumeId } from "../ids/ids.ts";
import { isSnapshotId } from "./snapshots.ts";
import { judgeOwnership } from "../../rules/ownership.ts";
import type { StoredFile, StoredVolume, VolumeView } from "../inventory.ts";

const uuid = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
const id = `snap-${uuid}`;
const path = `${testBase}/${id}.img`;
const volumeId = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";
const left: StoredVolume = {
  id,
  imagePath: path,
  sizeBytes: 1n << 30n,
  exported: false,
  exportNqn: "",
  exportPort: 0,
  comment: "",
};

Deno.test("isLegacySnapshotId() recognises both forms, which no volume and no snapshot of this driver has", () => {
  for (const suffix of ["", "-at-1739800000", "-at-3a9f8c02d1", "-at-0"]) {
    const one = `${id}${suffix}`;
    assert.equal(isLegacySnapshotId(one), true, one);
    assert.equal(isVolumeId(one) || isSnapshotId(one), false, one);
  }
  const others = [
    "",
    uuid,
    `pvc-${uuid}`,
    `snap-${"1".repeat(28)}`,
    `${id}-at-`,
    `${id}-at-xyz`,
    `${id}-at-${"1".repeat(33)}`,
    `${id}-on-1739800000`,
    `${id}\n`,
    `x${id}`,
    id.toUpperCase(),
    `snap-${uuid.slice(1)}`,
  ];
  for (const other of others) assert.equal(isLegacySnapshotId(other), false, other);
});

Deno.test("legacySnapshotTime() reads a time, and does not mistake digits of a name for one", () => {
  const nowMs = 1_800_000_000_000;
  const cases: readonly [string, number | undefined][] = [
    [`${id}-at-1739800000`, 1_739_800_000],
    [`${id}-at-1800000000`, 1_800_000_000],
    [id, undefined],
    [`${id}-at-3a9f8c02d1`, undefined],
    [`${id}-at-1800000001`, undefined],
    [`${id}-at-1600000000`, undefined],
    [`${id}-at-173980000`, undefined],
    [`${id}-at-17398000000`, undefined],
    ["snap-17398000-0040-50de-944b-e07fc1f90ae7-at-1739800000", undefined],
    ["1739800000", undefined],
  ];
  for (const [one, seconds] of cases) assert.equal(legacySnapshotTime(one, nowMs), seconds, one);
});

Deno.test("isLegacySnapshot() recognises one by slot, image and NQN together, and nothing that deviates", () => {
  const newer = `${id}-at-3a9f8c02d1`;
  const elsewhere = "/pool/other";
  const cases: readonly [string, Partial<StoredVolume>, boolean][] = [
    ["as it was left", {}, true],
    ["of a newer version", { id: newer, imagePath: `${testBase}/${newer}.img` }, true],
    ["with the volume's note", { comment: "backed up on Sundays" }, true],
    ["with the volume's NQN", { exportNqn: `${testPrefix}:${volumeId}` }, true],
    ["with the volume's export", { exported: true, exportNqn: `${testPrefix}:${volumeId}` }, true],
    ["exported under its own name", { exported: true, exportNqn: `${testPrefix}:${id}` }, true],
    ["another slot", { id: "snap-1" }, false],
    ["a volume's slot", { id: volumeId }, false],
    ["a slot and an image of other versions", { id: newer }, false],
    ["the volume's image", { imagePath: `${testBase}/${volumeId}.img` }, false],
    ["another folder", { imagePath: `${elsewhere}/${id}.img` }, false],
    ["a deeper folder", { imagePath: `${testBase}/deep/${id}.img` }, false],
    ["a file with a longer name", { imagePath: `${testBase}/old-${id}.img` }, false],
    ["another ending", { imagePath: `${testBase}/${id}.qcow2` }, false],
    ["an NQN of somebody's", { exportNqn: "nqn.x" }, false],
    ["the NQN of an epoch", { exportNqn: `${testPrefix}:${volumeId}:1-0123abcd` }, false],
    ["exported without an NQN", { exported: true }, false],
    ["this cluster's record", { comment: aDisk(aRecord()).comment }, false],
    ["another cluster's record", { comment: aDisk(aRecord({ cluster: "ffffffff" })).comment }, false],
    ["a damaged record", { comment: aDisk(aRecord()).comment.slice(0, -2) }, false],
  ];
  for (const [name, change, expected] of cases) {
    const stored = { ...left, ...change };
    assert.equal(isLegacySnapshot(stored, ["/pool/more", testBase]), expected, name);
    // No call that changes a volume may treat it as a volume.
    if (expected) assert.equal(judgeOwnership(stored, testCluster).state, "no-record", name);
  }
});

const image: StoredFile = { path, sizeBytes: 1n << 30n, directory: false };
const nothing: VolumeView = {
  volume: undefined,
  foreign: undefined,
  sharers: [],
  files: [],
  pools: [],
  upMs: 1e9,
};

Deno.test("assertNoLegacySnapshot() refuses any remains, says what they are and how to remove them", () => {
  const sharer = { ...left, id: "disk1" };
  const cases: readonly [string, Partial<VolumeView>, RegExp][] = [
    [
      "disk and image",
      { volume: left, files: [image] },
      /of its data.*disk=snap-7c.*disk entry.*then its image/,
    ],
    ["a disk alone", { volume: left }, new RegExp(`disk=${id} path=${path}`)],
    ["an image alone", { files: [image] }, new RegExp(`disk=none path=${path}`)],
    ["an image that is used", { volume: left, sharers: [sharer] }, /not its image.*disk=disk1/],
    [
      "another disk in its slot",
      { volume: { ...left, imagePath: "/pool/x.img" } },
      /path=\/pool\/x.img.*by hand/,
    ],
    ["hardware in its slot", { foreign: { id, kind: "hardware" } }, /path=none.*by hand/],
  ];
  for (const [name, seen, text] of cases) {
    const work = () => assertNoLegacySnapshot("delete", id, { ...nothing, ...seen }, [testBase]);
    assert.throws(work, refusal("precondition", text), name);
    assert.throws(work, refusal("precondition", /^Cannot delete the snapshot because /), name);
  }
});

Deno.test("assertNoLegacySnapshot() accepts everything else", () => {
  const files = [
    { ...image, path: `${testBase}/${id}-at-1739800000.img` },
    { ...image, path: `/pool/backup/${id}.img` },
    { ...image, directory: true },
  ];
  const sharers = [{ ...left, id: `${id}-at-1739800000`, imagePath: files[0]!.path }];
  assertNoLegacySnapshot("delete", id, { ...nothing, files, sharers }, [testBase]);
  assert.equal(noData(id).kind, "precondition");
});
