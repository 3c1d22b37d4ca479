import assert from "node:assert/strict";
import { contextOf, FakeNfsNode } from "../../../tests/fakes/nfs.ts";

function nodeWith(...names: string[]): FakeNfsNode {
  const node = new FakeNfsNode();
  for (const name of names) node.addDirectory(`/pool/volumes/${name}`);
  return node;
}

function assertPublished(node: FakeNfsNode, ...names: string[]): void {
  assert.deepEqual([...node.events.staged], names.map((name) => `10.0.0.1:/pool/volumes/${name}`));
}

Deno.test("a directory counts from its first target to its last", async () => {
  const node = nodeWith("a", "b");
  await node.publish("a");
  await node.publish("a", { targetPath: "/kubelet/pods/other/mount" });
  await node.publish("b");
  await node.unpublish("a");
  assertPublished(node, "a", "b");
  await node.unpublish("a", "/kubelet/pods/other/mount");
  assertPublished(node, "b");
});

Deno.test("countPublished() finds in the mount table what an earlier process has published", async () => {
  const node = nodeWith("a", "b");
  await node.publish("a");
  await node.publish("b");
  node.events.staged.clear();
  node.restart();
  await node.service.countPublished();
  assertPublished(node, "a", "b");
});

Deno.test("a directory that two volumes name counts until the second one has left", async () => {
  const node = nodeWith("a");
  await node.publish("a");
  await node.publish("other", { volumeContext: contextOf("a") });
  await node.unpublish("a");
  assertPublished(node, "a");
  await node.unpublish("other");
  assertPublished(node);
});

Deno.test("a publish that fails counts nothing", async () => {
  const node = nodeWith();
  await assert.rejects(node.publish("missing"));
  assertPublished(node);
});
