// A volume in use grows on a router that shows a new size only after a toggle of the export.
import assert from "node:assert/strict";
import { call, type FakeNode, nqn, sizeBytes, targetPath, volumeId } from "../../../tests/fakes/node_deps.ts";
import { dropped, givenUp, inUse, mapName as name } from "../../../tests/fakes/watched_map.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";

const range = { requiredBytes: sizeBytes * 2n, limitBytes: 0n };
const toggles = {
  "under a new identity": dropped,
  "and the kernel has given the connection up": givenUp,
} as const;

/** Calls NodeExpandVolume and lets all its waiting time pass. */
async function expand(node: FakeNode): Promise<bigint> {
  let isOver = false;
  const done = node.service.expand({ volumeId, volumePath: targetPath, range }, call())
    .finally(() => isOver = true);
  done.catch(() => {});
  for (let minutes = 0; minutes < 10 && !isOver; minutes++) await node.clock.advance(60_000);
  return await done;
}

Deno.test("expand() throws unavailable, to be retried, while a device with its size from before has no live path", async () => {
  const { node } = await inUse();
  // The kubelet never retries a call that got FAILED_PRECONDITION while a pod uses the volume.
  node.connections.set(nqn, { state: "connecting" });
  await assert.rejects(expand(node), refusal("unavailable", /keeps its size/));
  node.connections.delete(nqn);
  node.device.sizeBytes = range.requiredBytes;
  node.showDevices();
  assert.equal(await expand(node), range.requiredBytes);
});

Deno.test("expand() to more than the router shows is refused for good, so that the next pod starts all the same", async () => {
  const { node } = await inUse();
  await assert.rejects(expand(node), refusal("precondition", /keeps its size: .* end the pods that use it/));
});

for (const [how, toggle] of Object.entries(toggles)) {
  for (const kind of ["ext4", "block"] as const) {
    Deno.test(`expand() of ${kind} succeeds when its export came back larger ${how}`, async () => {
      const { node, watch } = await inUse(kind);
      node.offered = () => [nqn];
      toggle(node);
      node.device.sizeBytes = range.requiredBytes;
      node.showDevices();
      assert.equal(node.mapper.write(name), "waits");
      await assert.rejects(expand(node), refusal("unavailable"));
      assert.equal(node.mapper.write(name), "waits");
      await watch.check();
      assert.equal(node.mapper.write(name), "done");
      await watch.check();
      assert.equal(await expand(node), range.requiredBytes);
      assert.equal(node.mapper.write(name), "done");
      assert.equal((await node.deps.maps!.find(name))!.sizeBytes, range.requiredBytes);
      assert.ok(!node.events.reported.includes("identity mismatch"), "nobody is called for that");
    });
  }
}
