import assert from "node:assert/strict";
import {
  aCreate,
  aPublish,
  testContext,
  testController,
  testParameters,
} from "../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord } from "../../tests/fakes/records.ts";
import { createVolume } from "./volumes/create.ts";
import { expandVolume } from "./volumes/expand.ts";
import { publishVolume } from "./attachments/publish.ts";
import { createSnapshot } from "./snapshots/create.ts";
import { unpublishVolume } from "./attachments/unpublish.ts";

const epoch = { counter: 1, nonce: "0a0b0c0d" };
const name = "pvc-01234567-89ab-cdef-0123-456789abcdef";

function held() {
  const controller = testController();
  controller.store.put(aDisk(aRecord({ epoch, holders: [aHolder("node-1")] })));
  return controller;
}

Deno.test("who is refused a volume that another node holds is told of, with that node", async () => {
  const { deps, events } = held();
  await assert.rejects(publishVolume(deps, "pvc-1", aPublish("node-2"), testParameters, testContext()));
  assert.equal(events.length, 1);
  const [event] = events;
  assert.ok(
    event?.kind === "attach-refused" && event.nodeId === "node-2" && event.message.includes("node=node-1"),
  );
});

Deno.test("what another try may mend is not told of", async () => {
  const { deps, store, events } = held();
  store.mishap("view", { unreadable: true });
  await assert.rejects(publishVolume(deps, "pvc-1", aPublish("node-2"), testParameters, testContext()));
  assert.deepEqual(events, []);
});

Deno.test("a full pool is told of on the claim, where the provisioner names it, and on a volume that is to grow", async () => {
  const { deps, events } = held();
  const tooMuch = { requiredBytes: 1n << 60n, limitBytes: 0n };
  const rawParameters = { "csi.storage.k8s.io/pvc/name": "data", "csi.storage.k8s.io/pvc/namespace": "apps" };
  const create = (over: object) =>
    createVolume(deps, { ...aCreate(name, { range: tooMuch }), ...over }, testContext());
  await assert.rejects(create({}), { kind: "exhausted" });
  await assert.rejects(create({ rawParameters }), { kind: "exhausted" });
  await assert.rejects(expandVolume(deps, "pvc-1", tooMuch, testContext()), { kind: "out-of-range" });
  const claim = { namespace: "apps", name: "data", uid: name.slice(4) };
  assert.deepEqual(events.map((event) => event.kind === "out-of-space" && event.about), [claim, "pvc-1"]);
});

Deno.test("a pool too full for a snapshot is told of on the volume that it was to be made of", async () => {
  const { deps, store, events } = held();
  const request = { name: "snapshot-1", source: "pvc-1" };
  store.pools = store.pools.map((pool) => ({ ...pool, freeBytes: 0n }));
  await assert.rejects(createSnapshot(deps, request, testContext()), { kind: "exhausted" });
  assert.equal(events.length, 1);
  const [event] = events;
  assert.ok(event?.kind === "out-of-space" && event.about === "pvc-1");
  assert.match(
    event.message,
    /^No snapshot of the volume was made: Cannot find room on the pool: .*free 0 B/,
  );
  const gone = { ...request, source: "pvc-2" };
  await assert.rejects(createSnapshot(deps, gone, testContext()), { kind: "not-found" });
  assert.equal(events.length, 1);
});

Deno.test("taking a volume from all its nodes is told of, and from one that is named is not", async () => {
  const { deps, events } = held();
  await unpublishVolume(deps, "pvc-1", "", testContext());
  assert.deepEqual(events, [{ kind: "fenced", volumeId: "pvc-1", nodeIds: ["node-1"] }]);
  const other = held();
  await unpublishVolume(other.deps, "pvc-1", "node-1", testContext());
  assert.deepEqual(other.events, []);
});
