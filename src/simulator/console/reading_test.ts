import assert from "node:assert/strict";
import { addCommand, jsonCommand, typing } from "../../../tests/support/simulated_router.ts";

const exported =
  'nvme-tcp-export="yes" nvme-tcp-server-port="4420" nvme-tcp-server-nqn="nqn.x:a:1" comment="a c"';

Deno.test("an exported disk as JSON has the keys and types of a router", async () => {
  const type = await typing();
  await type(addCommand("a", exported));
  assert.equal(
    await type(jsonCommand('/disk print detail as-value where slot="a"')),
    '[{".id":"*4","block-device":true,"comment":"a c","file-offset":0,' +
      '"file-path":"/storage-pool/metal-csi/a.img","file-size":1073741824,"fs":"-",' +
      '"model":"/storage-pool/metal-csi/a.img","mount-filesystem":false,"nvme-tcp-export":true,' +
      '"nvme-tcp-server-allow-host-name":"","nvme-tcp-server-nqn":"nqn.x:a:1","nvme-tcp-server-port":4420,' +
      '"sector-size":512,"size":1073741824,"slot":"a","type":"file"}]\r\n',
  );
});

Deno.test("a disk that was never exported has neither port nor NQN, and without a comment no comment", async () => {
  const type = await typing();
  await type(addCommand("a"));
  const [disk] = JSON.parse(await type(jsonCommand('/disk print detail as-value where slot="a"')));
  assert.equal(disk["nvme-tcp-export"], false);
  const absent = ["nvme-tcp-server-port", "nvme-tcp-server-nqn", "comment", "mounted", "disabled"];
  assert.deepEqual(absent.filter((name) => name in disk), []);
});

Deno.test("a pool as JSON has the keys and types of a router", async () => {
  const type = await typing();
  assert.equal(
    await type(jsonCommand("/disk print detail as-value where mounted")),
    '[{".id":"*3","block-device":true,"free":7301927047168,"fs":"btrfs","fs-label":"storage-pool-fs",' +
      '"mount-point":"storage-pool","mounted":true,"size":7681574174720,"slot":"storage-pool","state":"clean",' +
      '"type":"raid","use":5}]\r\n',
  );
});

Deno.test("no match is an empty list", async () => {
  const type = await typing();
  assert.equal(await type(jsonCommand('/disk print detail as-value where slot="x"')), "[]\r\n");
});

Deno.test("a client's framed read proves that its line is complete", async () => {
  const type = await typing();
  const inner = "[:serialize to=json options=json.no-string-conversion value=[/disk print detail as-value " +
    'proplist=slot,size where slot="storage-pool"]]';
  assert.equal(
    await type(`:put ("n0 ".${inner}." n")`),
    'n0 [{".id":"*3","size":7681574174720,"slot":"storage-pool"}] n\r\n',
  );
});

Deno.test("without its option :serialize turns texts that look like numbers into numbers", async () => {
  const type = await typing();
  await type(addCommand("2048"));
  const command =
    ':put [:serialize to=json value=[/disk print as-value proplist=slot,size where slot="2048"]]';
  assert.equal(await type(command), '[{".id":"*4","size":1073741824,"slot":2048.000000}]\r\n');
});

Deno.test("JSON escapes what it must", async () => {
  const type = await typing();
  const text = String.raw`:put [:serialize to=json value="a\"b\\c\nd/e"]`;
  assert.equal(await type(text), '"a\\"b\\\\c\\nd/e"\r\n');
});

Deno.test("proplist restricts an item to the properties named, and its id", async () => {
  const type = await typing();
  const command = jsonCommand("/disk print detail as-value proplist=slot,mounted,free where mounted");
  assert.equal(
    await type(command),
    '[{".id":"*3","free":7301927047168,"mounted":true,"slot":"storage-pool"}]\r\n',
  );
});

Deno.test("proplist with a property that does not exist is refused", async () => {
  const type = await typing();
  const command = jsonCommand("/disk print as-value proplist=slot,foo");
  assert.equal(await type(command), "input does not match any value of proplist\r\n");
});

Deno.test("as-value without detail reports the columns of the table", async () => {
  const type = await typing();
  await type(addCommand("a"));
  assert.equal(
    await type(':put [/disk print as-value where slot="a"]'),
    ".id=*4;slot=a;model=/storage-pool/metal-csi/a.img;size=1073741824;fs=-\r\n",
  );
});

Deno.test("count-only counts", async () => {
  const type = await typing();
  await type(addCommand("a"));
  assert.equal(await type('/disk print count-only without-paging where type="file"'), "1\r\n");
});

Deno.test("get gives one property of an item", async () => {
  const type = await typing();
  assert.equal(await type(':put [/disk get [find where slot="storage-pool"] size]'), "7681574174720\r\n");
  assert.equal(await type(':put [/disk get "storage-pool" value-name=state]'), "clean\r\n");
  assert.equal(await type(":put [/system resource get board-name]"), "RDS2216\r\n");
  assert.equal(
    await type(':put [/disk get "storage-pool" foo]'),
    "input does not match any value of value-name\r\n",
  );
  assert.equal(await type(':put [/disk get "x" size]'), "no such item\r\n");
});

Deno.test("the resource menu is one object", async () => {
  const type = await typing();
  assert.equal(
    await type(jsonCommand("/system resource print as-value")),
    '{"architecture-name":"arm64","board-name":"RDS2216","cpu":"ARM64","cpu-count":16,"cpu-load":1,' +
      '"free-memory":32212254720,"platform":"MikroTik","total-memory":34359738368,"uptime":"2w1d03:04:05",' +
      '"version":"7.24.4 (stable)"}\r\n',
  );
});

Deno.test("the packages are a list, each with a version and whether it is disabled", async () => {
  const type = await typing();
  assert.equal(
    await type(jsonCommand("/system package print detail as-value")),
    '[{".id":"*1","disabled":false,"name":"rose-storage","version":"7.24.4"},' +
      '{".id":"*2","disabled":false,"name":"routeros","version":"7.24.4"}]\r\n',
  );
});

Deno.test("files are found by name, without a leading slash", async () => {
  const type = await typing();
  await type(addCommand("a"));
  const where =
    'name="storage-pool/metal-csi/a.img" or name="storage-pool/metal-csi" or name="/storage-pool"';
  assert.equal(
    await type(jsonCommand(`/file print detail as-value proplist=name,type,size where ${where}`)),
    '[{".id":"*2","name":"storage-pool/metal-csi","type":"directory"},' +
      '{".id":"*3","name":"storage-pool/metal-csi/a.img","size":1073741824,"type":".img file"}]\r\n',
  );
});

Deno.test("an unguarded print of files includes the contents of small ones", async () => {
  const type = await typing();
  await type('/file add name="storage-pool/note.txt" contents="secret"');
  const out = await type(jsonCommand('/file print detail as-value where name~"note"'));
  assert.equal(JSON.parse(out)[0].contents, "secret");
});

const conditions: readonly (readonly [where: string, slots: string])[] = [
  ['slot="a"', "a"],
  ["slot=a", "a"],
  ['slot != "a" type="file"', "b c"],
  ['slot="a" or slot="c"', "a c"],
  ['slot="c" or slot="a"', "a c"],
  ['slot="a" and comment="one"', "a"],
  ['slot="a" and comment="two"', ""],
  ['slot="a" comment="one"', "a"],
  ['comment=""', "nvme1 nvme2 storage-pool c"],
  ['comment~"^(one|two)\\$"', "a b"],
  ['comment~"n"', "a"],
  ['slot~"^[[:lower:]]\\$"', "a b c"],
  ['slot~"("', ""],
  ["mounted", "storage-pool"],
  ['mounted="yes"', "storage-pool"],
  ["mounted=yes", "storage-pool"],
  ["!mounted and type=file", "a b c"],
  ["not (mounted or type=hardware)", "a b c"],
  ["disabled", "b"],
  ["disabled=no type=file", "a c"],
  ['file-path="/storage-pool/metal-csi/b.img"', "b"],
  ["file-path=/storage-pool/metal-csi/b.img", ""],
  ["file-path!=/storage-pool/metal-csi/b.img", ""],
  ["slot=x:y", ""],
  ["size>1073741824", "nvme1 nvme2 storage-pool"],
  ['size="1073741824"', "a b c"],
  ["size<=1073741824 slot>a", "b c"],
  ['.id="*5"', "b"],
  ['slot="$nobody"', ""],
  ['type="file" or mounted or slot="nvme1"', "nvme1 storage-pool a b c"],
  ['slot=[/disk get "a" slot]', "a"],
];

for (const [where, slots] of conditions) {
  Deno.test(`where ${where} selects ${slots === "" ? "nothing" : slots}`, async () => {
    const type = await typing();
    for (const [slot, comment] of [["a", "one"], ["b", "two"], ["c", ""]] as const) {
      await type(addCommand(slot, `comment="${comment}" disabled="${slot === "b" ? "yes" : "no"}"`));
    }
    const out = JSON.parse(await type(jsonCommand(`/disk print as-value proplist=slot where ${where}`)));
    assert.equal(out.map((disk: { slot: string }) => disk.slot).join(" "), slots);
  });
}
