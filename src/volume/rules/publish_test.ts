import assert from "node:assert/strict";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import { aHolder, aVolume, testPrefix } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import type { AccessMode, Capability } from "../model/capabilities.ts";
import { legacyEpoch } from "../model/epoch.ts";
import type { VolumeErrorKind } from "../errors.ts";
import type { StoredVolume } from "../model/inventory.ts";
import {
  decidePublish,
  exportedCounter,
  isExportedAsRecorded,
  mayFormat,
  mayReplay,
  nqnOf,
  publishedNodeIds,
  type PublishFacts,
  type PublishRequest,
  withdrawnRecord,
} from "./publish.ts";
import { nodeDigest, type OwnedVolume, type VolumeRecord } from "../model/record.ts";

const nowMs = Date.UTC(2026, 0, 1);
const epoch = { counter: 3, nonce: "0123abcd" };
const ext4: Capability = { access: "mount", filesystem: "ext4", mode: "single-node-writer" };
const block = (mode: AccessMode): Capability => ({ access: "block", mode });
const mount = (mode: AccessMode): Capability => ({ access: "mount", filesystem: "ext4", mode });

function publish(volume: OwnedVolume, request: Partial<PublishRequest> = {}) {
  const deps = { nowMs, random: new SeededRandom() };
  return decidePublish(volume, { nodeId: "a", capability: ext4, readOnly: false, ...request }, deps);
}

/** A volume with these holders in one mode, exported correctly. */
function held(nodes: readonly string[], mode: AccessMode, kind = "ext4/w", disk: Partial<StoredVolume> = {}) {
  return aVolume({ epoch, capabilities: kind, holders: nodes.map((node) => aHolder(node, { mode })) }, disk);
}

Deno.test("decidePublish() begins the next epoch for the first holder", () => {
  const decision = publish(aVolume({ epoch, withdrawnAtSeconds: 5 }));
  assert.equal(decision.action, "begin");
  const { record } = decision as { record: VolumeRecord };
  assert.equal(record.epoch?.counter, 4);
  assert.notEqual(record.epoch?.nonce, epoch.nonce);
  assert.equal(record.withdrawnAtSeconds, 5);
  assert.deepEqual(record.holders, [{
    nodeId: "a",
    sinceSeconds: nowMs / 1000,
    mode: "single-node-writer",
    readOnly: false,
  }]);
});

Deno.test("decidePublish() sets a lost or edited export again under the record's own epoch", () => {
  const edits: Partial<StoredVolume>[] = [
    { exported: false },
    { exportNqn: "" },
    { exportNqn: `${testPrefix}:pvc-1` },
    { exportNqn: `${testPrefix}:pvc-1:2-0123abcd` },
  ];
  for (const edit of edits) {
    const volume = held(["a"], "single-node-writer", "ext4/w", edit);
    assert.deepEqual(publish(volume), { action: "continue", record: volume.record });
  }
});

Deno.test("decidePublish() has an export without a holder withdrawn before anything else", () => {
  assert.deepEqual(publish(aVolume({ epoch }, { exported: true })), { action: "withdraw" });
  assert.deepEqual(publish(aVolume({}, { exported: true, exportNqn: "nqn.x" })), { action: "withdraw" });
});

Deno.test("decidePublish() refuses a second node for every mode for one node, and names the holder", () => {
  const modes: AccessMode[] = [
    "single-node-writer",
    "single-node-reader-only",
    "single-node-single-writer",
    "single-node-multi-writer",
  ];
  for (const mode of modes) {
    for (const [kind, capability] of [["ext4/w", mount(mode)], ["block/w", block(mode)]] as const) {
      const volume = held(["b"], mode, kind);
      const elsewhere = refusal("published-elsewhere", /node=b requested=a/);
      assert.throws(() => publish(volume, { capability }), elsewhere, `${kind} ${mode}`);
      assert.throws(() => publish(volume, { capability, readOnly: true }), elsewhere, `${kind} ${mode}`);
    }
  }
});

Deno.test("decidePublish() refuses the same node in another way", () => {
  const volume = held(["a"], "single-node-writer");
  const others = [{ readOnly: true }, { capability: mount("single-node-reader-only") }];
  for (const request of others) {
    assert.throws(() => publish(volume, request), refusal("exists-incompatible", /node=a/));
  }
});

Deno.test("decidePublish() lets any number of nodes read together", () => {
  const capability = mount("multi-node-reader-only");
  const nodes = ["b", "c", "d", "e"];
  const decision = publish(held(nodes, "multi-node-reader-only", "ext4/n"), { capability, readOnly: true });
  assert.equal(decision.action, "continue");
  assert.equal((decision as { record: VolumeRecord }).record.holders.length, 5);
});

Deno.test("decidePublish() refuses a joining node that could make two writers", () => {
  const cases: [string, OwnedVolume, Capability, VolumeErrorKind][] = [
    [
      "a third migrating holder",
      held(["b", "c"], "multi-node-multi-writer", "block/x"),
      block("multi-node-multi-writer"),
      "published-elsewhere",
    ],
    [
      "a second writer of a volume that was made for one",
      held(["b"], "multi-node-multi-writer", "block/w"),
      block("multi-node-multi-writer"),
      "published-elsewhere",
    ],
    [
      "sharing with one who does not share",
      held(["b"], "single-node-writer", "block/wx"),
      block("multi-node-multi-writer"),
      "published-elsewhere",
    ],
    [
      "not sharing with one who does",
      held(["b"], "multi-node-multi-writer", "block/wx"),
      block("single-node-writer"),
      "published-elsewhere",
    ],
    [
      "writing beside readers",
      held(["b"], "multi-node-reader-only", "ext4/nw"),
      mount("single-node-writer"),
      "published-elsewhere",
    ],
    [
      "reading beside a writer",
      held(["b"], "single-node-writer", "ext4/nw"),
      mount("multi-node-reader-only"),
      "published-elsewhere",
    ],
    [
      "a file system shared for writing",
      held(["b"], "multi-node-multi-writer", "ext4/w"),
      mount("multi-node-multi-writer"),
      "published-elsewhere",
    ],
    ["a file system on a raw volume", aVolume({ capabilities: "block/w" }), ext4, "invalid"],
    [
      "a raw device of a file system",
      aVolume({ capabilities: "ext4/w" }),
      block("single-node-writer"),
      "invalid",
    ],
    ["another file system", aVolume({ capabilities: "xfs/w" }), ext4, "invalid"],
    ["a kind that cannot be read", aVolume({ capabilities: "zfs/w" }), ext4, "invalid"],
  ];
  for (const [name, volume, capability, kind] of cases) {
    assert.throws(() => publish(volume, { capability }), refusal(kind), name);
  }
});

Deno.test("decidePublish() ends blankness when a raw device is handed out, and only then", () => {
  const blankOf = (volume: OwnedVolume, capability: Capability) =>
    (publish(volume, { capability }) as { record: VolumeRecord }).record.blankEpoch;
  assert.equal(blankOf(aVolume({ capabilities: "block/w" }), block("single-node-writer")), 0);
  assert.equal(blankOf(aVolume(), ext4), 1);
});

Deno.test("mayFormat() is true only in the blank epoch, for a file system that is written to", () => {
  const record = (blankEpoch: number) => aVolume({ blankEpoch }).record;
  const at = (counter: number) => ({ counter, nonce: "0123abcd" });
  const [use, raw] = [ext4, block("single-node-writer")].map((capability) => ({ nodeId: "a", capability }));
  assert.equal(mayFormat(record(1), at(1), use!, false), true);
  assert.equal(mayFormat(record(4), at(4), use!, false), true);
  assert.equal(mayFormat(record(1), at(2), use!, false), false);
  assert.equal(mayFormat(record(2), at(1), use!, false), false);
  assert.equal(mayFormat(record(0), at(0), use!, false), false);
  assert.equal(mayFormat(record(1), at(1), use!, true), false);
  assert.equal(mayFormat(record(1), at(1), raw!, false), false);
});

Deno.test("mayFormat() lets only the first node that shares an encrypted block volume write its header", () => {
  const mode = "multi-node-multi-writer";
  const { record } = held(["a", "b"], mode, "block/ex");
  const first = { ...record, blankEpoch: record.epoch!.counter };
  const may = (nodeId: string, of = first) =>
    mayFormat(of, record.epoch!, { nodeId, capability: block(mode) }, false);
  assert.equal(may("a"), true);
  assert.equal(may("b"), false);
  assert.equal(may("a", { ...first, unfenced: { nodeDigest: "0123abcd" } }), false);
  assert.equal(may("a", { ...first, capabilities: "block/x" }), false);
});

Deno.test("decidePublish() refuses a volume whose record and PersistentVolume differ about encryption", () => {
  for (const [capabilities, encrypted] of [["ext4/ew", false], ["ext4/w", true]] as const) {
    assert.throws(
      () => publish(aVolume({ capabilities }), { capability: ext4, encrypted }),
      refusal("invalid"),
    );
  }
});

Deno.test("mayReplay() is true for the node that began the epoch of a file system that is only read", () => {
  const mode = "multi-node-reader-only";
  const { record } = held(["a", "b"], mode, "ext4/n");
  assert.equal(mayReplay(record, "a", mount(mode), true), true);
  assert.equal(mayReplay(record, "b", mount(mode), true), false);
  assert.equal(mayReplay(record, "a", mount(mode), false), false);
  assert.equal(mayReplay(record, "a", block(mode), true), false);
  assert.equal(mayReplay({ ...record, firstHolderLeft: true }, "a", mount(mode), true), false);
  assert.equal(mayReplay({ ...record, epoch: legacyEpoch }, "a", mount(mode), true), false);
});

Deno.test("publishedNodeIds() names holders only while the export is on under the record's NQN", () => {
  const nodes = (disk: Partial<StoredVolume>) =>
    publishedNodeIds(held(["a", "b"], "multi-node-reader-only", "ext4/n", disk));
  assert.deepEqual(nodes({}), ["a", "b"]);
  assert.deepEqual(nodes({ exported: false }), []);
  assert.deepEqual(nodes({ exportNqn: `${testPrefix}:pvc-1:2-0123abcd` }), []);
  assert.equal(isExportedAsRecorded(aVolume({}, { exported: true, exportNqn: "" })), false);
});

Deno.test("nqnOf() keeps the NQN that the router has for the epoch when the prefix was changed", () => {
  const other = "nqn.2026-01.com.example";
  const running = aVolume({}, { exportNqn: `${testPrefix}:pvc-1:3-0123abcd` });
  const same = { counter: 3, nonce: "0123abcd" };
  assert.equal(nqnOf(running, same, other), `${testPrefix}:pvc-1:3-0123abcd`);
  const next = { counter: 4, nonce: "0123abcd" };
  assert.equal(nqnOf(running, next, other), `${other}:pvc-1:4-0123abcd`);
});

Deno.test("withdrawnRecord() keeps the last epoch, and notes when it ended", () => {
  const { record } = held(["a"], "single-node-writer");
  const withdrawnAtSeconds = Math.ceil(nowMs / 1000) + 1;
  assert.deepEqual(withdrawnRecord(record, nowMs), { ...record, holders: [], withdrawnAtSeconds });
});

Deno.test("decidePublish() withdraws first what is exported in a later epoch than the record's, of whichever node", () => {
  for (const counter of [4, 10, 900]) {
    const exportNqn = `${testPrefix}:pvc-1:${counter}-0123abcd`;
    for (const exported of [true, false]) {
      const volume = held(["a"], "single-node-writer", "ext4/w", { exported, exportNqn });
      for (const nodeId of ["a", "b"]) {
        assert.deepEqual(publish(volume, { nodeId }), { action: "withdraw" });
      }
    }
  }
});

Deno.test("exportedCounter() is that of the volume's own epoch, and of no other name", () => {
  const of = (exportNqn: string) => exportedCounter(aVolume({ epoch }, { exportNqn }));
  assert.equal(of(`${testPrefix}:pvc-1:12-0a0b0c0d`), 12);
  for (
    const nqn of [
      "",
      "pvc-1",
      "nqn:pvc-1",
      "nqn:pvc-2:12-0a0b0c0d",
      "nqn:pvc-1:12-0a",
      "nqn:xpvc-1:12-0a0b0c0d",
    ]
  ) {
    assert.equal(of(nqn), 0, nqn);
  }
});

Deno.test("decidePublish() lets only the node join that left and may still write, unless it has given up the volume", () => {
  const mode = "multi-node-multi-writer";
  const unfenced = { nodeDigest: nodeDigest("a"), machine: "0a0b0c0d" };
  const volume = aVolume({
    epoch,
    capabilities: "block/x",
    holders: [aHolder("b", { mode })],
    unfenced,
  });
  const join = (nodeId: string, facts: Partial<PublishFacts> = {}) => {
    const request = { nodeId, capability: block(mode), readOnly: false };
    return decidePublish(volume, request, { nowMs, random: new SeededRandom(), ...facts });
  };
  const keptOut = refusal("published-elsewhere", /third node/);
  assert.throws(() => join("c"), keptOut);
  assert.throws(() => join("c", { stillUnfenced: "it is away" }), keptOut);
  assert.throws(() => join("a", { machine: "ffffffff" }), keptOut);
  assert.throws(() => join("a"), keptOut, "which machine has its name now cannot be told");
  for (const decision of [join("a", { machine: "0a0b0c0d" }), join("c", { stillUnfenced: "" })]) {
    assert.equal(decision.action, "continue");
    assert.equal("unfenced" in (decision as { record: VolumeRecord }).record, false);
  }
  assert.equal("unfenced" in withdrawnRecord(volume.record, nowMs), false);
  assert.deepEqual(publish(volume, { nodeId: "b", capability: block(mode) }).action, "held");
});
