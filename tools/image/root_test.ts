import assert from "node:assert/strict";
import { join } from "node:path";
import { ensureImageRoot } from "./root.ts";
import { makeScratch } from "../../tests/support/scratch.ts";

/** Makes a small root in the place of one of Debian's packages, and counts how often. */
function maker() {
  const state = { made: 0 };
  const make = async (_architecture: string, root: string) => {
    state.made++;
    await Deno.mkdir(join(root, "usr/bin"), { recursive: true });
    await Deno.writeTextFile(join(root, "usr/bin/tool"), "the tool", { mode: 0o755 });
    await Deno.symlink("usr/bin", join(root, "bin"));
  };
  return { state, make };
}

async function withCache(work: (cache: string) => Promise<void>): Promise<void> {
  await using scratch = await makeScratch();
  const cache = scratch.path;
  await work(cache);
}

Deno.test("ensureImageRoot() makes a root once, and leaves nothing else in the cache", () =>
  withCache(async (cache) => {
    const { state, make } = maker();
    const root = await ensureImageRoot("amd64", join(cache, "new"), make);
    assert.equal(await ensureImageRoot("amd64", join(cache, "new"), make), root);
    assert.equal(state.made, 1);
    const names = [...Deno.readDirSync(join(cache, "new"))].map(({ name }) => join(cache, "new", name));
    assert.deepEqual(names.toSorted(), [root, `${root}.sha256`]);
  }));

const changes: Readonly<Record<string, (root: string) => Promise<void>>> = {
  "one other byte": (root) => Deno.writeTextFile(join(root, "usr/bin/tool"), "the tooL"),
  "another mode": (root) => Deno.chmod(join(root, "usr/bin/tool"), 0o4755),
  "one more file": (root) => Deno.writeTextFile(join(root, "usr/more"), ""),
  "one less": (root) => Deno.remove(join(root, "usr/bin/tool")),
  "another target of a link": async (root) => {
    await Deno.remove(join(root, "bin"));
    await Deno.symlink("usr/sbin", join(root, "bin"));
  },
};

for (const [what, change] of Object.entries(changes)) {
  Deno.test(`ensureImageRoot() does not use a cached root with ${what}`, () =>
    withCache(async (cache) => {
      const { state, make } = maker();
      const root = await ensureImageRoot("amd64", cache, make);
      await change(root);
      await assert.rejects(
        ensureImageRoot("amd64", cache, make),
        /image-root-amd64-.* is not as it was made: remove it/,
      );
      assert.equal(state.made, 1);
      await Deno.remove(root, { recursive: true });
      assert.equal(await ensureImageRoot("amd64", cache, make), root);
    }));
}

Deno.test("ensureImageRoot() compares a root without a digest with one that it makes, and keeps it", () =>
  withCache(async (cache) => {
    const { state, make } = maker();
    const root = await ensureImageRoot("arm64", cache, make);
    const { ino } = await Deno.stat(root);
    await Deno.remove(`${root}.sha256`);
    assert.equal(await ensureImageRoot("arm64", cache, make), root);
    assert.deepEqual([state.made, (await Deno.stat(root)).ino], [2, ino]);
    await Deno.remove(`${root}.sha256`);
    await Deno.writeTextFile(join(root, "usr/bin/tool"), "other");
    await assert.rejects(ensureImageRoot("arm64", cache, make), /is not as it was made/);
  }));
