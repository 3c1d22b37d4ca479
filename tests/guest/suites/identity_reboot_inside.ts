import assert from "node:assert/strict";
import {
  callWithin,
  type GuestNode,
  GuestVolume,
  NodeTests,
  refusal,
  sh,
  timed,
  until,
} from "../kit/node.ts";
import { block, ext4, xfs } from "../../node/harness.ts";

const sizes = { ext4: 64n << 20n, xfs: 320n << 20n };

/** A router that reboots under volumes in use. */
export const rebootTests = new NodeTests();

/** Writes and syncs one file after the other until that fails; answers how many were acknowledged. */
async function writeUntilFailure(folder: string): Promise<number> {
  for (let count = 0;; count++) {
    try {
      using file = await Deno.open(`${folder}/${count}`, { write: true, createNew: true });
      await file.write(new TextEncoder().encode(`content ${count}`));
      await file.sync();
    } catch {
      return count;
    }
  }
}

/** Waits until the kernel has dropped the device and kept the connection. */
async function dropped(node: GuestNode, volume: GuestVolume): Promise<void> {
  await until(
    "dropped",
    async () =>
      (await node.states(volume)).join() === "live" && await node.deviceNumber(volume) === undefined,
    60_000,
  );
}

for (const capability of [ext4, xfs]) {
  const { filesystem } = capability as { filesystem: "ext4" | "xfs" };
  rebootTests.add(
    `${filesystem}: a router that reboots with new UUIDs loses nothing that was synced, and is staged again`,
    async (node) => {
      const volume = new GuestVolume(node, "pvc-1", sizes[filesystem]);
      await node.stage(volume, { capability });
      await node.unstage(volume);
      // In an epoch in which the file system was there already, its UUID is on record.
      await node.stage(volume, { capability });
      await node.publish(volume, { capability });
      const uuid = await sh(`blkid -p -o value -s UUID ${await node.device(volume)}`);
      const writing = writeUntilFailure(node.target("pvc-1"));
      await new Promise((resolve) => setTimeout(resolve, 1000));
      volume.nvmet.reboot(volume.nqn, volume.image, "new-per-export");
      await dropped(node, volume);
      const acknowledged = await writing;
      assert.ok(acknowledged > 0);
      const problems = await node.problems(volume);
      assert.ok(problems.includes("DeviceMissing"), problems.join());
      const request = node.stageRequest(volume, { capability });
      const why = await refusal(
        node.service.stage(request, callWithin(20_000)),
        "in-use",
        /delete the pods that use it/,
      );
      await node.unpublish(volume);
      const [, tookMs] = await timed(node.stage(volume, { capability }));
      await node.publish(volume, { capability });
      assert.equal(await sh(`blkid -p -o value -s UUID ${await node.device(volume)}`), uuid);
      for (let count = 0; count < acknowledged; count++) {
        assert.equal(await Deno.readTextFile(`${node.target("pvc-1")}/${count}`), `content ${count}`);
      }
      await Deno.writeTextFile(`${node.target("pvc-1")}/after`, "works");
      assert.deepEqual(await node.problems(volume), []);
      await node.unpublish(volume);
      await node.unstage(volume);
      volume.withdraw();
      await sh(filesystem === "ext4" ? `e2fsck -fn ${volume.image}` : `xfs_repair -n ${volume.image}`);
      return `${
        why.slice(0, 70)
      }…; staged again in ${tookMs} ms, all ${acknowledged} synced files there, clean`;
    },
  );
}

rebootTests.add("a raw block volume is staged again under its new UUID", async (node) => {
  const volume = new GuestVolume(node, "pvc-1", sizes.ext4);
  await node.stage(volume, { capability: block });
  await node.publish(volume, { capability: block });
  const write = `echo kept | dd of=${node.target("pvc-1")} bs=4k oflag=direct conv=sync,notrunc status=none`;
  await sh(write);
  volume.nvmet.reboot(volume.nqn, volume.image, "new-per-export");
  await dropped(node, volume);
  await refusal(node.stage(volume, { capability: block }), "in-use", /delete the pods that use it/);
  await node.unpublish(volume);
  await node.stage(volume, { capability: block });
  await node.publish(volume, { capability: block });
  assert.equal(await sh(`head -c 4 ${node.target("pvc-1")}`), "kept");
  await node.unpublish(volume);
  await node.unstage(volume);
  return "refused while it is bound, then staged, data there";
});

rebootTests.add("a router that keeps its UUIDs only lets pods wait", async (node) => {
  const volume = new GuestVolume(node, "pvc-1", sizes.ext4);
  await node.stage(volume);
  await node.publish(volume, { capability: ext4 });
  const before = await node.deviceNumber(volume);
  volume.nvmet.reboot(volume.nqn, volume.image, "kept");
  const [, tookMs] = await timed(sh(`echo after > ${node.target("pvc-1")}/after && sync`));
  await until("live", async () => (await node.states(volume)).join() === "live");
  assert.equal(await node.deviceNumber(volume), before);
  assert.deepEqual(await node.problems(volume), []);
  assert.equal(await Deno.readTextFile(`${node.target("pvc-1")}/after`), "after\n");
  await node.unpublish(volume);
  await node.unstage(volume);
  return `the write took ${tookMs} ms, on the same device`;
});
