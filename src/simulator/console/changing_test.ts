import assert from "node:assert/strict";
import type { Behaviours } from "../behaviours.ts";
import {
  addCommand,
  jsonCommand,
  makeBasePath,
  makeRouter,
  typeTo,
  typing,
} from "../../../tests/support/simulated_router.ts";

async function disk(type: (command: string) => Promise<string>, slot: string) {
  return JSON.parse(await type(jsonCommand(`/disk print detail as-value where slot="${slot}"`)))[0];
}

Deno.test("a disk's path comes back with one leading slash, also in its model", async () => {
  const type = await typing();
  await type(
    '/disk add type="file" slot="a" file-path="storage-pool/metal-csi/a" file-size="1M" disabled="no"',
  );
  const { "file-path": path, model, size, "mount-filesystem": mount } = await disk(type, "a");
  assert.deepEqual({ path, model, size, mount }, {
    path: "/storage-pool/metal-csi/a",
    model: "/storage-pool/metal-csi/a",
    size: 1048576,
    mount: true,
  });
});

Deno.test("an export without port and NQN gets the default ones", async () => {
  const type = await typing();
  await type(addCommand("a", 'nvme-tcp-export="yes"'));
  const { "nvme-tcp-server-port": port, "nvme-tcp-server-nqn": nqn } = await disk(type, "a");
  assert.deepEqual({ port, nqn }, { port: 4420, nqn: "nqn.2000-02.com.mikrotik:a" });
});

Deno.test("a comment is compared and set in one command", async () => {
  const type = await typing();
  await type(addCommand("a", 'comment="old"'));
  const set = (expected: string) =>
    `/disk set [find where slot="a" and comment="${expected}"] comment="new" nvme-tcp-export="yes"`;
  assert.equal(await type(set("other")), "");
  assert.equal((await disk(type, "a")).comment, "old");
  assert.equal(await type(set("old")), "");
  assert.equal((await disk(type, "a")).comment, "new");
});

Deno.test("remove leaves the file, which can be removed when no disk uses it", async () => {
  const type = await typing();
  await type(addCommand("a", 'comment="c"'));
  const path = "storage-pool/metal-csi/a.img";
  const line = `/disk remove [find where slot="a" and comment="c"]; ` +
    `:if ([:len [/disk find where slot="a" or file-path="/${path}"]] = 0) ` +
    `do={/file remove [find where name="${path}"]}; :put [:len [/file find where name="${path}"]]`;
  assert.equal(await type(line.replace('comment="c"', 'comment="x"')), "1\r\n");
  assert.equal(await type(`/disk remove "a"; :put [:len [/file find where name="${path}"]]`), "1\r\n");
  assert.equal(await type(line), "0\r\n");
});

Deno.test("adding a disk on an existing file keeps the file's content", async () => {
  const type = await typing();
  await type(addCommand("a"));
  await type('/disk remove "a"');
  assert.equal(await type(addCommand("a").replace('file-size="1073741824" ', "")), "");
  assert.equal((await disk(type, "a")).size, 1073741824);
});

Deno.test("ids ascend and are never reused", async () => {
  const type = await typing();
  for (const slot of ["a", "b"]) await type(addCommand(slot));
  await type('/disk remove "b"');
  await type(addCommand("c"));
  assert.deepEqual([(await disk(type, "a"))[".id"], (await disk(type, "c"))[".id"]], ["*4", "*6"]);
});

Deno.test("ids are written in capital hexadecimal digits", async () => {
  const type = await typing();
  for (let number = 4; number <= 26; number++) await type(addCommand(`d-${number}`));
  assert.deepEqual([(await disk(type, "d-10"))[".id"], (await disk(type, "d-26"))[".id"]], ["*A", "*1A"]);
});

Deno.test("a list of names, an id and numbers= all name items", async () => {
  const type = await typing();
  for (const slot of ["a", "b"]) await type(addCommand(slot));
  await type("/disk set a,b comment=x; /disk set *4 disabled=yes; /disk set numbers=b disabled=yes");
  assert.equal(await type(':put [:len [/disk find where disabled comment="x"]]'), "2\r\n");
});

const refusals: readonly (readonly [command: string, refusal: string, behaviours?: Partial<Behaviours>])[] = [
  ['/disk add type="file" slot="b"', "failure: missing value of file-path"],
  ['/disk add slot="b"', "failure: missing value of type"],
  [addCommand("b").replace("metal-csi", "other"), "failure: no such directory storage-pool/other"],
  [addCommand("b").replace("/storage-pool/metal-csi", "/nowhere"), "failure: no such directory nowhere"],
  [addCommand("b").replace("/b.img", "/../b.img"), "failure: bad file path /storage-pool/metal-csi/../b.img"],
  [addCommand("b").replace("1073741824", "7301927047169"), "failure: not enough space", {
    allocation: "full",
  }],
  [addCommand("b").replace("1073741824", "1x"), "value of file-size contains invalid trailing characters"],
  [addCommand("b").replace("1073741824", "many"), "input does not match any value of file-size"],
  [addCommand("b", 'nvme-tcp-export="perhaps"'), "input does not match any value of nvme-tcp-export"],
  [addCommand("b", 'nvme-tcp-server-port="70000"'), "value of nvme-tcp-server-port out of range (1..65535)"],
  [
    addCommand("b", 'nvme-tcp-export="yes" nvme-tcp-server-nqn="nqn.a"'),
    "failure: already have such nvme-tcp-server-nqn",
  ],
  ['/disk set "a" file-size="1073741823"', "failure: can not make file smaller"],
  ['/disk remove "nvme1"', "failure: can not remove nvme1"],
  ['/file add type="directory" name="storage-pool/a/b"', "failure: no such directory storage-pool/a"],
  ['/file add type="socket" name="storage-pool/a"', "input does not match any value of type"],
  ['/file remove "storage-pool"', "failure: can not remove storage-pool"],
  ['/file remove "storage-pool/x"', "no such item"],
  [':put [:serialize to=xml value="a"]', "input does not match any value of to"],
  [':put [:serialize to=json options=foo value="a"]', "input does not match any value of options"],
];

for (const [command, refusal, behaviours] of refusals) {
  Deno.test(`${command} is refused with ${refusal}, and changes nothing`, async () => {
    const router = makeRouter({ ...(behaviours === undefined ? {} : { behaviours }) });
    const type = typeTo(router);
    await type(makeBasePath);
    const nqn = 'nvme-tcp-export="yes" nvme-tcp-server-nqn="nqn.a"';
    await type(addCommand("a", nqn));
    const before = [router.disks.list(), router.files.list(), router.subvolumes.list()];
    assert.equal(await type(command), `${refusal}\r\n`);
    assert.deepEqual([router.disks.list(), router.files.list(), router.subvolumes.list()], before);
  });
}

Deno.test("the ends of long comments and NQNs are cut off silently", async () => {
  const type = await typing({ maxComment: 5, maxNqn: 6 });
  await type(addCommand("a", 'comment="aaaaé" nvme-tcp-server-nqn="nqn.abcdef" nvme-tcp-export="yes"'));
  const { comment, "nvme-tcp-server-nqn": nqn } = await disk(type, "a");
  assert.deepEqual({ comment, nqn }, { comment: "aaaa", nqn: "nqn.ab" });
});

Deno.test("a disk whose file does not exist, or lies on a pool that is not mounted, is not resized", async () => {
  const grow = '/disk set "a" file-size="2147483648"';
  for (const hide of ["removed", "unmounted"] as const) {
    const router = makeRouter();
    const type = typeTo(router);
    await type(`${makeBasePath}; ${addCommand("a")}`);
    if (hide === "removed") router.files.remove("storage-pool/metal-csi/a.img");
    else router.files.hideOn("storage-pool", true);
    assert.equal(await type(grow), "no such item\r\n");
    assert.equal(router.disks.findBySlot("a")?.sizeBytes, 1073741824n);
  }
});

Deno.test("a file that is larger than its disk is cut to what the disk is given", async () => {
  const router = makeRouter();
  const type = typeTo(router);
  await type(`${makeBasePath}; ${addCommand("a")}`);
  const path = "storage-pool/metal-csi/a.img";
  router.files.resize(path, 4n << 30n);
  await type('/disk set "a" file-size="2147483648"');
  assert.equal(router.files.find(path)?.sizeBytes, 2n << 30n);
});

Deno.test("a file is copied and renamed", async () => {
  const type = await typing();
  await type(addCommand("a"));
  const folder = "storage-pool/metal-csi";
  await type(`/file copy "${folder}/a.img" name="${folder}/b.img"`);
  await type(`/file set "${folder}/b.img" name="${folder}/c.img"`);
  const names = JSON.parse(await type(jsonCommand("/file print as-value proplist=name where size>0")));
  assert.deepEqual(names.map((file: { name: string }) => file.name), [`${folder}/a.img`, `${folder}/c.img`]);
});

Deno.test("a directory is removed with everything in it", async () => {
  const type = await typing();
  await type(addCommand("a"));
  await type('/file remove [find where name="storage-pool/metal-csi"]');
  assert.equal(await type("/file print count-only proplist=name"), "1\r\n");
});
