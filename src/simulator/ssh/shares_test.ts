// Pools that the router shares over NFS, over SSH.
import assert from "node:assert/strict";
import { SshClient, startQuickly } from "../../../tests/support/simulated_router.ts";

const names = ':put [:serialize to=json value=[/file print as-value proplist=name where name~"^share/"]]';

/** A share with real folders, and a shell on the router. */
async function withShare(
  test: (
    share: { folder: string; say(command: string): Promise<string>; list(): Promise<string[]> },
  ) => Promise<void>,
  behaviours: { directoryRemoval?: "recursive" | "must-be-empty" } = {},
): Promise<void> {
  const backingDirectory = await Deno.makeTempDir();
  try {
    const pools = [{ name: "storage-pool" }, { name: "share", nfsSharing: true }];
    await using simulator = await startQuickly({
      backingDirectory,
      pools,
      behaviours,
      basePaths: ["/share"],
    });
    using client = await SshClient.connect(simulator);
    const say = async (command: string) => (await client.exec(command)).stdout;
    const list = async () =>
      (JSON.parse(await say(names)) as { name: string }[]).map(({ name }) => name).toSorted();
    await test({ folder: `${backingDirectory}/files/share`, say, list });
  } finally {
    await Deno.remove(backingDirectory, { recursive: true });
  }
}

Deno.test("a pool is shared and withdrawn with one word, which it shows only while it is shared", async () => {
  await using simulator = await startQuickly();
  using client = await SshClient.connect(simulator);
  const shows = async () =>
    (await client.exec(
      ':put [:serialize to=json value=[/disk print detail as-value where slot="storage-pool"]]',
    )).stdout
      .includes('"nfs-sharing":true');
  assert.equal(await shows(), false);
  await client.exec('/disk set [find where slot="storage-pool"] nfs-sharing="yes"');
  assert.equal(await shows(), true);
  await client.exec('/disk set [find where slot="storage-pool"] nfs-sharing="no"');
  assert.equal(await shows(), false);
});

Deno.test("what clients make and remove in a share is what the router lists", () =>
  withShare(async ({ folder, say, list }) => {
    await say('/file add type="directory" name="share/a"');
    await Deno.writeTextFile(`${folder}/a/from a client`, "12345");
    await Deno.symlink("/nowhere", `${folder}/a/link`);
    assert.deepEqual(await list(), ["share/a", "share/a/from a client", "share/a/link"]);
    assert.equal(await say(':put [/file get "share/a/from a client" size]'), "5\r\n");
    await Deno.remove(`${folder}/a/link`);
    assert.deepEqual(await list(), ["share/a", "share/a/from a client"]);
  }));

Deno.test("a directory is renamed and removed with what clients have put into it", () =>
  withShare(async ({ folder, say, list }) => {
    await say('/file add type="directory" name="share/a"');
    await Deno.mkdir(`${folder}/a/b`);
    await Deno.writeTextFile(`${folder}/a/b/c`, "x");
    await say('/file set [find where name="share/a"] name="share/gone"');
    assert.equal(await Deno.readTextFile(`${folder}/gone/b/c`), "x");
    assert.deepEqual(await list(), ["share/gone", "share/gone/b", "share/gone/b/c"]);
    await say('/file remove [find where name="share/gone"]');
    assert.deepEqual(await list(), []);
    assert.deepEqual(Array.from(Deno.readDirSync(folder)), []);
  }));

Deno.test("a router that removes only empty directories sees what clients have put into one", () =>
  withShare(async ({ folder, say, list }) => {
    await say('/file add type="directory" name="share/a"');
    await Deno.writeTextFile(`${folder}/a/c`, "x");
    assert.match(await say('/file remove [find where name="share/a"]'), /not empty/);
    assert.deepEqual(await list(), ["share/a", "share/a/c"]);
    await Deno.remove(`${folder}/a/c`);
    await say('/file remove [find where name="share/a"]');
    assert.deepEqual(await list(), []);
  }, { directoryRemoval: "must-be-empty" }));
