import assert from "node:assert/strict";
import { testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aRecord } from "../../../tests/fakes/records.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import type { PublishRequest } from "../../volume/rules/publish.ts";
import { type VolumeRecord } from "../../volume/model/record.ts";

/** A controller on a router with the volume `pvc-1`. */
function controller(record: Partial<VolumeRecord>) {
  const made = testController({ unexportGraceMs: 0 });
  made.store.put(aDisk(aRecord(record)));
  const { unpublish, record: recorded } = volumeCalls(made);
  return { ...made, unpublish, blankEpoch: () => recorded().blankEpoch };
}

/** What the owner of the claim has allowed, and for what it was asked. */
function consenting(made: ReturnType<typeof controller>, allowed: number) {
  const asked: number[] = [];
  const consents = {
    claimOf: () => ({ namespace: "apps", name: "data" }),
    allowsFormat: (_: string, counter: number) => {
      asked.push(counter);
      return Promise.resolve(counter === allowed);
    },
  };
  const calls = volumeCalls({ ...made, deps: { ...made.deps, consents } });
  const publish = (over: Partial<PublishRequest> = {}) => calls.publish("a", over);
  return { asked, publish };
}

Deno.test("publishVolume() lets a claim's owner allow one format, in exactly the epoch that begins, once", async () => {
  const made = controller({ epoch: { counter: 1, nonce: "0123abcd" }, blankEpoch: 1 });
  const { asked, publish } = consenting(made, 3);
  const refused = await publish();
  assert.deepEqual([refused["mayFormat"], refused["claim"]], ["false", "apps/data"]);
  assert.equal((await publish())["mayFormat"], "false", "the epoch that runs stays as it began");
  assert.deepEqual(asked, [2]);
  await made.unpublish();
  const allowed = await publish();
  assert.deepEqual([allowed["mayFormat"], allowed["claim"]], ["true", undefined]);
  assert.equal(made.blankEpoch(), 3);
  await made.unpublish();
  assert.equal((await publish())["mayFormat"], "false", "it is inert from then on");
  assert.deepEqual(asked, [2, 3, 4]);
});

Deno.test("publishVolume() asks for no consent that could not count", async () => {
  const epoch = { counter: 1, nonce: "0123abcd" };
  const block: Partial<PublishRequest> = { capability: { access: "block", mode: "single-node-writer" } };
  const cases: [string, Partial<VolumeRecord>, Partial<PublishRequest>][] = [
    ["its first epoch", { epoch: { ...epoch, counter: 0 } }, {}],
    ["a clone", { epoch, source: "v:pvc-9" }, {}],
    ["only read", { epoch }, { readOnly: true }],
    ["a block volume", { epoch, capabilities: "block/w" }, block],
  ];
  for (const [name, record, request] of cases) {
    const { asked, publish } = consenting(controller(record), 2);
    const context = await publish(request);
    assert.deepEqual([asked, context["claim"]], [[], undefined], name);
  }
});

Deno.test("publishVolume() goes without the consent of a cluster that does not answer", async () => {
  const made = controller({ epoch: { counter: 1, nonce: "0123abcd" } });
  const allowsFormat = () => Promise.reject(new Error("the API server is away"));
  const deps = { ...made.deps, consents: { claimOf: () => undefined, allowsFormat } };
  const published = await volumeCalls({ ...made, deps }).publish();
  assert.deepEqual([published["mayFormat"], published["claim"]], ["false", undefined]);
  assert.match(made.notes.join(), /cannot read whether the claim's owner allows a format/);
});
