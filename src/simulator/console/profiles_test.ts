import assert from "node:assert/strict";
import { getProfile } from "../profile.ts";
import {
  addCommand,
  jsonCommand,
  makeRouter,
  typeTo,
  typing,
} from "../../../tests/support/simulated_router.ts";

Deno.test("ros-7.21 has no limit on slot names", async () => {
  const type = await typing({}, "ros-7.21");
  assert.equal(await type(addCommand("x".repeat(60))), "");
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
  const out = await type('/disk/btrfs/subvolume/add fs="storage-pool-fs" name="v"');
  assert.equal(out, "failure: not btrfs: storage-pool-fs\r\n");
  const [pool] = JSON.parse(await type(jsonCommand("/disk print detail as-value where mounted")));
  assert.equal(pool.fs, "xfs");
});

Deno.test("an XFS pool takes the full size of an image at once, a Btrfs pool only the written data", async () => {
  const router = makeRouter({ pools: [{ name: "storage-pool" }, { name: "other", filesystem: "xfs" }] });
  const type = typeTo(router);
  const [btrfs, xfs] = router.pools();
  const before = [btrfs!, xfs!].map((pool) => router.freeBytes(pool));
  for (const pool of ["storage-pool", "other"]) {
    const path = `file-path="/${pool}/a.img" file-size="1099511627776"`;
    await type(`/disk add type="file" slot="${pool}-a" ${path} mount-filesystem="no"`);
  }
  const taken = [btrfs!, xfs!].map((pool, index) => before[index]! - router.freeBytes(pool));
  assert.deepEqual(taken, [0n, 1n << 40n]);
  const alone = makeRouter({ profile: "xfs-pool" });
  assert.equal(alone.allocationOf(alone.pools()[0]!), "full");
});

Deno.test("an XFS pool is a stripe over mirrors, each with its own state", async () => {
  const router = makeRouter({ profile: "xfs-pool" });
  const type = typeTo(router);
  const read = jsonCommand(
    '/disk print detail as-value proplist=slot,raid-master,raid-role,raid-member-state,state where type="raid"',
  );
  const rows = JSON.parse(await type(read));
  assert.deepEqual(
    rows.map((row: Record<string, unknown>) => [row["slot"], row["raid-master"], row["state"]]),
    [
      ...[0, 1, 2, 3].map((role) => [`storage-pool-m${role}`, "storage-pool", "clean"]),
      ["storage-pool", undefined, "clean"],
    ],
  );
  assert.deepEqual([rows[2]["raid-role"], rows[2]["raid-member-state"]], [2, "2:in_sync"]);
});

Deno.test("without rose-storage there is no menu of subvolumes", async () => {
  const type = await typing({}, "no-rose");
  assert.equal(await type("/disk/btrfs/subvolume/print"), "bad command name btrfs (line 1 column 7)\r\n");
});

Deno.test("a router that becomes xfs-pool has other pools, and none of its subvolumes", async () => {
  const router = makeRouter({ pools: [{ name: "storage-pool" }, { name: "own", filesystem: "btrfs" }] });
  const type = typeTo(router);
  const add = (label: string) => type(`/disk/btrfs/subvolume/add fs="${label}" name="v"`);
  assert.deepEqual([await add("storage-pool-fs"), await add("own-fs")], ["", ""]);
  router.configure(getProfile("xfs-pool"), {});
  const pools = JSON.parse(await type(jsonCommand("/disk print as-value proplist=fs where mounted")));
  assert.deepEqual(pools.map(({ fs }: { fs: string }) => fs), ["xfs", "btrfs"]);
  const left = await type(jsonCommand("/disk/btrfs/subvolume/print as-value proplist=fs where !default"));
  assert.equal(left, '[{".id":"*4","fs":"own-fs"}]\r\n');
  assert.equal(await add("storage-pool-fs"), "failure: not btrfs: storage-pool-fs\r\n");
});

Deno.test("ros-7.21 has no /file copy", async () => {
  const type = await typing({}, "ros-7.21");
  assert.equal(await type('/file copy "a" name="b"'), "bad command name copy (line 1 column 7)\r\n");
});
