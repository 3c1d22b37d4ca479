import assert from "node:assert/strict";
import { judgeLabels, type LabelledDisk, parseLabels } from "./labels.ts";

const pool: LabelledDisk = { slot: "raid1", kind: "raid", parent: "", label: "pool", mounted: true };
const member: LabelledDisk = { ...pool, slot: "nvme2", kind: "hardware", mounted: false };
const inVolume: LabelledDisk = { slot: "pvc-1", kind: "file", parent: "", label: "pool", mounted: false };
const inPartition: LabelledDisk = { ...inVolume, slot: "pvc-2-part1", kind: "partition", parent: "pvc-2" };
const volumes = new Set(["pvc-1", "pvc-2"]);

Deno.test("judgeLabels() finds a volume that has the label of a pool, in itself and in a partition", () => {
  const found = judgeLabels([pool, inVolume, inPartition], volumes);
  assert.deepEqual(found.map(({ state, found }) => [state, found.split(" ")[0]]), [
    ["problem", "pvc-1"],
    ["problem", "pvc-2-part1"],
  ]);
  assert.equal(found[0]!.fix, '/disk/print detail where fs-label="pool"');
});

Deno.test("judgeLabels() quotes a label that the volume's workload has chosen", () => {
  const label = 'x"] $y';
  const found = judgeLabels([{ ...pool, label }, { ...inVolume, label }], volumes);
  assert.equal(found[0]!.fix, '/disk/print detail where fs-label="x\\"] \\$y"');
});

Deno.test("judgeLabels() finds nothing in a pool of several disks, another label and no label", () => {
  const others = [{ ...inVolume, label: "mine" }, { ...inVolume, label: "" }, { ...pool, label: "" }];
  assert.deepEqual(judgeLabels([pool, member, ...others], volumes), []);
  assert.deepEqual(judgeLabels([{ ...member, kind: "partition", parent: "nvme9" }, pool], volumes), []);
});

Deno.test("parseLabels() reads the router's output", () => {
  const row = { slot: "pvc-2-part1", type: "partition", parent: "pvc-2", "fs-label": "pool" };
  assert.deepEqual(parseLabels(JSON.stringify([row])), [inPartition]);
  for (const [key, value] of [["fs-label", 2024], ["parent", 7], ["mounted", "maybe"]] as const) {
    const [, other] = parseLabels(JSON.stringify([{ ...row, slot: "odd", [key]: value }, row]));
    assert.deepEqual(other, inPartition, key);
  }
});
