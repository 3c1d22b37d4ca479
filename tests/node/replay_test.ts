import assert from "node:assert/strict";
import { isReadOnlyDevice } from "../../src/filesystem/contents.ts";
import { refusal } from "../fakes/refusal.ts";
import { call, checksum, ext4, nodeTest, type RealNode, run, TestVolume, xfs } from "./harness.ts";
import { mountsUnder } from "../support/left_here.ts";

const files = 1_000;

/** The image of a mounted file system with synced files, most of which are only in its log. */
async function imageOfMounted(node: RealNode, capability: typeof ext4): Promise<TestVolume> {
  const volume = new TestVolume(node, "pvc-1");
  await node.stage(volume, { capability });
  // Files from before the log are visible in any case.
  await run("sync", "-f", node.staging("pvc-1"));
  for (let number = 0; number < files; number++) {
    using file = await Deno.open(`${node.staging("pvc-1")}/${number}`, { write: true, create: true });
    await file.write(new TextEncoder().encode(`file ${number}`));
    await file.sync();
  }
  const copy = new TestVolume(node, "pvc-2");
  await run("cp", "--sparse=always", volume.image, copy.image);
  await node.unstage(volume);
  copy.mayFormat = false;
  copy.readOnly = true;
  return copy;
}

async function assertAllThere(node: RealNode): Promise<void> {
  for (let number = 0; number < files; number++) {
    assert.equal(await Deno.readTextFile(`${node.staging("pvc-2")}/${number}`), `file ${number}`);
  }
}

for (const capability of [ext4, xfs]) {
  const { filesystem } = capability as { filesystem: string };

  nodeTest(`${filesystem}: a read-only stage shows all synced files, or waits`, async (node) => {
    const copy = await imageOfMounted(node, capability);
    const before = await checksum(copy.image);
    for (let i = 0; i < 2; i++) {
      await assert.rejects(
        node.stage(copy, { capability }),
        refusal("unavailable", /log was not replayed.*volume=pvc-2/),
      );
      assert.deepEqual(mountsUnder(node.folder), []);
      assert.deepEqual(await node.deps.connector.connected(call()), []);
    }
    assert.equal(await checksum(copy.image), before);

    copy.mayReplay = true;
    await node.stage(copy, { capability });
    await assertAllThere(node);
    const found = (await node.deps.connector.find(copy.nqn, call()))!;
    assert.equal(isReadOnlyDevice(node.libc, found), true);
    const replayed = await checksum(copy.image);
    await node.stage(copy, { capability });
    assert.deepEqual(mountsUnder(node.folder), [node.staging("pvc-2")]);
    await node.unstage(copy);

    // For a later reader, or a later stage, the log is empty, and nothing is written any more.
    copy.mayReplay = false;
    await node.stage(copy, { capability });
    await assertAllThere(node);
    await node.unstage(copy);
    assert.equal(await checksum(copy.image), replayed);
  });

  nodeTest(
    `${filesystem}: a stage continues after a crash between the replay and the mount`,
    async (node) => {
      const copy = await imageOfMounted(node, capability);
      copy.mayReplay = true;
      const { mounts } = node.deps;
      const { unmount } = mounts;
      mounts.unmount = () => Promise.reject(new Error("killed"));
      await assert.rejects(node.stage(copy, { capability }), /killed/);
      mounts.unmount = unmount.bind(mounts);
      assert.deepEqual(mountsUnder(node.folder), [node.staging("pvc-2")]);
      await node.stage(copy, { capability });
      await assertAllThere(node);
      const options = await run("findmnt", "-n", "-o", "OPTIONS", node.staging("pvc-2"));
      assert.match(options, /norecovery|noload/);
      await node.unstage(copy);
    },
  );
}
