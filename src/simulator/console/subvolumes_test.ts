import assert from "node:assert/strict";
import {
  addCommand,
  jsonCommand,
  makeBasePath,
  makeRouter,
  typeTo,
  typing,
} from "../../../tests/support/simulated_router.ts";
import type { Behaviours } from "../behaviours.ts";
import type { Router } from "../model/router.ts";

const menu = "/disk/btrfs/subvolume";
const pool = "storage-pool";

/** The command that makes a subvolume. */
function add(name: string, more = ""): string {
  return `${menu}/add fs="storage-pool-fs" name="${name}"${more === "" ? "" : ` ${more}`}`;
}

/** The command that adds a disk with its file in a subvolume. */
function addDiskIn(subvolume: string, slot: string): string {
  return addCommand(slot).replace("/storage-pool/metal-csi/", `/${pool}/${subvolume}/`);
}

async function read(type: (command: string) => Promise<string>, where: string) {
  return JSON.parse(await type(jsonCommand(`${menu}/print detail as-value where ${where}`)));
}

function paths(router: Router): string[] {
  return router.files.list().map(({ path }) => path);
}

Deno.test("every Btrfs file system has the default subvolume <FS_ROOT>", async () => {
  const type = await typing();
  assert.equal(
    await type(
      jsonCommand(`${menu}/print detail as-value proplist=default,fs,name,fullname,subvolume-id,top-level`),
    ),
    '[{".id":"*1","default":true,"fs":"storage-pool-fs","fullname":"<FS_ROOT>","name":"<FS_ROOT>",' +
      '"subvolume-id":5}]\r\n',
  );
  assert.equal(await type(`${menu}/remove "<FS_ROOT>"`), "failure: can not remove <FS_ROOT>\r\n");
});

Deno.test("a subvolume shows its label, its last name and its full name, and appears in /file as a directory", async () => {
  const type = await typing();
  await type(add("metal-csi/vol"));
  const [made] = await read(type, 'fullname="metal-csi/vol"');
  assert.match(made.uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
  delete made.uuid;
  assert.deepEqual(made, {
    ".id": "*2",
    "creation-time": "2026-01-01 00:00:00",
    fs: "storage-pool-fs",
    fullname: "metal-csi/vol",
    generation: 12,
    mount: false,
    name: "vol",
    "subvolume-id": 256,
    "top-level": "<FS_ROOT>",
  });
  const files = jsonCommand('/file print as-value proplist=name,type where name~"vol"');
  assert.equal(await type(files), `[{".id":"*3","name":"${pool}/metal-csi/vol","type":"directory"}]\r\n`);
});

Deno.test("a snapshot contains the files of its parent as they are at that moment, and nothing of later", async () => {
  const router = makeRouter();
  const type = typeTo(router);
  await type(`${add("vol")}; ${addDiskIn("vol", "a")}`);
  assert.equal(await type(add("snap", 'parent="vol" read-only="yes"')), "");
  await type(`${addDiskIn("vol", "b")}; /disk set "a" file-size="2147483648"`);
  assert.deepEqual(paths(router), [
    pool,
    `${pool}/snap`,
    `${pool}/snap/a.img`,
    `${pool}/vol`,
    `${pool}/vol/a.img`,
    `${pool}/vol/b.img`,
  ]);
  assert.equal(router.files.find(`${pool}/snap/a.img`)?.sizeBytes, 1n << 30n);
  const [snapshot] = await read(type, 'name="snap"');
  assert.deepEqual(
    [snapshot.snapshot, snapshot["read-only"], snapshot.parent, snapshot.fullname],
    [true, true, "vol", "snap"],
  );
  assert.deepEqual((await read(type, 'name="vol"'))[0].snapshots, ["snap"]);
});

Deno.test("a snapshot does not contain a subvolume inside its parent", async () => {
  const router = makeRouter();
  const type = typeTo(router);
  await type(`${add("a")}; ${add("a/b")}; ${addDiskIn("a", "x")}; ${addDiskIn("a/b", "y")}`);
  await type(add("c", 'parent="a"'));
  assert.deepEqual(paths(router).filter((path) => path.startsWith(`${pool}/c`)), [
    `${pool}/c`,
    `${pool}/c/b`,
    `${pool}/c/x.img`,
  ]);
  assert.equal(router.files.find(`${pool}/c/b`)?.kind, "directory");
});

Deno.test("a snapshot whose parent is gone keeps its files and reports no parent", async () => {
  const type = await typing();
  await type(`${add("vol")}; ${addDiskIn("vol", "a")}; ${add("snap", 'parent="vol" read-only="yes"')}`);
  await type(`${add("clone", 'parent="snap"')}; ${menu}/remove [find where fullname="snap"]`);
  const [clone] = await read(type, 'fullname="clone"');
  assert.deepEqual([clone.snapshot, clone.parent, clone["read-only"]], [true, undefined, undefined]);
  assert.equal(await type(`:put [:len [/file find where name="${pool}/clone/a.img"]]`), "1\r\n");
});

const parents: readonly (readonly [name: string, parent: string, result: string])[] = [
  ["its full name", "metal-csi/vol", ""],
  ["its name", "vol", ""],
  ["a name that two have", "twin", "input does not match any value of parent\r\n"],
  ["a full name, also when another one has it as its name", "a", ""],
  ["a name that none has", "nobody", "input does not match any value of parent\r\n"],
];

for (const [name, parent, result] of parents) {
  Deno.test(`parent accepts ${name}`, async () => {
    const type = await typing();
    await type(
      `${add("metal-csi/vol")}; ${add("metal-csi/twin")}; ${add("a")}; ${add("a/twin")}; ${add("a/a")}`,
    );
    assert.equal(await type(add("new", `parent="${parent}"`)), result);
    if (result === "") {
      const [made] = await read(type, 'fullname="new"');
      assert.equal(made.parent, parent === "vol" ? "metal-csi/vol" : parent);
    }
  });
}

const refusals: readonly (readonly [command: string, refusal: string, behaviours?: Partial<Behaviours>])[] = [
  [`${menu}/add fs="storage-pool" name="v"`, "failure: not btrfs: storage-pool"],
  [`${menu}/add fs="storage-pool-fs"`, "failure: missing value of name"],
  [`${menu}/add name="v"`, "failure: missing value of fs"],
  [add("vol"), "failure: already have such subvolume"],
  [add("metal-csi"), "failure: already have such subvolume"],
  [add("nowhere/v"), "failure: no such directory storage-pool/nowhere"],
  [add("vol/a.img/v"), "failure: no such directory storage-pool/vol/a.img"],
  [add("../v"), "failure: bad file path ../v"],
  [add("metal-csi/v"), "input does not match any value of name", { subvolumeNames: "flat" }],
  [add("snap/v"), "failure: read-only file system"],
  [add("v", 'read-only="perhaps"'), "input does not match any value of read-only"],
  [`${menu}/remove [find where fullname="outer"]`, "failure: can not remove outer"],
  [`${menu}/remove "free"`, "failure: can not remove free", { subvolumeParent: "held" }],
  [`${menu}/remove "nobody"`, "no such item"],
  [`${menu}/set "<FS_ROOT>" read-only="yes"`, "input does not match any value of read-only"],
  [`/file remove "${pool}/vol"`, "failure: can not remove storage-pool/vol"],
  [`/file remove "${pool}/metal-csi"`, "failure: can not remove storage-pool/metal-csi"],
  [`/file set "${pool}/vol" name="${pool}/x"`, "failure: can not remove storage-pool/vol"],
  [`/file set "${pool}/metal-csi" name="${pool}/x"`, "failure: can not remove storage-pool/metal-csi"],
  [
    `/file set "${pool}/vol/a.img" name="${pool}/a.img"`,
    "failure: can not move storage-pool/vol/a.img to another filesystem",
  ],
  [addDiskIn("snap", "x"), "failure: read-only file system"],
  [addDiskIn("snap", "x").replace("/x.img", "/a.img"), "failure: read-only file system"],
  [`/file remove "${pool}/snap/a.img"`, "failure: read-only file system"],
  [`/file set "${pool}/snap/a.img" name="${pool}/snap/b.img"`, "failure: read-only file system"],
  [`/file add type="directory" name="${pool}/snap/d"`, "failure: read-only file system"],
  [`/file copy "${pool}/vol/a.img" name="${pool}/snap/b.img"`, "failure: read-only file system"],
];

for (const [command, refusal, behaviours] of refusals) {
  Deno.test(`${command} is refused with ${refusal}, and changes nothing`, async () => {
    const router = makeRouter();
    const type = typeTo(router);
    await type(`${makeBasePath}; ${add("vol")}; ${addDiskIn("vol", "a")}`);
    await type(`${add("snap", 'parent="vol" read-only="yes"')}; ${add("outer")}; ${add("outer/inner")}`);
    await type(`${add("metal-csi/in")}; ${add("free")}; ${add("free-snap", 'parent="free"')}`);
    router.configure(undefined, behaviours ?? {});
    const before = [router.disks.list(), router.files.list(), router.subvolumes.list()];
    assert.equal(await type(command), `${refusal}\r\n`);
    assert.deepEqual([router.disks.list(), router.files.list(), router.subvolumes.list()], before);
  });
}

Deno.test("a disk on a file that became read-only cannot be resized", async () => {
  const type = await typing();
  await type(`${add("vol")}; ${addDiskIn("vol", "a")}; ${menu}/set "vol" read-only="yes"`);
  assert.equal(await type('/disk set "a" file-size="2147483648"'), "failure: read-only file system\r\n");
  await type(`${menu}/set "vol" read-only="no"`);
  assert.equal(await type('/disk set "a" file-size="2147483648"'), "");
});

const removals: readonly (readonly [name: string, command: string, behaviours: Partial<Behaviours>])[] = [
  ["a subvolume whose files a disk uses", `${menu}/remove "vol"`, {}],
  ["a subvolume of which there is a snapshot", `${menu}/remove "free"`, { subvolumeParent: "free" }],
  ["a read-only snapshot", `${menu}/remove [find where fullname="snap"]`, {}],
];

for (const [name, command, behaviours] of removals) {
  Deno.test(`${name} is removed with all its files`, async () => {
    const router = makeRouter({ behaviours });
    const type = typeTo(router);
    await type(`${add("vol")}; ${addDiskIn("vol", "a")}; ${add("snap", 'parent="vol" read-only="yes"')}`);
    await type(`${add("free")}; ${add("free-snap", 'parent="free"')}`);
    const gone = `${pool}/${/"([a-z]+)"/.exec(command)?.[1]}`;
    const kept = paths(router).filter((path) => path !== gone && !path.startsWith(`${gone}/`));
    assert.equal(await type(command), "");
    assert.deepEqual(paths(router), kept);
    assert.equal(router.subvolumes.find(gone), undefined);
  });
}

Deno.test("a snapshot takes no space until one of the two is written to, and keeps what the other overwrites", async () => {
  const router = makeRouter();
  const type = typeTo(router);
  const free = async () => 7301927047168 - Number(await type(`:put [/disk get "${pool}" free]`));
  await type(`${add("vol")}; ${addDiskIn("vol", "a")}`);
  router.backing.pretendWritten?.(`${pool}/vol/a.img`, 1000n);
  await type(add("snap", 'parent="vol" read-only="yes"'));
  assert.equal(await free(), 1000);
  router.backing.pretendWritten?.(`${pool}/vol/a.img`, 1500n);
  assert.equal(await free(), 1500);
  await type(add("clone", 'parent="vol"'));
  assert.equal(await free(), 1500);
  await type(`/disk remove "a"; ${menu}/remove "vol"`);
  assert.equal(await free(), 1500);
  await type(`${menu}/remove "clone"`);
  assert.equal(await free(), 1000);
  await type(`${menu}/remove "snap"`);
  assert.equal(await free(), 0);
});

Deno.test("the subvolumes of a pool that is not mounted are not visible", async () => {
  const router = makeRouter();
  const type = typeTo(router);
  await type(add("vol"));
  const disk = router.disks.findBySlot(pool)!;
  router.disks.replace({ ...disk, pool: { ...disk.pool!, mounted: false } });
  assert.equal(await type(jsonCommand(`${menu}/print as-value`)), "[]\r\n");
  assert.equal(await type(`:put [:len [${menu}/find where fullname="vol"]]`), "0\r\n");
});
