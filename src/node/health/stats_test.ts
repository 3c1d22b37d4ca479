import { refusal } from "../../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { block, call, FakeNode, targetPath, volumeId } from "../../../tests/fakes/node_deps.ts";
import type { Filesystems } from "../../volume/ports/node_ports.ts";

async function published(capability?: typeof block): Promise<FakeNode> {
  const node = new FakeNode();
  const change = capability === undefined ? {} : { capability };
  await node.stage(change);
  await node.publish(change);
  return node;
}

function stats(node: FakeNode, path = targetPath) {
  return node.service.stats(volumeId, path, call());
}

/** Lets the file system answer its statistics as the test says. */
function answering(node: FakeNode, answer: Filesystems["stats"]): void {
  Object.assign(node.deps.filesystems, { stats: answer });
}

const broken: readonly [string, (node: FakeNode) => void][] = [
  ["gone", (node) => node.device.connected = false],
  ["no longer the staged one", (node) => node.device.deviceNumber = "7:9"],
  ["empty", (node) => node.device.sizeBytes = 0n],
];

for (const [state, occur] of broken) {
  Deno.test(`stats() throws unavailable when the device is ${state}, and counts a stale mount`, async () => {
    for (const capability of [undefined, block]) {
      const node = await published(capability);
      occur(node);
      await assert.rejects(stats(node), refusal("unavailable", new RegExp(`device is ${state}`)));
      assert.equal(node.events.reported.at(-1), "stale mount: stats");
    }
  });
}

Deno.test("stats() throws deadline when the file system never answers, and counts a stale mount", async () => {
  const node = await published();
  answering(
    node,
    (_point, { signal }) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  );
  const rejected = assert.rejects(stats(node), refusal("deadline", /within 15 s/));
  await node.clock.advance(15_000);
  await rejected;
  assert.deepEqual(node.events.reported.at(-1), "stale mount: stats");
});
