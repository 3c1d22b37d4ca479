import assert from "node:assert/strict";
import { aDisk, aHolder, aRecord, testCluster } from "../../../../tests/fakes/records.ts";
import { hostIdentityOf } from "./identity.ts";
import {
  canShutOut,
  hasOwnList,
  hostsOf,
  isExportedTo,
  isNarrowed,
  sameHosts,
  shortenedList,
  widenedList,
} from "./list.ts";
import type { OwnedVolume } from "../record.ts";
import { assertOwned } from "../../rules/ownership.ts";
import type { StoredVolume } from "../inventory.ts";

const epoch = { counter: 3, nonce: "0123abcd" };
const host = (nodeId: string) => hostIdentityOf(nodeId).hostNqn;
const shared = (nodeId: string) => aHolder(nodeId, { mode: "multi-node-multi-writer" });
const foreign = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-4333-8444-555555555555";

/** A block volume with these holders and that list of hosts. */
function volume(
  holders: readonly string[],
  allowedHosts?: readonly string[],
  disk: Partial<StoredVolume> = {},
): OwnedVolume {
  const record = aRecord({ capabilities: "block/x", epoch, holders: holders.map(shared) });
  const list = allowedHosts === undefined ? {} : { allowedHosts };
  return assertOwned(aDisk(record, { ...list, ...disk }), testCluster, "test");
}

Deno.test("hostsOf() returns the names under which nodes connect", () => {
  assert.deepEqual(hostsOf([shared("a"), shared("b")]), [host("a"), host("b")]);
});

Deno.test("sameHosts() ignores the order, and treats an absent and an empty list alike", () => {
  assert.equal(sameHosts(["x", "y"], ["y", "x"]), true);
  assert.equal(sameHosts(undefined, []), true);
  assert.equal(sameHosts(["x"], []), false);
});

Deno.test("hasOwnList() recognises a list as this driver's only when it contains holders alone", () => {
  assert.equal(hasOwnList(volume(["a", "b"], [host("b")])), true);
  assert.equal(hasOwnList(volume(["a", "b"])), false);
  assert.equal(hasOwnList(volume(["b"], [host("b"), host("a")])), false);
  assert.equal(hasOwnList(volume(["a"], [foreign])), false);
  assert.equal(hasOwnList(volume([], [host("a")])), false);
});

Deno.test("widenedList() adds a further node where there is a list of this driver's", () => {
  assert.deepEqual(widenedList(volume(["b"], [host("b")]), "c"), [host("b"), host("c")]);
  assert.equal(widenedList(volume(["b"], [host("b")]), "b"), undefined);
  assert.equal(widenedList(volume(["b"]), "c"), undefined);
  assert.equal(widenedList(volume(["b"], [foreign]), "c"), undefined);
});

Deno.test("shortenedList() strikes a node off a list of this driver's, which admits nobody else and proves nothing", () => {
  const struck = shortenedList(volume(["b", "c"], [host("b"), host("c")]), "b")!;
  const left = volume(["c"], struck);
  assert.deepEqual([struck.length, struck[0], hasOwnList(left)], [2, host("c"), true]);
  assert.equal(isNarrowed(left, { allowHost: "list", endsSessionsAtOnce: true }), false);
  assert.deepEqual(widenedList(left, "d"), [host("c"), host("d")]);
  for (const list of [undefined, [host("b")], [host("b"), foreign], [host("b"), host("c"), foreign]]) {
    assert.equal(shortenedList(volume(["b", "c"], list), "b"), undefined, String(list));
  }
});

Deno.test("canShutOut() needs a proven list, a namespace that outlives a toggle, a toggle that ends sessions, two writers, an epoch of this driver's and no foreign list", () => {
  const remaining = [shared("b")];
  const both = volume(["a", "b"]);
  const kept = { allowHost: "list", identity: "kept", endsSessionsAtOnce: true } as const;
  assert.equal(canShutOut(both, kept, remaining), true);
  for (const allowHost of ["single", "ignored", undefined] as const) {
    assert.equal(canShutOut(both, { ...kept, allowHost }, remaining), false, String(allowHost));
  }
  for (const identity of ["new-per-export", undefined] as const) {
    assert.equal(canShutOut(both, { ...kept, identity }, remaining), false, String(identity));
  }
  assert.equal(canShutOut(both, { ...kept, endsSessionsAtOnce: false }, remaining), false);
  assert.equal(canShutOut(volume(["a", "b"], [host("b")]), kept, remaining), true);
  assert.equal(canShutOut(volume(["a", "b"], [host("b"), foreign]), kept, remaining), false);
  assert.equal(canShutOut(volume(["a", "b"], undefined, { exportNqn: "pvc-1" }), kept, remaining), false);
  assert.equal(canShutOut(both, kept, [aHolder("b", { mode: "multi-node-reader-only" })]), false);
});

Deno.test("isExportedTo() needs the export on, under that name, and to those hosts", () => {
  const { stored } = volume(["b"], [host("b")]);
  assert.equal(isExportedTo(stored, stored.exportNqn, [host("b")]), true);
  assert.equal(isExportedTo(stored, stored.exportNqn, []), false);
  assert.equal(isExportedTo(stored, "nqn.other", [host("b")]), false);
  assert.equal(isExportedTo({ ...stored, exported: false }, stored.exportNqn, [host("b")]), false);
});
