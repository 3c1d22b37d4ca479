import assert from "node:assert/strict";
import { FakeNfsNode, targetOf } from "../../../tests/fakes/nfs.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";

async function published(volumeId = "a"): Promise<FakeNfsNode> {
  const node = new FakeNfsNode();
  node.addDirectory("/pool/volumes/a");
  await node.publish("a", { volumeId });
  return node;
}

async function reasons(node: FakeNfsNode, volumeId: string, path?: string): Promise<readonly string[]> {
  const pending = node.service.volumeHealth({ volumeId, path }, node.call());
  pending.catch(() => {});
  await node.clock.advance(node.dead ? 5_000 : 0);
  return (await pending).problems.map(({ reason }) => reason);
}

const handle = "0a0b0c0d@/pool/volumes/a@pvc-1";

const other = "/kubelet/pods/other/mount";

Deno.test("stats() reads the share's size at a target", async () => {
  const node = await published();
  const stats = await node.service.stats({ volumeId: "a", path: targetOf("a") }, node.call());
  assert.equal(stats.usedBytes, 400n);
});

Deno.test("stats() does not find a volume where nothing, or another volume, is mounted", async () => {
  const node = await published();
  const at = (volumeId: string, path: string) => node.service.stats({ volumeId, path }, node.call());
  await assert.rejects(at("a", other), refusal("not-found"));
  await assert.rejects(at("a", "relative"), refusal("not-found"));
  await assert.rejects(at("0a0b0c0d@/pool/volumes/b@pvc-2", targetOf("a")), refusal("not-found"));
  node.addMount("/kubelet/x", { filesystem: "ext4" });
  await assert.rejects(at("a", "/kubelet/x"), refusal("not-found"));
});

Deno.test("stats() of a dead server ends in time, and is counted", async () => {
  const node = await published();
  node.dead = true;
  const pending = node.service.stats({ volumeId: "a", path: targetOf("a") }, node.call());
  pending.catch(() => {});
  await node.clock.advance(15_000);
  await assert.rejects(pending, refusal("deadline"));
  assert.deepEqual(node.events.reported, ["stale mount: stats"]);
});

Deno.test("volumeHealth() says what is wrong where the volume should be", async () => {
  const node = await published();
  assert.deepEqual(await reasons(node, "a", targetOf("a")), []);
  assert.deepEqual(await reasons(node, "a", other), ["NotMounted"]);
  node.addMount(other, { filesystem: "ext4" });
  assert.deepEqual(await reasons(node, "a", other), ["ForeignMount"]);
  node.dead = true;
  assert.deepEqual(await reasons(node, "a", targetOf("a")), ["ServerSilent"]);
});

Deno.test("volumeHealth() finds a volume of the driver's own by its handle, without a path", async () => {
  const node = await published(handle);
  assert.deepEqual(await reasons(node, handle), []);
  await assert.rejects(reasons(node, "0a0b0c0d@/pool/volumes/b@pvc-2"), refusal("not-found"));
  await assert.rejects(reasons(node, "any-text"), refusal("not-found"));
});

Deno.test("storageHealth() names the shares whose servers do not answer, and what keeps the node from mounting", async () => {
  const node = await published();
  assert.deepEqual(await node.service.storageHealth(node.call()), []);
  node.obstacle = "no module";
  node.dead = true;
  const pending = node.service.storageHealth(node.call());
  await node.clock.advance(5_000);
  const problems = await pending;
  assert.deepEqual(problems.map(({ reason }) => reason), ["TransportMissing", "ServerSilent"]);
  assert.match(problems[1]!.message, /10\.0\.0\.1:\/pool/);
  assert.equal(await node.service.obstacle(), "no module");
});
