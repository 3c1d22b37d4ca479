import assert from "node:assert/strict";
import { btrfsTest, run } from "../../../tests/support/btrfs.ts";
import {
  addCommand,
  jsonCommand,
  makeRouter,
  typeTo,
  type Typing,
} from "../../../tests/support/simulated_router.ts";
import { DirectoryBacking } from "./directory_backing.ts";
import { makeScratch } from "../../../tests/support/scratch.ts";

const menu = "/disk/btrfs/subvolume";

function add(name: string, more = ""): string {
  return `${menu}/add fs="storage-pool-fs" name="${name}" ${more}`.trim();
}

function addDiskIn(subvolume: string, slot: string): string {
  return addCommand(slot).replace("metal-csi", subvolume).replace("1073741824", "33554432");
}

/** Registers a test that runs on a plain folder, and on a real Btrfs. */
function backedTest(name: string, use: (type: Typing, folder: string) => Promise<void>): void {
  const onBacking = async (folder: string) => {
    await use(typeTo(makeRouter({ backing: new DirectoryBacking(folder) })), `${folder}/storage-pool`);
  };
  btrfsTest(`${name}, on Btrfs`, onBacking);
  Deno.test(`${name}, in a plain folder`, async () => {
    await using scratch = await makeScratch();
    const folder = scratch.path;
    await onBacking(folder);
  });
}

async function write(path: string, offset: number, text: string): Promise<void> {
  using file = await Deno.open(path, { write: true });
  await file.seek(offset, Deno.SeekMode.Start);
  await file.write(new TextEncoder().encode(text));
}

async function readAt(path: string, offset: number): Promise<string> {
  using file = await Deno.open(path);
  await file.seek(offset, Deno.SeekMode.Start);
  const bytes = new Uint8Array(5);
  await file.read(bytes);
  return new TextDecoder().decode(bytes);
}

backedTest(
  "a snapshot keeps the bytes of its moment, and a clone of it goes its own way",
  async (type, pool) => {
    assert.equal(await type(`${add("vol")}; ${addDiskIn("vol", "a")}`), "");
    await write(`${pool}/vol/a.img`, 1 << 20, "first");
    assert.equal(await type(add("snap", 'parent="vol" read-only="yes"')), "");
    await write(`${pool}/vol/a.img`, 1 << 20, "later");
    assert.equal(await type(add("clone", 'parent="snap"')), "");
    await write(`${pool}/clone/a.img`, 1 << 20, "clone");
    const contents = ["vol", "snap", "clone"].map((name) => readAt(`${pool}/${name}/a.img`, 1 << 20));
    assert.deepEqual(await Promise.all(contents), ["later", "first", "clone"]);
    assert.equal((await Deno.stat(`${pool}/snap/a.img`)).size, 33554432);
  },
);

backedTest("a subvolume in a subvolume is an empty directory in a snapshot", async (type, pool) => {
  await type(
    `${add("a")}; ${add("a/b")}; ${
      addDiskIn("a/b", "x")
    }; /file add type="directory" name="storage-pool/a/d"`,
  );
  assert.equal(await type(add("c", 'parent="a"')), "");
  assert.deepEqual(Array.from(Deno.readDirSync(`${pool}/c`), ({ name }) => name).toSorted(), ["b", "d"]);
  assert.deepEqual(Array.from(Deno.readDirSync(`${pool}/c/b`)), []);
});

backedTest("a removed subvolume is gone with its files, a snapshot of it stays", async (type, pool) => {
  await type(`${add("vol")}; ${addDiskIn("vol", "a")}; ${add("snap", 'parent="vol" read-only="yes"')}`);
  assert.equal(await type(`/disk remove "a"; ${menu}/remove "vol"`), "");
  assert.deepEqual(Array.from(Deno.readDirSync(pool), ({ name }) => name), ["snap"]);
  assert.equal(await type(`${menu}/remove "snap"`), "");
  assert.deepEqual(Array.from(Deno.readDirSync(pool)), []);
});

backedTest("a copied file has the same bytes and changes independently", async (type, pool) => {
  await type(`${add("vol")}; ${addDiskIn("vol", "a")}`);
  await write(`${pool}/vol/a.img`, 5, "first");
  assert.equal(await type('/file copy "storage-pool/vol/a.img" name="storage-pool/b.img"'), "");
  await write(`${pool}/b.img`, 5, "later");
  assert.deepEqual([await readAt(`${pool}/vol/a.img`, 5), await readAt(`${pool}/b.img`, 5)], [
    "first",
    "later",
  ]);
  assert.equal((await Deno.stat(`${pool}/b.img`)).size, 33554432);
});

btrfsTest("subvolumes are real ones, and read-only snapshots refuse every write", async (folder) => {
  const type = typeTo(makeRouter({ backing: new DirectoryBacking(folder) }));
  await type(`${add("vol")}; ${addDiskIn("vol", "a")}; ${add("snap", 'parent="vol" read-only="yes"')}`);
  assert.equal((await Deno.stat(`${folder}/storage-pool/vol`)).ino, 256);
  await assert.rejects(Deno.writeTextFile(`${folder}/storage-pool/snap/x`, ""), /Read-only file system/);
  await type(`${menu}/set "snap" read-only="no"`);
  await Deno.writeTextFile(`${folder}/storage-pool/snap/x`, "");
});

btrfsTest("a snapshot and a reflink take no space of their own, a full copy does", async (folder) => {
  const router = makeRouter({ backing: new DirectoryBacking(folder) });
  const type = typeTo(router);
  await type(`${add("vol")}; ${addDiskIn("vol", "a")}`);
  await Deno.writeFile(`${folder}/storage-pool/vol/a.img`, new Uint8Array(32 << 20).fill(7));
  const used = async () => {
    await run("sync", "--file-system", folder);
    return Number((await run("df", "--block-size=1", "--output=used", folder)).split("\n")[1]);
  };
  const before = await used();
  await type(add("snap", 'parent="vol" read-only="yes"'));
  await type('/file copy "storage-pool/vol/a.img" name="storage-pool/b.img"');
  assert.ok(await used() - before < 1 << 20);
  router.configure(undefined, { allocation: "full" });
  await type('/file copy "storage-pool/vol/a.img" name="storage-pool/c.img"');
  assert.ok(await used() - before > 31 << 20);
});

btrfsTest("a file system that is really full refuses a copy, and leaves it unfinished", async (folder) => {
  const router = makeRouter({ backing: new DirectoryBacking(folder), behaviours: { allocation: "full" } });
  const type = typeTo(router);
  await type(`${add("vol")}; ${addDiskIn("vol", "a").replace("33554432", "167772160")}`);
  const image = await Deno.open(`${folder}/storage-pool/vol/a.img`, { write: true });
  for (let block = 0; block < 160; block++) await image.write(crypto.getRandomValues(new Uint8Array(65536)));
  for (let block = 0; block < 2400; block++) await image.write(new Uint8Array(65536).fill(block + 1));
  image.close();
  const copy = '/file copy "storage-pool/vol/a.img" name="storage-pool/b.img"';
  assert.equal(await type(copy), "failure: not enough space\r\n");
  assert.equal(router.files.isPartial(router.files.find("storage-pool/b.img")!), true);
});

btrfsTest(
  "what was written through a loop device is in a snapshot, everything up to one moment",
  async (folder) => {
    const type = typeTo(makeRouter({ backing: new DirectoryBacking(folder) }));
    await type(`${add("vol")}; ${addDiskIn("vol", "a")}`);
    const device = await run("losetup", "--find", "--show", `${folder}/storage-pool/vol/a.img`);
    const blocks = `${folder}/blocks`;
    await Deno.writeTextFile(
      blocks,
      Array.from({ length: 4000 }, (_, i) => String(i).padStart(512, "0")).join(""),
    );
    // One block after the other, each synced: a snapshot may end anywhere, but never with a hole.
    const writer = new Deno.Command("dd", {
      args: [`if=${blocks}`, `of=${device}`, "bs=512", "oflag=sync"],
      stdout: "null",
      stderr: "null",
    }).spawn();
    const lengths: number[] = [];
    let ended = false;
    writer.status.then(() => ended = true);
    try {
      for (let number = 0; number < 5; number++) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        assert.equal(await type(add(`snap-${number}`, 'parent="vol" read-only="yes"')), "");
        const image = await Deno.readFile(`${folder}/storage-pool/snap-${number}/a.img`);
        const filled = Array.from({ length: 4000 }, (_, index) => image[512 * index] !== 0);
        const written = filled.lastIndexOf(true) + 1;
        lengths.push(written);
        assert.equal(filled.indexOf(false), written === 4000 ? -1 : written);
        const last = new TextDecoder().decode(image.subarray(512 * (written - 1), 512 * written));
        if (written > 0) assert.equal(Number(last), written - 1);
      }
      assert.ok(lengths.some((length) => length > 0 && length < 4000), `${lengths}`);
    } finally {
      if (!ended) writer.kill();
      await writer.status;
      await run("losetup", "--detach", device);
    }
  },
);

btrfsTest("subvolumes of an earlier run exist again, with the sources of snapshots", async (folder) => {
  const first = typeTo(makeRouter({ backing: new DirectoryBacking(folder) }));
  await first(`${add("vol")}; ${addDiskIn("vol", "a")}; ${add("snap", 'parent="vol" read-only="yes"')}`);
  const second = typeTo(makeRouter({ backing: new DirectoryBacking(folder) }));
  const shown = JSON.parse(
    await second(jsonCommand(`${menu}/print as-value proplist=fullname,parent,read-only where !default`)),
  );
  assert.deepEqual(
    shown.map((one: Record<string, unknown>) => [one.fullname, one.parent, one["read-only"]]),
    [
      ["snap", "vol", true],
      ["vol", undefined, undefined],
    ],
  );
  assert.equal(await second(`${menu}/remove "snap"; ${menu}/remove "vol"`), "");
});
