import assert from "node:assert/strict";
import { TrimWatch } from "../../src/node/trim/trim_watch.ts";
import { SeededRandom } from "../fakes/random.ts";
import { block, call, ext4, nodeTest, type RealNode, run, TestVolume, xfs } from "./harness.ts";

const mebibyte = 1 << 20;

/** One round over the node's volumes. */
async function trimAll(node: RealNode): Promise<void> {
  const lock = { tryTake: () => () => {} };
  await new TrimWatch({ deps: node.deps, lock, random: new SeededRandom(), intervalMs: 0 }).check();
}

/** How much space a volume's file takes on its pool, in bytes. */
function taken({ image }: TestVolume): number {
  return Deno.statSync(image).blocks! * 512;
}

function trims(node: RealNode): readonly string[] {
  return node.events.reported.filter((each) => each.startsWith("trimmed"));
}

for (const capability of [ext4, xfs]) {
  const { filesystem } = capability as { filesystem: string };

  nodeTest(`${filesystem}: deleted data takes no space after a trim`, async (node) => {
    const volume = new TestVolume(node, "pvc-1");
    await node.stage(volume, { capability });
    const path = `${node.staging("pvc-1")}/data`;
    await run("dd", "if=/dev/urandom", `of=${path}`, "bs=1M", "count=64", "conv=fsync");
    await Deno.writeTextFile(`${node.staging("pvc-1")}/kept`, "kept");
    await Deno.remove(path);
    await run("sync", "-f", node.staging("pvc-1"));
    const before = taken(volume);
    assert.ok(before >= 64 * mebibyte, `${before} bytes`);
    const freed = () => before - taken(volume);
    // xfs frees the blocks of a deleted file in the background.
    for (const end = performance.now() + 10_000; freed() < 60 * mebibyte && performance.now() < end;) {
      await trimAll(node);
    }
    assert.ok(freed() >= 60 * mebibyte, `${freed()} bytes`);
    assert.match(trims(node).at(-1) ?? "", /^trimmed: ok: [0-9]{8,}: [0-9]+$/);
    assert.equal(await Deno.readTextFile(`${node.staging("pvc-1")}/kept`), "kept");
    const { problems } = await node.service.volumeHealth("pvc-1", call());
    assert.deepEqual(problems, []);
    await node.unstage(volume);
  });
}

nodeTest("a trim leaves the content of a raw block volume alone", async (node) => {
  const volume = new TestVolume(node, "pvc-1");
  await node.stage(volume, { capability: block });
  const device = await node.device(volume);
  await run("dd", "if=/dev/zero", `of=${device}`, "bs=1M", "count=8", "conv=fsync");
  const before = taken(volume);
  await trimAll(node);
  assert.equal(taken(volume), before);
  assert.deepEqual(trims(node), []);
  await node.unstage(volume);
});
