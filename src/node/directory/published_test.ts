import assert from "node:assert/strict";
import { contextOf, FakeNfsNode } from "../../../tests/fakes/nfs.ts";

function nodeWith(...names: string[]): FakeNfsNode {
  const node = new FakeNfsNode();
  for (const name of names) node.addDirectory(`/pool/volumes/${name}`);
  return node;
}

function assertStaged(node: FakeNfsNode, ...names: string[]): void {
  assert.deepEqual([...node.events.staged], names.map((name) => `10.0.0.1:/pool/volumes/${name}`));
}

Deno.test("a directory counts from its stage to its unstage, whoever publishes it meanwhile", async () => {
  const node = nodeWith("a", "b");
  await node.stage("a");
  await node.stage("a");
  await node.stage("b");
  await node.publish("a");
  await node.unpublish("a");
  assertStaged(node, "a", "b");
  await node.unstage("a");
  assertStaged(node, "b");
});

Deno.test("countStaged() finds in the mount table what an earlier process has staged", async () => {
  const node = nodeWith("a", "b");
  await node.stage("a");
  await node.stage("b");
  node.events.staged.clear();
  node.restart();
  await node.service.countStaged();
  assertStaged(node, "a", "b");
});

Deno.test("a directory that two volumes name counts until the second one has left", async () => {
  const node = nodeWith("a");
  await node.stage("a");
  await node.stage("other", { volumeContext: contextOf("a") });
  await node.unstage("a");
  assertStaged(node, "a");
  await node.unstage("other");
  assertStaged(node);
});

Deno.test("a stage that fails counts nothing", async () => {
  const node = nodeWith();
  await assert.rejects(node.stage("missing"));
  assertStaged(node);
});
