import assert from "node:assert/strict";
import { aHolder, aVolume, testPrefix } from "../../../tests/fakes/records.ts";
import type { AccessMode } from "../model/capabilities.ts";
import type { StoredVolume } from "../model/inventory.ts";
import { nodeDigest, type OwnedVolume } from "../model/record.ts";
import { withdrawnRecord } from "./publish.ts";
import { decideUnpublish } from "./unpublish.ts";

const nowMs = Date.UTC(2026, 0, 1);
const epoch = { counter: 3, nonce: "0123abcd" };

/** A volume with these holders in one mode, exported correctly. */
function held(nodes: readonly string[], mode: AccessMode, kind = "ext4/w", disk: Partial<StoredVolume> = {}) {
  return aVolume({ epoch, capabilities: kind, holders: nodes.map((node) => aHolder(node, { mode })) }, disk);
}

Deno.test("decideUnpublish() records that the first reader of a file system leaves, until the epoch ends", () => {
  const marked = (nodeId: string, mode: AccessMode, kind: string) => {
    const decision = decideUnpublish(held(["a", "b"], mode, kind), nodeId);
    return decision.action === "leave" ? decision.record.firstHolderLeft : assert.fail(decision.action);
  };
  assert.equal(marked("a", "multi-node-reader-only", "ext4/n"), true);
  assert.equal(marked("b", "multi-node-reader-only", "ext4/n"), undefined);
  assert.equal(marked("a", "multi-node-reader-only", "block/n"), undefined);
  assert.equal(marked("a", "multi-node-multi-writer", "block/x"), undefined);
  const { record } = held(["b"], "multi-node-reader-only", "ext4/n");
  assert.equal("firstHolderLeft" in withdrawnRecord({ ...record, firstHolderLeft: true }, nowMs), false);
});

Deno.test("decideUnpublish() withdraws for the last holder, for all at once, and whatever else is exported", () => {
  const named = `${testPrefix}:pvc-1:4-0123abcd`;
  const cases: [string, OwnedVolume, string][] = [
    ["the last holder", held(["a"], "single-node-writer"), "a"],
    [
      "the last holder of a lost export",
      held(["a"], "single-node-writer", "ext4/w", { exported: false }),
      "a",
    ],
    ["all holders", held(["a", "b"], "multi-node-reader-only", "ext4/n"), ""],
    ["an export without a holder", aVolume({ epoch }, { exported: true }), "a"],
    ["an export without a holder, for all", aVolume({ epoch }, { exported: true }), ""],
    ["an export of a later epoch", held(["a"], "single-node-writer", "ext4/w", { exportNqn: named }), "b"],
    ["a name of a later epoch", aVolume({ epoch }, { exported: false, exportNqn: named }), "b"],
  ];
  for (const [name, volume, nodeId] of cases) {
    assert.deepEqual(decideUnpublish(volume, nodeId), { action: "withdraw" }, name);
  }
});

Deno.test("decideUnpublish() changes nothing for a node that is no holder", () => {
  const elsewhere = held(["b"], "single-node-writer");
  assert.deepEqual(decideUnpublish(elsewhere, "a"), {
    action: "not-holder",
    remaining: elsewhere.record.holders,
  });
  for (const nodeId of ["a", ""]) {
    assert.deepEqual(decideUnpublish(aVolume({ epoch }), nodeId), { action: "done" });
  }
});

Deno.test("decideUnpublish() records a node that leaves another writer behind, and no reader", () => {
  const left = (mode: AccessMode, kind: string) => {
    const decision = decideUnpublish(held(["a", "b"], mode, kind), "a");
    return decision.action === "leave" ? decision.unfenced?.nodeDigest : assert.fail(decision.action);
  };
  assert.equal(left("multi-node-multi-writer", "block/x"), nodeDigest("a"));
  assert.equal(left("multi-node-reader-only", "ext4/n"), undefined);
});
