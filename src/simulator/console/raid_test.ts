import assert from "node:assert/strict";
import { plainDisk } from "../model/disk.ts";
import { jsonCommand, makeRouter, typeTo } from "../../../tests/support/simulated_router.ts";

/** A router with additional bare drives of 4 GiB and of 3 GiB. */
function drives(count: number) {
  const router = makeRouter({ pools: [] });
  for (let number = 1; number <= count; number++) {
    const sizeBytes = number === 1 ? 4n << 30n : 3n << 30n;
    router.disks.add({ ...plainDisk, slot: `nvme${number}`, sizeBytes });
  }
  return { router, type: typeTo(router) };
}

const mirror = [
  "/disk/add type=raid raid-type=1 raid-device-count=2 slot=pool",
  "/disk/set nvme1 raid-master=pool raid-role=0",
  "/disk/set nvme2 raid-master=pool raid-role=1",
];

Deno.test("two drives become a mirror, and with a file system a pool for disks", async () => {
  const { router, type } = drives(2);
  for (const line of [...mirror, "/disk/format pool file-system=btrfs label=data"]) {
    assert.equal(await type(line), "", line);
  }
  const asked = jsonCommand(
    '/disk print detail as-value proplist=size,free,fs,fs-label,mounted,state where slot="pool"',
  );
  assert.deepEqual(JSON.parse(await type(asked)), [{
    ".id": "*3",
    "free": Number(3n << 30n),
    "fs": "btrfs",
    "fs-label": "data",
    "mounted": true,
    "size": Number(3n << 30n),
    "state": "clean",
  }]);
  assert.equal(
    await type(
      '/disk add type="file" slot="a" file-path="/pool/a.img" file-size="1073741824" mount-filesystem="no"',
    ),
    "",
  );
  assert.equal(router.disks.findBySlot("a")?.sizeBytes, 1n << 30n);
  assert.equal(
    await type("/disk/format pool file-system=btrfs"),
    "could not unmount, stop using it first\r\n",
  );
});

Deno.test("an invalid use of drives is refused, and changes nothing", async () => {
  const { type } = drives(3);
  assert.equal(await type(mirror[0]!), "");
  assert.equal(await type("/disk/format pool file-system=btrfs"), "failure: could not remove, in use\r\n");
  for (const line of mirror.slice(1)) assert.equal(await type(line), "");
  const before = await type("/disk/print detail");
  for (
    const [line, refusal] of [
      ["/disk/set nvme3 raid-master=pool", "failure: could not remove, in use"],
      ["/disk/set nvme3 raid-master=none-such", "input does not match any value of raid-master"],
      ["/disk/format nvme1 file-system=btrfs", "failure: could not remove, in use"],
      ["/disk/format nvme3 file-system=ntfs", "input does not match any value of file-system"],
      [
        "/disk/add type=raid raid-type=5 raid-device-count=2 slot=b",
        "input does not match any value of raid-type",
      ],
      [
        "/disk/add type=raid raid-type=1 raid-device-count=1 slot=b",
        "value of raid-device-count out of range (2..)",
      ],
      ["/disk/add type=raid raid-device-count=2 slot=b", "failure: missing value of raid-type"],
    ]
  ) assert.equal(await type(line!), `${refusal}\r\n`, line);
  assert.equal(await type("/disk/print detail"), before);
});

Deno.test("a single drive can be a pool by itself", async () => {
  const { router, type } = drives(1);
  assert.equal(await type("/disk/format nvme1 file-system=btrfs"), "");
  assert.equal(router.pools()[0]?.pool.mountPoint, "nvme1");
  assert.equal(router.pools()[0]?.pool.label, "", "a file system has the label that a person gives it");
});
