import assert from "node:assert/strict";
import { block, call, FakeNode, stagingPath, targetPath, volumeId } from "../../../tests/fakes/node_world.ts";
import { VolumeError, type VolumeErrorKind } from "../../volume/errors.ts";
import type { Filesystems } from "../../volume/ports/ports.ts";

function is(kind: VolumeErrorKind, text = /./) {
  return (error: unknown) => VolumeError.is(error, kind) && text.test(error.message);
}

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

/** Statistics of a file system as the test says. */
function answering(node: FakeNode, answer: Filesystems["stats"]): void {
  Object.assign(node.world.filesystems, { stats: answer });
}

for (const capability of [undefined, block]) {
  const kind = capability?.access ?? "mount";

  Deno.test(`stats() of a ${kind} volume throws unavailable when its device is gone`, async () => {
    const node = await published(capability);
    node.device.connected = false;
    await assert.rejects(stats(node), is("unavailable", /device is gone/));
    assert.deepEqual(node.events.told.at(-1), "stale mount: stats");
  });

  Deno.test(`stats() of a ${kind} volume throws unavailable when its device is another one`, async () => {
    const node = await published(capability);
    node.device.deviceNumber = "7:9";
    await assert.rejects(stats(node), is("unavailable", /another one/));
  });

  Deno.test(`stats() of a ${kind} volume throws unavailable when its device is empty`, async () => {
    const node = await published(capability);
    node.device.sizeBytes = 0n;
    await assert.rejects(stats(node), is("unavailable", /empty/));
  });
}

Deno.test("stats() throws deadline when the file system never answers, and counts a stale mount", async () => {
  const node = await published();
  answering(
    node,
    (_point, { signal }) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  );
  const rejected = assert.rejects(stats(node), is("deadline", /within 15 s/));
  await node.clock.advance(15_000);
  await rejected;
  assert.deepEqual(node.events.told.at(-1), "stale mount: stats");
});

Deno.test("stats() throws deadline when not even the signal ends the look at the file system", async () => {
  const node = await published();
  answering(node, () => new Promise(() => {}));
  const rejected = assert.rejects(stats(node), is("deadline"));
  await node.clock.advance(15_000);
  await rejected;
});

Deno.test("stats() passes on that the file system fails", async () => {
  const node = await published();
  answering(node, () => Promise.reject(new VolumeError("unavailable", "exit=1")));
  await assert.rejects(stats(node), is("unavailable", /exit=1/));
  assert.deepEqual(node.events.told.at(-1), "stale mount: stats");
});

Deno.test("stats() answers for a file system that was turned read-only, where it is staged and published", async () => {
  const node = await published();
  node.table = node.table.map((entry) => ({ ...entry, superOptions: ["ro", "emergency_ro"] }));
  for (const path of [stagingPath, targetPath]) {
    const answer = await stats(node, path);
    assert.equal(answer.kind === "filesystem" && answer.stats.totalBytes, 100n);
  }
  assert.equal(node.events.told.includes("stale mount: stats"), false);
});
