// Volumes whose map was given up while their router was away: all I/O fails until they are staged anew.
import assert from "node:assert/strict";
import { block, nqn } from "../../../tests/fakes/node_deps.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { dropped, givenUp, inUse, layered, mapName as name } from "../../../tests/fakes/watched_map.ts";

Deno.test("a volume that was given up and is staged again right after is brought back like any other", async () => {
  const { node, watch } = await inUse();
  givenUp(node);
  node.offered = () => [];
  await watch.check();
  await node.clock.advance(601_000);
  await watch.check();
  assert.equal(node.mapper.write(name), "fails");
  await node.unpublish();
  await node.unstage();
  node.offered = () => [nqn];
  await node.stage(layered);
  await node.publish();
  await watch.check();
  dropped(node);
  assert.equal(node.mapper.write(name), "waits");
  await node.clock.advance(3_000);
  await watch.check();
  assert.equal(node.mapper.write(name), "done");
});

for (const kind of ["ext4", "block"] as const) {
  for (const kernel of ["has given up the connection", "still tries to connect"]) {
    Deno.test(`${kind} that was given up while the kernel ${kernel} is staged anew by the next pod's publish`, async () => {
      const { node, watch } = await inUse(kind);
      if (kernel.startsWith("has")) givenUp(node);
      else node.connections.set(nqn, { state: "connecting", stateName: "connecting" });
      node.offered = () => [];
      await watch.check();
      await node.clock.advance(601_000);
      await watch.check();
      node.offered = () => [nqn];
      node.connections.clear();
      await watch.check();
      assert.equal(node.mapper.write(name), "fails");
      const capability = kind === "block" ? { capability: block } : {};
      const next = { ...layered, ...capability, targetPath: "/kubelet/pods/2/mount" };
      await assert.rejects(node.publish(next), refusal("precondition", /given up .*delete the pods/));
      await node.unpublish();
      await node.publish(next);
      await watch.check();
      assert.equal(node.mapper.write(name), "done");
      assert.equal(node.mapper.maps.get(name)!.table!.queues, true);
      assert.equal(node.formats.length, kind === "block" ? 0 : 1);
    });
  }
}

Deno.test("a map that is suspended for a reload does not count as given up, although it shows no queueing", async () => {
  const { node } = await inUse();
  await node.unpublish();
  node.mapper.maps.get(name)!.table!.queues = false;
  node.files.texts.set("/sys/block/dm-0/dm/suspended", "1");
  await assert.rejects(node.publish(layered), refusal("unavailable", /writes wait for it/));
  assert.equal(node.table.length, 1);
});
