// Two controllers fill one pool at the same time, with volumes, snapshots and clones. They never promise more than its
// size.
import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import { SeededRandom } from "../fakes/random.ts";
import { cloneOf, create, gibibyte, snapshot, state } from "../support/controller_calls.ts";
import { wantsAll } from "../support/matrix.ts";
import { startClusterStack } from "../support/cluster_stack.ts";
import type { Stack } from "../support/stack.ts";

const sizeBytes = 24n * gibibyte;
const fullCodes: readonly status[] = [status.RESOURCE_EXHAUSTED, status.ABORTED, status.UNAVAILABLE];

/** The bytes promised on the pool: the size of every disk with a file, and of every image of a snapshot. */
async function promised(stack: Stack): Promise<bigint> {
  const { disks, files } = await state(stack);
  const sizes = [
    ...disks.filter((disk) => disk.type === "file").map((disk) => disk["size"]),
    ...files.filter(({ name }) => /\/snap-.*img/.test(name)).map((file) => file.size),
  ];
  return sizes.reduce<bigint>((sum, size) => sum + BigInt(String(size)), 0n);
}

/** Calls through both controllers at the same time until nothing more fits; returns how many succeeded. */
async function fill(stack: Stack, seed: number): Promise<number> {
  const second = await stack.another();
  const random = new SeededRandom(seed);
  const sources: string[] = [];
  for (const index of [1, 2, 3]) sources.push(await create(stack, `pvc-source-${index}`));
  const pick = <Item>(items: readonly Item[]) => items[Math.floor(random.fraction() * items.length)]!;
  const calls = Array.from({ length: 60 }, (_, index) => {
    const by = pick([stack, second]);
    const [name, volumeId] = [`${seed}-${index}`, pick(sources)];
    return pick([
      () => create(by, `pvc-${name}`),
      () => snapshot(by, `snap-${name}`, volumeId),
      () => snapshot(by, `snap-${name}`, volumeId),
      () => cloneOf(by, `pvc-${name}`, { volumeId }),
    ]);
  });
  const results = await Promise.allSettled(calls.map((call) => call()));
  for (const result of results) {
    if (result.status === "fulfilled") continue;
    assert.ok(fullCodes.includes(result.reason.code), result.reason.details);
  }
  return results.filter((result) => result.status === "fulfilled").length;
}

Deno.test("two controllers never overcommit a pool, on a router on which sessions take turns", async (t) => {
  for (let seed = 1; seed <= (wantsAll ? 6 : 2); seed++) {
    await t.step(`seed ${seed}`, async () => {
      const pools = [{ name: "storage-pool", sizeBytes }];
      // In a cluster without an election, several controllers may serve.
      await using cluster = await startClusterStack({
        simulator: { pools, behaviours: { interleave: true } },
      });
      const { stack } = cluster;
      const made = await fill(stack, seed);
      const bytes = await promised(stack);
      assert.ok(bytes <= sizeBytes, `promised=${bytes} size=${sizeBytes}`);
      assert.ok(made > 0, "something was made");
    });
  }
});
