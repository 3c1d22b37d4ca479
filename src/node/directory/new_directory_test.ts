import assert from "node:assert/strict";
import { contextOf, FakeNfsNode } from "../../../tests/fakes/nfs.ts";
import { VolumeError } from "../../volume/errors.ts";
import { giveOwner } from "./new_directory.ts";

const path = "/pool/volumes/a";
const owner = { directoryMode: "0770", uid: "5", gid: "6" };

async function publish(node: FakeNfsNode, change: Record<string, string> = owner): Promise<void> {
  await node.publish("a", { volumeContext: contextOf("a", change) });
}

Deno.test("publish() gives a new directory the owner and the permissions of its class", async () => {
  const node = new FakeNfsNode();
  const directory = node.addDirectory(path);
  await publish(node);
  assert.deepEqual([directory.mode, directory.uid, directory.gid], [0o770, 5, 6]);
});

Deno.test("publish() leaves a directory that has content, or whose owner or permissions anyone has changed", async () => {
  for (const change of [{ isEmpty: false }, { changedMs: 6000 }]) {
    const node = new FakeNfsNode();
    const directory = node.addDirectory(path, change);
    await publish(node);
    assert.deepEqual([directory.mode, directory.uid, directory.gid], [0o755, 0, 0]);
  }
});

Deno.test("publish() changes nothing where the class says nothing, nor a second time", async () => {
  const node = new FakeNfsNode();
  const directory = node.addDirectory(path);
  await publish(node, {});
  assert.equal(directory.mode, 0o755);
  await node.unpublish("a");
  await publish(node);
  // A pod makes it its own while it is still empty.
  Object.assign(directory, { mode: 0o700 });
  await publish(node);
  await node.unpublish("a");
  await publish(node);
  assert.equal(directory.mode, 0o700);
});

Deno.test("publish() killed between any two of the changes finishes them the next time", async () => {
  for (const step of ["set time", "set owner", "set mode"]) {
    const node = new FakeNfsNode();
    const directory = node.addDirectory(path);
    node.before = (operation) => {
      if (operation === step) throw new Error("killed");
    };
    await assert.rejects(publish(node));
    node.before = () => {};
    node.restart();
    await publish(node);
    assert.deepEqual([directory.mode, directory.uid, directory.gid], [0o770, 5, 6], step);
  }
});

Deno.test("publish() goes on where the server lets nobody change the owner, and says so", async () => {
  const node = new FakeNfsNode();
  node.addDirectory(path);
  node.squashes = true;
  await publish(node);
  assert.ok(node.notes.some((note) => /keeps the owner and permissions/.test(note)));
});

Deno.test("giveOwner() goes on where the server does not even let it look", async () => {
  const node = new FakeNfsNode();
  const deps = node.deps();
  const readFolder = () => Promise.reject(new VolumeError("precondition", "the server refuses"));
  const owned = { mode: 0o770, uid: undefined, gid: undefined };
  await giveOwner({ ...deps, nfs: { ...deps.nfs, readFolder } }, path, owned, node.call());
  assert.ok(node.notes.some((note) => /keeps the owner and permissions/.test(note)));
});
