import assert from "node:assert/strict";
import { FakeNfsNode, sharesPath, targetOf } from "../../../tests/fakes/nfs.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";

async function published(...names: string[]): Promise<FakeNfsNode> {
  const node = new FakeNfsNode();
  for (const name of names) {
    node.addDirectory(`/pool/volumes/${name}`);
    await node.publish(name);
  }
  return node;
}

/** All orders of the items. */
function permutations<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, at) => permutations(items.toSpliced(at, 1)).map((rest) => [item, ...rest]));
}

Deno.test("unpublish() unmounts the share with the last volume, in any order, also after a restart in between", async () => {
  const names = ["a", "b", "c", "d"];
  for (const order of permutations(names)) {
    const node = await published(...names);
    for (const [at, name] of order.entries()) {
      assert.equal(node.shares.length, 1, order.join());
      if (at === 2) node.restart();
      await node.unpublish(name);
    }
    assert.deepEqual(node.table, [], order.join());
    assert.equal(node.paths.nodes.has(sharesPath), true);
  }
});

Deno.test("unpublish() of many volumes at once unmounts the share exactly once", async () => {
  const names = Array.from({ length: 50 }, (_, at) => `v${at}`);
  const node = await published(...names);
  const begin = node.operations.length;
  await Promise.all(names.map((name) => node.unpublish(name)));
  assert.deepEqual(node.table, []);
  const unmounts = node.operations.slice(begin).filter((each) => each.startsWith(`unmount ${sharesPath}/`));
  assert.equal(unmounts.length, 1);
});

Deno.test("unpublish() while another volume is being published never takes its share away", async () => {
  const node = await published("a");
  node.addDirectory("/pool/volumes/b");
  await Promise.all([node.unpublish("a"), node.publish("b")]);
  assert.equal(node.shares.length, 1);
  assert.equal(node.at(targetOf("b"))?.source, "10.0.0.1:/pool/volumes/b");
});

Deno.test("unpublish() keeps the share while another target is bound", async () => {
  const other = "/kubelet/pods/other/mount";
  const node = await published("a");
  await node.publish("a", { targetPath: other });
  await node.unpublish("a");
  assert.equal(node.shares.length, 1);
  await node.unpublish("a", other);
  assert.deepEqual(node.table, []);
});

Deno.test("unpublish() writes what the kernel holds before it unmounts", async () => {
  const node = await published("a");
  const begin = node.operations.length;
  await node.unpublish("a");
  const order = node.operations.slice(begin).filter((each) => /^(?:flush|unmount)/.test(each));
  assert.deepEqual(order.slice(0, 2), ["flush", `unmount ${targetOf("a")}`]);
});

Deno.test("unpublish() of a volume that is not published, or twice, is OK", async () => {
  const node = await published("a");
  await node.unpublish("b");
  await node.unpublish("a");
  await node.unpublish("a");
  assert.deepEqual(node.table, []);
});

Deno.test("unpublish() detaches from a dead server, says so, and unmounts the share too", async () => {
  const node = await published("a", "b");
  node.dead = true;
  await node.unpublish("a");
  assert.equal(node.shares.length, 1);
  await node.unpublish("b");
  assert.deepEqual(node.table, []);
  assert.ok(node.notes.some((note) => /may not have all that was written/.test(note)));
  assert.ok(node.notes.some((note) => /detached because its server does not answer/.test(note)));
});

Deno.test("unpublish() refuses a busy path, and changes nothing", async () => {
  const node = await published("a");
  node.busy.add(targetOf("a"));
  await assert.rejects(node.unpublish("a"), refusal("in-use", /busy/));
  assert.equal(node.shares.length, 1);
});

Deno.test("unpublish() is OK although the share itself is busy, and the next start unmounts it", async () => {
  const node = await published("a");
  const share = node.table.find(({ mountPoint }) => mountPoint.startsWith(sharesPath))!.mountPoint;
  node.busy.add(share);
  await node.unpublish("a");
  assert.equal(node.shares.length, 1);
  node.busy.clear();
  node.restart();
  await node.service.releaseUnused(new AbortController().signal);
  assert.deepEqual(node.table, []);
});

Deno.test("unpublish() refuses to unmount what is no NFS, and the driver's own shares", async () => {
  const node = await published("a");
  node.addMount("/kubelet/pods/x/mount", { filesystem: "ext4", deviceNumber: "8:1" });
  await assert.rejects(node.unpublish("x"), refusal("precondition", /something else is mounted/));
  await assert.rejects(node.unpublish("x", "/kubelet/pods/x/mount"), refusal("precondition"));
  const share = node.table.find(({ mountPoint }) => mountPoint.startsWith(sharesPath))!.mountPoint;
  await assert.rejects(node.unpublish("a", share), refusal("precondition"));
  assert.equal(node.table.length, 3);
});

Deno.test("unpublish() removes the empty target and nothing else", async () => {
  const node = await published("a");
  await node.publish("a");
  await node.unpublish("a");
  assert.equal(node.paths.nodes.has(targetOf("a")), false);
  await node.unpublish("a");
});

Deno.test("unpublish() killed before any step converges", async () => {
  const whole = await published("a");
  const begin = whole.operations.length;
  await whole.unpublish("a");
  for (let at = begin + 1; at <= whole.operations.length; at++) {
    const node = await published("a");
    node.before = (_, count) => {
      if (count >= at) throw new Error("killed");
    };
    await node.unpublish("a").catch(() => {});
    node.before = () => {};
    node.restart();
    await node.unpublish("a");
    assert.deepEqual(node.table, [], `killed before ${whole.operations[at - 1]}`);
  }
});

Deno.test("a volume keeps its data path over a restart that has lost everything but the kernel", async () => {
  const node = await published("a");
  node.restart();
  await node.service.releaseUnused(new AbortController().signal);
  assert.equal(node.at(targetOf("a"))?.source, "10.0.0.1:/pool/volumes/a");
  await node.publish("a");
  await node.unpublish("a");
  assert.deepEqual(node.table, []);
});
