import assert from "node:assert/strict";
import {
  aPublish,
  sharedBlock,
  testContext,
  testController,
  testParameters,
} from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord } from "../../../tests/fakes/records.ts";
import type { MigrationPairs } from "../../volume/ports/cluster_ports.ts";
import { publishVolume } from "./publish.ts";

/** A shared block volume that node a holds, and pairs of which `reason` is said. */
function scene(reason: string | undefined) {
  const { store, deps, events } = testController();
  const holders = [aHolder("a", { mode: "multi-node-multi-writer" })];
  const epoch = { counter: 1, nonce: "0a0b0c0d" };
  store.put(aDisk(aRecord({ capabilities: "block/x", blankEpoch: 0, epoch, holders })));
  const asked: unknown[] = [];
  const pairs: MigrationPairs = {
    reasonAgainst: ({ volumeId, nodeId, holders }) => {
      asked.push([volumeId, nodeId, ...holders.map((holder) => holder.nodeId)]);
      return Promise.resolve(reason);
    },
  };
  const publish = (nodeId: string) => {
    const request = aPublish(nodeId, { capability: sharedBlock });
    return publishVolume({ ...deps, pairs }, "pvc-1", request, testParameters, testContext());
  };
  return { store, events, asked, publish };
}

Deno.test("a second node gets a volume only when the two are a pair, and is told why they are not", async () => {
  const { store, events, publish } = scene("no pod uses its claim");
  const before = store.disks.get("pvc-1");
  await assert.rejects(publish("b"), {
    kind: "published-elsewhere",
    message: /node=a requested=b: no pod uses its claim/,
  });
  assert.deepEqual(store.disks.get("pvc-1"), before);
  assert.deepEqual(events.map(({ kind }) => kind), ["attach-refused"]);
});

Deno.test("nobody asks about pairs for the first node, nor for one that has the volume", async () => {
  const { asked, publish } = scene("none of that is a pair");
  await publish("a");
  assert.deepEqual(asked, []);
  const pair = scene(undefined);
  await pair.publish("b");
  await pair.publish("b");
  assert.deepEqual(pair.asked, [["pvc-1", "b", "a"]]);
});
