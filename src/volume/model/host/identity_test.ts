import assert from "node:assert/strict";
import { refusal } from "../../../../tests/fakes/refusal.ts";
import { hostIdentityOf } from "./identity.ts";

/** These values never change: a node whose identity changed would not recognise its own connections. */
const known: Readonly<Record<string, string>> = {
  "a": "5543d5f2-9a75-8fb2-9877-98f34492869b",
  "node-1": "afb85e8a-fe6a-804a-8332-c926df622d06",
  "worker-2.example.com": "a930db8d-b65b-8b7c-b4c1-ece9a5107eec",
};

for (const [nodeId, hostId] of Object.entries(known)) {
  Deno.test(`hostIdentityOf() gives ${nodeId} its UUID, in the NQN too`, () => {
    const hostNqn = `nqn.2014-08.org.nvmexpress:uuid:${hostId}`;
    assert.deepEqual(hostIdentityOf(nodeId), { hostNqn, hostId });
  });
}

Deno.test("hostIdentityOf() makes a different UUID of version 8 for each node", () => {
  const ids = Array.from({ length: 500 }, (_, i) => hostIdentityOf(`node-${i}`).hostId);
  for (const id of ids) {
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
  assert.equal(new Set(ids).size, ids.length);
});

Deno.test("hostIdentityOf() throws invalid for an invalid node id", () => {
  for (const nodeId of ["", "a b", "-a", "a".repeat(65)]) {
    assert.throws(() => hostIdentityOf(nodeId), refusal("invalid"), nodeId);
  }
});
