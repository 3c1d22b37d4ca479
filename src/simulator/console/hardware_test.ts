import assert from "node:assert/strict";
import { jsonCommand, makeRouter, startQuickly, typeTo } from "../../../tests/support/simulated_router.ts";

Deno.test("a drive reports its health, and an array does not", async () => {
  const type = typeTo(makeRouter());
  const query = "/disk print as-value proplist=slot,percentage-used,critical-warning,raid-member-state";
  assert.deepEqual(JSON.parse(await type(jsonCommand(query))), [
    {
      ".id": "*1",
      "slot": "nvme1",
      "percentage-used": 1,
      "critical-warning": "",
      "raid-member-state": "0:in_sync",
    },
    {
      ".id": "*2",
      "slot": "nvme2",
      "percentage-used": 1,
      "critical-warning": "",
      "raid-member-state": "1:in_sync",
    },
    { ".id": "*3", "slot": "storage-pool" },
  ]);
});

Deno.test("a Btrfs pool has an item with one counter for each device", async () => {
  const type = typeTo(makeRouter());
  const [filesystem] = JSON.parse(await type(jsonCommand("/disk/btrfs/filesystem print detail as-value")));
  assert.deepEqual(filesystem, {
    ...{ ".id": "*3", "label": "storage-pool-fs", "uuid": "uuid-of-storage-pool" },
    ...{ "total-devs": 1, "dev-ids": [1], "devs": ["storage-pool"] },
    ...{ "write-errors": [0], "read-errors": [0], "flush-errors": [0], "corruption-errors": [0] },
    ...{ "generation-errors": [0] },
  });
  const xfs = typeTo(makeRouter({ profile: "xfs-pool" }));
  assert.equal(await xfs("/disk/btrfs/filesystem print count-only"), "0\r\n");
});

Deno.test("a router that does not know a name refuses the whole line", async () => {
  const type = typeTo(makeRouter({ behaviours: { hardwareNames: "none" } }));
  const line = jsonCommand("/disk print as-value proplist=slot,percentage-used");
  assert.match(await type(`:put begun; ${line}`), /input does not match any value of proplist/);
  assert.match(await type("/disk/btrfs/filesystem print"), /bad command name filesystem/);
  assert.doesNotMatch(await type("/disk print detail"), /percentage-used|raid-member-state/);
});

Deno.test("the control port degrades drives and Btrfs pools, and heals them", async () => {
  await using simulator = await startQuickly();
  const patch = async (path: string, body: unknown) => {
    const response = await fetch(simulator.controlUrl + path, {
      method: "PATCH",
      body: JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  };
  const drive = await patch("/disks/nvme1", { "percentage-used": 101, "critical-warning": ["read-only"] });
  assert.deepEqual([drive.body["percentage-used"], drive.body["critical-warning"]], [101, ["read-only"]]);
  const path = "/filesystems/storage-pool-fs";
  const lost = await patch(path, { "devs": ["storage-pool", "missing"], "write-errors": [0, 7] });
  const { "missing-devs": missing, "write-errors": errors, "read-errors": others } = lost.body;
  assert.deepEqual([missing, errors, others], [true, [0, 7], [0, 0]]);
  const healed = await patch(path, { "devs": null, "write-errors": null });
  assert.deepEqual([healed.body["missing-devs"], healed.body["write-errors"]], [undefined, [0]]);
  assert.equal((await patch(path, { size: 1 })).status, 400);
  assert.equal((await patch("/filesystems/none", {})).status, 404);
});
