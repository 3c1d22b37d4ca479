import assert from "node:assert/strict";
import { VolumeError } from "../../../src/volume/errors.ts";
import { NodeTests, refusal, sh, shell, until } from "../kit/node.ts";
import { block, call, ext4, xfs } from "../../node/harness.ts";
import {
  checked,
  endAnyhow,
  goesOn,
  inUse,
  layered,
  reboot,
  sizes,
  takeDown,
  watched,
  writerOn,
} from "./device_layer_kit.ts";

/** What must not be put below a map, and when nobody waits any more. */
export const refusalTests = new NodeTests();

refusalTests.add(
  "an image that was swapped or shrunk is not attached; the right one is, and nothing is lost",
  (node) =>
    watched(node, async () => {
      const volume = await inUse(node, ext4);
      const writer = writerOn(node);
      try {
        await writer.begins();
        const other = `${volume.image}.other`;
        await sh(`truncate -s ${sizes.ext4} ${other} && mkfs.ext4 -q ${other} && cp ${other} ${other}.kept`);
        await reboot(volume, 500, other);
        await until("it is connected", async () => await node.deviceNumber(volume) !== undefined);
        const before = writer.acknowledged;
        await new Promise((resolve) => setTimeout(resolve, 5_000));
        assert.ok(writer.acknowledged <= before + 1);
        await sh(`cmp ${other} ${other}.kept`);
        assert.ok((await node.problems(volume)).includes("DeviceWaiting"));
        const small = `${volume.image}.small`;
        await sh(`head -c ${sizes.ext4 / 2n} ${volume.image} > ${small}`);
        await reboot(volume, 500, small);
        await new Promise((resolve) => setTimeout(resolve, 5_000));
        assert.ok(writer.acknowledged <= before + 1);
        await reboot(volume, 500);
        const tookMs = await goesOn(writer);
        const said = await takeDown(node, volume, writer);
        await checked(volume, "ext4");
        return `neither was written to; the right one went on after ${tookMs} ms; ${said}; clean`;
      } finally {
        await endAnyhow(volume, writer);
      }
    }),
);

refusalTests.add(
  "a raw block volume is not put onto an image that has shrunk; onto the right one it is, and its write is there",
  (node) =>
    watched(node, async () => {
      const volume = await inUse(node, block);
      const target = node.target("pvc-1");
      const small = `${volume.image}.small`;
      await sh(`head -c ${sizes.ext4 / 2n} ${volume.image} > ${small} && cp ${small} ${small}.kept`);
      volume.withdraw();
      await until("it is not live", async () => !(await node.states(volume)).includes("live"));
      const command = `echo waits | dd of=${target} bs=4k oflag=direct conv=sync,notrunc status=none`;
      let isWritten = false;
      const writing = sh(command).then(() => void (isWritten = true));
      try {
        volume.nvmet.serve(volume.nqn, small);
        await until("it is connected", async () => await node.deviceNumber(volume) !== undefined);
        await new Promise((resolve) => setTimeout(resolve, 5_000));
        assert.equal(isWritten, false);
        assert.ok((await node.problems(volume)).includes("DeviceWaiting"));
        await reboot(volume, 500);
        await until("it is written", () => isWritten, 30_000);
        await sh(`cmp ${small} ${small}.kept`);
        assert.equal(await sh(`head -c 5 ${volume.image}`), "waits");
        await node.unpublish(volume);
        await node.unstage(volume);
        return "the small one was not written to";
      } finally {
        await shell("dmsetup message rds-csi-pvc-1 0 fail_if_no_path");
        await writing.catch(() => {});
      }
    }),
);

refusalTests.add(
  "a node whose volume waits never writes again once another epoch of it is exported",
  (node) =>
    watched(node, async () => {
      const volume = await inUse(node, ext4);
      const writer = writerOn(node);
      try {
        await writer.begins();
        volume.withdraw();
        await new Promise((resolve) => setTimeout(resolve, 3_000));
        const kept = await volume.keep();
        volume.epoch++;
        volume.export();
        assert.notEqual(await writer.failed(), 0);
        await node.unpublish(volume);
        await kept();
        // Nothing here keeps it and the watch apart, which takes the volume down as well.
        await until("it is unstaged", () =>
          node.service.unstage({ volumeId: volume.id, stagingPath: node.staging(volume.id) }, call())
            .then(() =>
              true, (error) => {
              assert.ok(VolumeError.is(error, "in-use"), String(error));
              return false;
            }));
        assert.equal(await sh("dmsetup ls"), "No devices found");
        return "the writer failed, not a byte was written after the epoch began";
      } finally {
        await endAnyhow(volume, writer);
      }
    }),
);

refusalTests.add("a map that a process holds open is not removed, and the process is named", async (node) => {
  const volume = await inUse(node, block);
  const number = (await sh("dmsetup ls")).replace(/.*:/, "").replace(")", "");
  await node.unpublish(volume);
  const holding = new Deno.Command("/usr/bin/sh", { args: ["-c", `exec sleep 60 < /dev/dm-${number}`] })
    .spawn();
  try {
    await until(
      "it is open",
      async () => (await shell(`dmsetup info -c --noheadings -o open | grep -q 1`)).code === 0,
    );
    const said = await refusal(node.unstage(volume), "in-use", new RegExp(`process ${holding.pid}`));
    await sh("dmsetup table rds-csi-pvc-1");
    holding.kill("SIGKILL");
    await holding.status;
    await node.unstage(volume);
    return said;
  } finally {
    await shell(`kill -KILL ${holding.pid}`);
  }
});

refusalTests.add(
  "a node service that is killed while a volume waits takes it up at its next start",
  async (node) => {
    const volume = await watched(node, () => inUse(node, ext4));
    const writer = writerOn(node);
    try {
      await writer.begins();
      await reboot(volume, 3_000);
      const before = writer.acknowledged;
      await new Promise((resolve) => setTimeout(resolve, 4_000));
      assert.ok(writer.acknowledged <= before + 1, "nobody looks after it");
      const restarted = node.restarted();
      return await watched(restarted, async () => {
        const tookMs = await goesOn(writer);
        const said = await takeDown(restarted, volume, writer);
        await checked(volume, "ext4");
        return `went on ${tookMs} ms after the start; ${said}; clean`;
      });
    } finally {
      await endAnyhow(volume, writer);
    }
  },
);

refusalTests.add(
  "a volume that was staged without a layer stays so, and has one after its next stage",
  async (node) => {
    const volume = await inUse(node, ext4);
    await node.unpublish(volume);
    await node.unstage(volume);
    await node.stage(volume);
    await node.stage(volume, layered);
    assert.equal(await sh("dmsetup ls"), "No devices found");
    await node.unstage(volume);
    await node.stage(volume, layered);
    assert.match(await sh("dmsetup ls"), /rds-csi-pvc-1/);
    await node.unstage(volume);
    return "as it should be";
  },
);

for (const capability of [ext4, xfs]) {
  const { filesystem } = capability as { filesystem: string };
  refusalTests.add(
    `${filesystem}: a volume that is only read takes no writes after a reboot either`,
    (node) =>
      watched(node, async () => {
        const volume = await inUse(node, capability);
        await Deno.writeTextFile(`${node.target("pvc-1")}/data`, "kept");
        await node.unpublish(volume);
        await node.unstage(volume);
        volume.readOnly = true;
        await node.stage(volume, { ...layered, capability });
        await node.publish(volume, { capability, readOnly: true });
        const map = `/dev/dm-${(await sh("dmsetup info -c --noheadings -o minor rds-csi-pvc-1")).trim()}`;
        assert.equal(await sh(`blockdev --getro ${map}`), "1");
        await reboot(volume, 1_000);
        await sh(`echo 3 > /proc/sys/vm/drop_caches; cat ${node.target("pvc-1")}/data > /dev/null`);
        await until("it is back", async () => (await node.problems(volume)).length === 0);
        assert.equal(await sh(`blockdev --getro ${map}`), "1");
        assert.notEqual((await shell(`echo x | dd of=${map} bs=4k count=1 conv=sync oflag=direct`)).code, 0);
        assert.equal(await Deno.readTextFile(`${node.target("pvc-1")}/data`), "kept");
        await node.unpublish(volume);
        await node.unstage(volume);
        return "read again after the reboot, and written to by nobody";
      }),
  );
}
