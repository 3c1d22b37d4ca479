import assert from "node:assert/strict";
import { sharedBlock, testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aRecord, testPrefix } from "../../../tests/fakes/records.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import type { PublishRequest } from "../../volume/rules/publish.ts";
import { type VolumeRecord } from "../../volume/model/record.ts";

const joint: Partial<PublishRequest> = { capability: sharedBlock };

function controller(record: Partial<VolumeRecord> = {}, disk: Partial<StoredVolume> = {}) {
  const made = testController();
  made.store.put(aDisk(aRecord(record), disk));
  const { publish, unpublish, record: recorded } = volumeCalls(made);
  const layered = (nodeId: string, request: Partial<PublishRequest> = {}) =>
    publish(nodeId, { ...request, needsLayer: true });
  return { store: made.store, publish, layered, unpublish, recorded };
}

Deno.test("publishVolume() gives a volume that needs the device layer to no node of the legacy driver", async () => {
  const { store, layered, unpublish, recorded } = controller();
  const given = await layered("a");
  assert.equal(given["nqn"], store.disks.get("pvc-1")!.exportNqn);
  assert.match(given["nqn"]!, new RegExp(`^${testPrefix}:pvc-1:`));
  assert.deepEqual([given["layer"], given["nvme_nqn"]], ["true", undefined]);
  assert.equal(recorded().layered, true);
  assert.deepEqual(await layered("a"), given);
  await unpublish("a");
  assert.equal(recorded().layered, undefined);
});

Deno.test("publishVolume() of a volume that needs none begins an epoch of which nothing is known", async () => {
  const { publish, layered, unpublish, recorded } = controller();
  await layered("a");
  await unpublish("a");
  const given = await publish("a");
  assert.equal(given["layer"], undefined);
  assert.equal(given["nqn"], given["nvme_nqn"]);
  assert.equal(recorded().layered, undefined);
});

Deno.test("an epoch is layered only while each holder was published so", async () => {
  const shared = { capabilities: "block/x", blankEpoch: 0 };
  const both = controller(shared);
  await both.layered("a", joint);
  await both.layered("b", joint);
  assert.equal(both.recorded().layered, true);
  const second = controller(shared);
  await second.layered("a", joint);
  await second.publish("b", joint);
  assert.equal(second.recorded().layered, undefined);
  const first = controller(shared);
  await first.publish("a", joint);
  await first.layered("b", joint);
  assert.equal(first.recorded().layered, undefined);
  const again = controller(shared);
  await again.layered("a", joint);
  assert.notEqual((await again.publish("a", joint))["nqn"], undefined);
  assert.equal(again.recorded().layered, undefined);
});

Deno.test("publishVolume() leaves the mark of the device layer out where the record has no room for it", async () => {
  const published = async (needsLayer: boolean, noteBytes: number) => {
    const comment = "x".repeat(noteBytes) + aDisk(aRecord()).comment;
    const { publish, recorded } = controller({}, { comment });
    await publish("n".repeat(64), { needsLayer });
    return recorded().layered ? "marked" : "not marked";
  };
  const outcomes = async (needsLayer: boolean) => {
    const said: string[] = [];
    for (let bytes = 0; bytes < 120; bytes++) {
      said.push(await published(needsLayer, bytes).catch((error) => error.kind));
    }
    return said;
  };
  const layered = await outcomes(true);
  assert.deepEqual([...new Set(layered)], ["marked", "not marked", "precondition"]);
  assert.equal(layered.indexOf("exhausted"), (await outcomes(false)).indexOf("exhausted"));
});

Deno.test("publishVolume() gives an encrypted volume to no node of the legacy driver", async () => {
  const { store, publish } = controller({ capabilities: "ext4/ew" });
  const given = await publish("a", { encrypted: true });
  assert.equal(given["nqn"], store.disks.get("pvc-1")!.exportNqn);
  assert.deepEqual([given["encrypted"], given["nvme_nqn"], given["layer"]], ["true", undefined, undefined]);
  assert.equal(given["mayFormat"], "true");
  assert.deepEqual(await publish("a", { encrypted: true }), given);
});

Deno.test("publishVolume() lets the first node of an encrypted block volume write its header, in its first epoch", async () => {
  const { publish, unpublish } = controller({ capabilities: "block/ex" });
  const request = { ...joint, encrypted: true };
  assert.equal((await publish("a", request))["mayFormat"], "true");
  assert.equal((await publish("b", request))["mayFormat"], "false");
  await unpublish("b");
  await unpublish("a");
  assert.equal((await publish("b", request))["mayFormat"], "false");
});
