import assert from "node:assert/strict";
import { addCommand, jsonCommand, typing } from "../simulator_test_support.ts";

Deno.test("ros-7.21 has no limit on slot names", async () => {
  const type = await typing({}, "ros-7.21");
  assert.equal(await type(addCommand("x".repeat(60))), "");
});

Deno.test("ros-7.20 does not know nvme-tcp-server-nqn and names the subsystem after the slot", async () => {
  const type = await typing({}, "ros-7.20");
  const known = addCommand("a", 'nvme-tcp-export="yes"');
  assert.equal(
    await type(`${known} nvme-tcp-server-nqn="x"`),
    `expected end of command (line 1 column ${known.length + 2})\r\n`,
  );
  assert.equal(await type(known), "");
  const [disk] = JSON.parse(await type(jsonCommand('/disk print detail as-value where slot="a"')));
  assert.equal("nvme-tcp-server-nqn" in disk, false);
  assert.equal(disk["nvme-tcp-export"], true);
});

Deno.test("no-rose knows no exports, and its package is missing", async () => {
  const type = await typing({}, "no-rose");
  assert.equal(
    await type('/disk set "nvme1" nvme-tcp-export="yes"'),
    "expected end of command (line 1 column 19)\r\n",
  );
  const packages = JSON.parse(await type(jsonCommand("/system package print as-value")));
  assert.deepEqual(packages.map((entry: { name: string }) => entry.name), ["routeros"]);
});

Deno.test("xfs-pool has no subvolumes", async () => {
  const type = await typing({}, "xfs-pool");
  const out = await type('/disk/btrfs/subvolume/add fs="storage-pool" name="v"');
  assert.equal(out, "failure: no btrfs filesystem storage-pool\r\n");
  const [pool] = JSON.parse(await type(jsonCommand("/disk print detail as-value where mounted")));
  assert.equal(pool.fs, "xfs");
});

Deno.test("hostile words its refusals at random, gives numbers as texts and prints noise first", async () => {
  const type = await typing({}, "hostile");
  const [noise, json] = (await type(jsonCommand("/disk print detail as-value where mounted"))).split("\r\n");
  assert.notEqual(noise, "");
  assert.equal(JSON.parse(json!)[0].size, "7681574174720");
  const refusal = await type('/disk remove "x"');
  assert.doesNotMatch(refusal, /item/);
});

Deno.test("ros-7.21 has no /file copy", async () => {
  const type = await typing({}, "ros-7.21");
  assert.equal(await type('/file copy "a" name="b"'), "bad command name copy (line 1 column 7)\r\n");
});

Deno.test("file-size and booleans take the forms that the knobs give them", async () => {
  const read = jsonCommand('/disk print detail as-value proplist=file-size,mount-filesystem where slot="a"');
  const forms = [
    [{}, { "file-size": 1073741824, "mount-filesystem": false }],
    [{ fileSize: "human" }, { "file-size": "1024.0MiB", "mount-filesystem": false }],
    [{ fileSize: "absent", booleans: "yes-no" }, { "mount-filesystem": "no" }],
  ] as const;
  for (const [knobs, expected] of forms) {
    const type = await typing(knobs);
    await type(addCommand("a"));
    assert.deepEqual(JSON.parse(await type(read))[0], { ".id": "*4", ...expected });
  }
});
