import { refusal } from "../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import {
  call,
  epoch,
  ext4,
  FakeNode,
  nqn,
  publishContext,
  targetPath,
  volumeId,
} from "../../tests/fakes/node_deps.ts";
import { parsePublishContext } from "../volume/model/parse_context.ts";
import { OrphanedConnections } from "./connections/orphaned_connections.ts";
import { connectedNqns } from "./connections/observe.ts";

const other = `nas2/${volumeId}`;
const otherNqn = `nqn.2000-02.com.mikrotik:nas2:${volumeId}:${epoch}`;
const otherStaging = "/kubelet/staging/other";

/** A node that can reach volumes of the same name on two routers. */
function nodeOfTwo(): FakeNode {
  const node = new FakeNode();
  node.devices.set(
    otherNqn,
    node.newDevice({ path: "/dev/nvme9n1", deviceNumber: "259:9", uniqueId: "other" }),
  );
  return node;
}

const stageOther = (node: FakeNode) =>
  node.stage({
    volumeId: other,
    stagingPath: otherStaging,
    capability: ext4,
    publishContext: publishContext({ nqn: otherNqn }),
  });

Deno.test("volumes of one name on two routers are staged side by side, and unstaged independently", async () => {
  const node = nodeOfTwo();
  await node.stage({});
  await stageOther(node);
  assert.deepEqual([...node.devices.values()].map(({ connected }) => connected), [true, true]);
  assert.deepEqual((await node.deps.stagingStore.ids()).toSorted(), [other, volumeId].toSorted());
  const files = [...node.paths.nodes.keys()].filter((path) => path.startsWith("/state/volumes/"));
  assert.deepEqual(files.toSorted(), ["/state/volumes/nas2:pvc-1.json", "/state/volumes/pvc-1.json"]);
  await node.service.unstage({ volumeId: other, stagingPath: otherStaging }, call());
  assert.deepEqual([node.devices.get(nqn)!.connected, node.devices.get(otherNqn)!.connected], [true, false]);
  await node.publish({});
  assert.ok(node.table.some(({ mountPoint }) => mountPoint === targetPath));
  assert.deepEqual(await node.deps.stagingStore.ids(), [volumeId]);
});

Deno.test("without a state file each volume finds only its own connections", async () => {
  const node = new FakeNode();
  const named = (tail: string) => `nqn.2000-02.com.mikrotik:${tail}`;
  // A router named like a volume of the other router, and volumes named like a part of another.
  const all = ["pvc-1", `pvc-1:${epoch}`, `nas2:pvc-1:${epoch}`, `pvc-1:nas2:${epoch}`, `nas2:${epoch}`].map(
    named,
  );
  for (const each of all) node.devices.set(each, node.newDevice({ connected: true }));
  const found = async (id: string) => await connectedNqns(node.deps, id, call());
  assert.deepEqual((await found("pvc-1")).toSorted(), [all[0], all[1]].toSorted());
  assert.deepEqual(await found("nas2/pvc-1"), [all[2]]);
  assert.deepEqual(await found("pvc-1/nas2"), [all[3]]);
  assert.deepEqual(await found("nas2"), [all[4]]);
});

Deno.test("a publish context of the volume of that name on another router is refused", () => {
  const takes = (id: string, name: string) => parsePublishContext(publishContext({ nqn: name }), id);
  assert.equal(takes(volumeId, nqn).nqn, nqn);
  assert.equal(takes(other, otherNqn).nqn, otherNqn);
  const wrong: [string, string][] = [
    [volumeId, otherNqn],
    [other, nqn],
    [`nas3/${volumeId}`, otherNqn],
    [other, otherNqn.slice(0, -epoch.length - 1)],
    ["nas2", otherNqn],
    ["nas2", otherNqn.slice(0, -epoch.length - 1)],
  ];
  for (const [id, name] of wrong) {
    assert.throws(
      () => takes(id, name),
      refusal("identity-mismatch"),
      `${id} ${name}`,
    );
  }
});

Deno.test("a connection of a volume with a state file is no orphan, on any router", async () => {
  const node = nodeOfTwo();
  await stageOther(node);
  node.devices.set(nqn, node.newDevice({ connected: true }));
  const before = node.operations.length;
  await new OrphanedConnections(node.deps, { tryTake: () => () => {} }).check(call());
  assert.deepEqual(node.operations.slice(before), ["disconnect"]);
  assert.deepEqual([node.devices.get(nqn)!.connected, node.devices.get(otherNqn)!.connected], [false, true]);
});
