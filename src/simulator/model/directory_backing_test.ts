import assert from "node:assert/strict";
import { addCommand, makeBasePath, makeRouter, typeTo } from "../../../tests/support/simulated_router.ts";
import { DirectoryBacking } from "./directory_backing.ts";
import { makeScratch } from "../../../tests/support/scratch.ts";

async function withRouter(test: (type: ReturnType<typeof typeTo>, folder: string) => Promise<void>) {
  await using scratch = await makeScratch();
  const folder = scratch.path;
  const type = typeTo(makeRouter({ backing: new DirectoryBacking(folder) }));
  await type(makeBasePath);
  await test(type, `${folder}/storage-pool/metal-csi`);
}

Deno.test("a disk is a real sparse file that grows, is renamed and is removed with it", async () => {
  await withRouter(async (type, folder) => {
    await type(addCommand("a").replace("1073741824", "1099511627776"));
    const made = await Deno.stat(`${folder}/a.img`);
    assert.deepEqual([made.size, (made.blocks ?? 0) * 512 < 1 << 20], [1099511627776, true]);
    await type('/disk set "a" file-size="2199023255552"');
    assert.equal((await Deno.stat(`${folder}/a.img`)).size, 2199023255552);
    await type('/disk remove "a"');
    assert.equal((await Deno.stat(`${folder}/a.img`)).isFile, true);
    await type('/file set "storage-pool/metal-csi/a.img" name="storage-pool/metal-csi/b.img"');
    assert.equal((await Deno.stat(`${folder}/b.img`)).isFile, true);
    await type('/file remove "storage-pool/metal-csi/b.img"');
    assert.deepEqual(Array.from(Deno.readDirSync(folder)), []);
  });
});

Deno.test("free space falls by the written data", async () => {
  await using scratch = await makeScratch();
  const folder = scratch.path;
  const backing = new DirectoryBacking(folder);
  const router = makeRouter({ backing });
  const type = typeTo(router);
  await type(makeBasePath);
  await type(addCommand("a"));
  const path = `${folder}/storage-pool/metal-csi/a.img`;
  using file = await Deno.open(path, { write: true });
  await file.write(new Uint8Array(1 << 20).fill(1));
  await file.syncData();
  const free = await type(':put [/disk get "storage-pool" free]');
  const taken = 7301927047168n - BigInt(free.trim());
  assert.equal(taken >= 1n << 20n && taken < 1n << 22n, true, `${taken}`);
});

Deno.test("a copy holds the same bytes and the same holes", async () => {
  await withRouter(async (type, folder) => {
    await type(addCommand("a").replace("1073741824", "16777216"));
    using file = await Deno.open(`${folder}/a.img`, { write: true });
    await file.seek(5 << 20, Deno.SeekMode.Start);
    await file.write(new TextEncoder().encode("content"));
    await type('/file copy "storage-pool/metal-csi/a.img" name="storage-pool/metal-csi/b.img"');
    const copy = await Deno.readFile(`${folder}/b.img`);
    assert.equal(copy.length, 16777216);
    assert.deepEqual(copy, await Deno.readFile(`${folder}/a.img`));
    assert.equal(((await Deno.stat(`${folder}/b.img`)).blocks ?? 0) * 512 < 4 << 20, true);
  });
});

Deno.test("files of an earlier run exist again, without disks", async () => {
  await using scratch = await makeScratch();
  const folder = scratch.path;
  const first = typeTo(makeRouter({ backing: new DirectoryBacking(folder) }));
  await first(makeBasePath);
  await first(addCommand("a"));
  const second = typeTo(makeRouter({ backing: new DirectoryBacking(folder) }));
  assert.equal(await second(':put [/file get "storage-pool/metal-csi/a.img" size]'), "1073741824\r\n");
  assert.equal(await second(':put [:len [/disk find where slot="a"]]'), "0\r\n");
});
