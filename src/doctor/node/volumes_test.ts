import assert from "node:assert/strict";
import { call, FakeNode, nqn } from "../../../tests/fakes/node_deps.ts";
import type { Reach } from "../../host/network.ts";
import { hostIdentityOf } from "../../volume/model/host/identity.ts";
import { judgeConnections, judgeIdentity, volumesOfNode } from "./volumes.ts";
import { checkTargets, targetsOf } from "./nvme.ts";

Deno.test("judgeConnections() reports other hosts' identities and connections that are not live", async () => {
  const node = new FakeNode();
  const identity = hostIdentityOf("node-1");
  const judge = async (guessed = false) => {
    const findings = judgeConnections(await volumesOfNode(node.deps, call()), identity, guessed);
    return findings.map(({ state, found }) => `${state} ${found}`);
  };
  assert.deepEqual(await judge(), ["ok 0, all of them live and connected as this node"]);
  node.device.connected = true;
  node.connections.set(nqn, { hostNqn: identity.hostNqn });
  assert.deepEqual(await judge(), ["ok 1, all of them live and connected as this node"]);
  node.connections.set(nqn, { hostNqn: identity.hostNqn, state: "connecting", stateName: "connecting" });
  assert.match((await judge())[0]!, /^warning nvme3 is connecting: /);
  node.connections.set(nqn, { hostNqn: "nqn.2014-08.org.nvmexpress:uuid:x" });
  assert.match((await judge())[0]!, /^problem nvme3 is connected as another host: .*hostnqn=nqn\..*:x$/);
  assert.match((await judge(true))[0]!, /^warning nvme3 .*or the node id differs$/);
});

Deno.test("judgeIdentity() says when the node id is only a guess", () => {
  const identity = hostIdentityOf("node-1");
  assert.equal(judgeIdentity("node-1", false, identity).state, "ok");
  const guess = judgeIdentity("node-1", true, identity);
  assert.equal(guess.state, "ok", "the kubelet guesses in the same way");
  assert.match(guess.found, /the node's name is this machine's/);
  assert.ok(guess.found.includes(identity.hostNqn) && guess.found.includes(identity.hostId));
});

const open: Reach = { state: "open", ms: 2.6 };
const refused: Reach = { state: "refused", reason: "ECONNREFUSED" };
const silent: Reach = { state: "silent", reason: "no answer within 5 s" };
const prefix = "nqn.2000-02.com.mikrotik";

const targets: readonly (readonly [
  what: string,
  staged: boolean,
  reach: Reach,
  offered: readonly string[] | Error,
  state: string,
  found: RegExp,
])[] = [
  [
    "a target that offers what is staged",
    true,
    open,
    [nqn, "nqn.other"],
    "ok",
    /answers in 3 ms, .* host 1 of/,
  ],
  ["a target that offers nothing, with nothing staged", false, open, [], "ok", /host 0 of/],
  ["a withdrawn export", true, open, [], "warning", /not what is staged here: nqn\./],
  ["a log that cannot be read", false, open, new Error("cut"), "problem", /log cannot be read: cut$/],
  ["a silent target", false, silent, [], "problem", /does not answer: no answer/],
  [
    "a target that has no route",
    false,
    { state: "failed", reason: "no route" },
    [],
    "problem",
    /4420 cannot be reached: no route$/,
  ],
  [
    "a target without an address",
    false,
    { state: "unresolved", reason: "no DNS" },
    [],
    "problem",
    /4420 has no address: no DNS$/,
  ],
  ["a refusing target of what is staged", true, refused, [], "problem", /refuses the connection: /],
  ["a refusing target of nothing", false, refused, [], "warning", /listens only while it exports a volume$/],
];

Deno.test("targetsOf() reads every given address", () => {
  const at = targetsOf({ nvmeAddress: "10.0.0.1,fd00::2", nvmePort: 4420 }, []);
  assert.deepEqual(at, [{ address: "10.0.0.1", port: 4420 }, { address: "fd00::2", port: 4420 }]);
});

for (const [what, staged, reach, offered, state, found] of targets) {
  Deno.test(`checkTargets() says ${state} about ${what}`, async () => {
    const node = new FakeNode();
    if (staged) await node.stage();
    const volumes = await volumesOfNode(node.deps, call());
    const at = targetsOf({ nvmeAddress: staged ? "" : "10.0.0.1", nvmePort: 4420 }, volumes);
    assert.deepEqual(at, [{ address: "10.0.0.1", port: 4420 }]);
    const asked: string[] = [];
    const [finding, ...more] = await checkTargets(at, volumes, prefix, {
      network: { resolve: () => Promise.resolve([]), reach: () => Promise.resolve(reach) },
      discover: ({ address }) => {
        asked.push(address);
        return offered instanceof Error ? Promise.reject(offered) : Promise.resolve(offered);
      },
    });
    assert.deepEqual(more, []);
    assert.equal(finding?.state, state);
    assert.match(finding.found, found);
    assert.deepEqual(asked, reach.state === "open" ? ["10.0.0.1"] : []);
  });
}

Deno.test("checkTargets() asks no target when no address is known", async () => {
  const nobody = { resolve: () => Promise.resolve([]), reach: () => Promise.reject(new Error("asked")) };
  const findings = await checkTargets([], [], prefix, { network: nobody, discover: () => Promise.reject() });
  assert.deepEqual(findings.map(({ state }) => state), ["skipped"]);
});
