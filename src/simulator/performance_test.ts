import assert from "node:assert/strict";
import { addCommand, jsonCommand, makeRouter, typeTo } from "./simulator_test_support.ts";
import { plainSeed, seedDisks } from "./seed.ts";

const basePath = "/storage-pool/metal-csi";
const middle = "seed-05000";
const everything = jsonCommand("/disk print detail as-value");

function seeded(count: number) {
  const router = makeRouter();
  router.files.makeDirectories(basePath.slice(1));
  seedDisks(router, { ...plainSeed, basePath, count });
  return typeTo(router);
}

/** Milliseconds of the best of some runs: the machine may be busy with other things. */
async function best(act: () => Promise<unknown>): Promise<number> {
  let least = Infinity;
  for (let run = 0; run < 10; run++) {
    const start = performance.now();
    await act();
    least = Math.min(least, performance.now() - start);
  }
  return least;
}

const lookups: readonly (readonly [name: string, command: string])[] = [
  ["print by slot", jsonCommand(`/disk print detail as-value where slot="${middle}"`)],
  ["find by slot", `:put [:len [/disk find where slot="${middle}"]]`],
  ["find by slot and comment", `:put [:len [/disk find where slot="${middle}" and comment=""]]`],
  [
    "find by slot or path",
    `:put [:len [/disk find where slot="x" or file-path="${basePath}/${middle}.img"]]`,
  ],
  ["set by find", `/disk set [find where slot="${middle}"] comment="x"`],
  ["find a file", `:put [:len [/file find where name="${basePath.slice(1)}/${middle}.img"]]`],
];

Deno.test("among 10,000 disks one is found in under 5 ms, and far faster than all are listed", async () => {
  const type = seeded(10_000);
  const all = await best(() => type(everything));
  assert.ok(all < 1000, `the list took ${all} ms`);
  for (const [name, command] of lookups) {
    const one = await best(() => type(command));
    assert.ok(one < 5 && one < all / 5, `${name} took ${one} ms, the list ${all} ms`);
  }
});

Deno.test("a disk is added and removed among 10,000 in under 50 ms", async () => {
  const type = seeded(10_000);
  const took = await best(async () => {
    assert.equal(await type(addCommand("one-more")), "");
    const file = `${basePath.slice(1)}/one-more.img`;
    assert.equal(await type(`/disk remove [find where slot="one-more"]; /file remove "${file}"`), "");
  });
  assert.ok(took < 50, `${took} ms`);
});
