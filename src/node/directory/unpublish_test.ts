import assert from "node:assert/strict";
import { contextOf, FakeNfsNode, sharesPath, stagingOf, targetOf } from "../../../tests/fakes/nfs.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";

async function staged(...names: string[]): Promise<FakeNfsNode> {
  const node = new FakeNfsNode();
  for (const name of names) {
    node.addDirectory(`/pool/volumes/${name}`);
    await node.stage(name);
  }
  return node;
}

/** All orders of the items. */
function permutations<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, at) => permutations(items.toSpliced(at, 1)).map((rest) => [item, ...rest]));
}

Deno.test("unstage() unmounts the share with the last volume, in any order, also after a restart in between", async () => {
  const names = ["a", "b", "c", "d"];
  for (const order of permutations(names)) {
    const node = await staged(...names);
    for (const [at, name] of order.entries()) {
      assert.equal(node.shares.length, 1, order.join());
      if (at === 2) node.restart();
      await node.unstage(name);
    }
    assert.deepEqual(node.table, [], order.join());
    assert.equal(node.paths.nodes.has(sharesPath), true);
  }
});

Deno.test("unstage() of many volumes at once unmounts the share exactly once", async () => {
  const names = Array.from({ length: 50 }, (_, at) => `v${at}`);
  const node = await staged(...names);
  await Promise.all(names.map((name) => node.unstage(name)));
  assert.deepEqual(node.table, []);
  const unmounts = node.operations.filter((each) => each.startsWith(`unmount ${sharesPath}/`));
  assert.equal(unmounts.length, 1);
});

Deno.test("unstage() while another volume is being staged never takes its share away", async () => {
  const node = await staged("a");
  node.addDirectory("/pool/volumes/b");
  await Promise.all([node.unstage("a"), node.stage("b")]);
  assert.equal(node.shares.length, 1);
  assert.equal(node.at(stagingOf("b"))?.source, "10.0.0.1:/pool/volumes/b");
});

Deno.test("unstage() keeps the share while a target is still bound, and the unpublish unmounts it", async () => {
  const node = await staged("a");
  await node.publish("a");
  await node.unstage("a");
  assert.equal(node.shares.length, 1);
  await node.unpublish("a");
  assert.deepEqual(node.table, []);
});

Deno.test("unstage() writes what the kernel holds before it unmounts", async () => {
  const node = await staged("a");
  await node.unstage("a");
  const order = node.operations.filter((each) => /^(?:flush|unmount)/.test(each));
  assert.deepEqual(order.slice(0, 2), ["flush", `unmount ${stagingOf("a")}`]);
});

Deno.test("unstage() of a volume that is not staged, or twice, is OK", async () => {
  const node = await staged("a");
  await node.unstage("b");
  await node.unstage("a");
  await node.unstage("a");
  assert.deepEqual(node.table, []);
});

Deno.test("unstage() detaches from a dead server, says so, and unmounts the share too", async () => {
  const node = await staged("a", "b");
  node.dead = true;
  await node.unstage("a");
  assert.equal(node.shares.length, 1);
  await node.unstage("b");
  assert.deepEqual(node.table, []);
  assert.ok(node.notes.some((note) => /may not have all that was written/.test(note)));
  assert.ok(node.notes.some((note) => /detached because its server does not answer/.test(note)));
});

Deno.test("unstage() refuses a busy path, and changes nothing", async () => {
  const node = await staged("a");
  node.busy.add(stagingOf("a"));
  await assert.rejects(node.unstage("a"), refusal("in-use", /busy/));
  assert.equal(node.shares.length, 1);
});

Deno.test("unstage() is OK although the share itself is busy, and the next start unmounts it", async () => {
  const node = await staged("a");
  const share = node.table.find(({ mountPoint }) => mountPoint.startsWith(sharesPath))!.mountPoint;
  node.busy.add(share);
  await node.unstage("a");
  assert.equal(node.shares.length, 1);
  node.busy.clear();
  node.restart();
  await node.service.releaseUnused(new AbortController().signal);
  assert.deepEqual(node.table, []);
});

Deno.test("unstage() and unpublish() refuse to unmount what is no NFS, and the driver's own shares", async () => {
  const node = await staged("a");
  node.addMount("/kubelet/staging/x", { filesystem: "ext4", deviceNumber: "8:1" });
  await assert.rejects(node.unstage("x"), refusal("precondition", /something else is mounted/));
  await assert.rejects(node.unpublish("x", "/kubelet/staging/x"), refusal("precondition"));
  const share = node.table.find(({ mountPoint }) => mountPoint.startsWith(sharesPath))!.mountPoint;
  await assert.rejects(node.unpublish("a", share), refusal("precondition"));
  assert.equal(node.table.length, 3);
});

Deno.test("unpublish() removes the empty target and nothing else", async () => {
  const node = await staged("a");
  await node.publish("a");
  await node.unpublish("a");
  assert.equal(node.paths.nodes.has(targetOf("a")), false);
  await node.unpublish("a");
});

Deno.test("unstage() killed before any step converges", async () => {
  const whole = await staged("a");
  const begin = whole.operations.length;
  await whole.unstage("a");
  for (let at = begin + 1; at <= whole.operations.length; at++) {
    const node = await staged("a");
    node.before = (_, count) => {
      if (count >= at) throw new Error("killed");
    };
    await node.unstage("a").catch(() => {});
    node.before = () => {};
    node.restart();
    await node.unstage("a");
    assert.deepEqual(node.table, [], `killed before ${whole.operations[at - 1]}`);
  }
});

Deno.test("a staged volume keeps its data path over a restart that has lost everything but the kernel", async () => {
  const node = await staged("a");
  node.restart();
  await node.service.releaseUnused(new AbortController().signal);
  assert.equal(node.at(stagingOf("a"))?.source, "10.0.0.1:/pool/volumes/a");
  await node.publish("a", targetOf("a"), { volumeContext: contextOf("a") });
  await node.unpublish("a");
  await node.unstage("a");
  assert.deepEqual(node.table, []);
});
