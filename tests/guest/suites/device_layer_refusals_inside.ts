import assert from "node:assert/strict";
import { VolumeError } from "../../../src/volume/errors.ts";
import { NodeTests, refusal, sh, shell, until } from "../kit/node.ts";
import { call } from "../../node/harness.ts";
import {
  capabilities,
  contentOf,
  goesOn,
  inUse,
  kindsOf,
  layered,
  leftBy,
  reboot,
  sizes,
  takeDown,
  watched,
  written,
} from "./device_layer_kit.ts";

/** What must not be put below a map, and when nobody waits any more. */
export const refusalTests = new NodeTests();

for (const kind of kindsOf("ext4", "block")) {
  // Nothing tells one raw block volume's image from another one of its size.
  const which = kind === "block" ? "has shrunk" : "was swapped or has shrunk";
  refusalTests.add(
    `${kind}: an image that ${which} is not attached; the right one is, and nothing is lost`,
    (node) =>
      watched(node, () =>
        written(node, kind, async (volume, writer) => {
          const { image } = volume;
          const [other, small] = [`${image}.other`, `${image}.small`];
          await sh(`cp --sparse=always ${image} ${small}; truncate -s ${sizes[kind] / 2n} ${small}`);
          if (kind !== "block") await sh(`truncate -s ${sizes[kind]} ${other} && mkfs.${kind} -q ${other}`);
          const wrong = kind === "block" ? [small] : [other, small];
          for (const path of wrong) {
            await sh(`cp --sparse=always ${path} ${path}.kept`);
            await reboot(volume, 500, path);
            await until("it is connected", async () => await node.deviceNumber(volume) !== undefined);
            const before = writer.acknowledged;
            await new Promise((resolve) => setTimeout(resolve, 5_000));
            assert.equal(writer.acknowledged, before);
            assert.ok((await node.problems(volume)).includes("DeviceWaiting"));
            await sh(`cmp ${path} ${path}.kept`);
          }
          await reboot(volume, 500);
          const tookMs = await goesOn(writer);
          const said = await takeDown(node, kind, volume, writer);
          for (const path of wrong) await sh(`cmp ${path} ${path}.kept`);
          return `no wrong one was written to; the right one went on after ${tookMs} ms; ${said}`;
        })),
  );
}

for (const kind of kindsOf("ext4")) {
  refusalTests.add(
    `${kind}: a node whose volume waits never writes again once another epoch of it is exported`,
    (node) =>
      watched(node, () =>
        written(node, kind, async (volume, writer) => {
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
              .then(() => true, (error) => {
                assert.ok(VolumeError.is(error, "in-use"), String(error));
                return false;
              }));
          assert.equal(await sh("dmsetup ls"), "No devices found");
          await kept();
          const { acknowledged } = writer;
          const there = await leftBy(kind, volume, writer);
          return `the writer failed, nothing was written in the later epoch; ${acknowledged} acknowledged, ${there} there`;
        })),
  );

  refusalTests.add(
    `${kind}: a node service that is killed while a volume waits takes it up at its next start`,
    (node) =>
      written(node, kind, async (volume, writer) => {
        await watched(node, () => writer.proceeds());
        await reboot(volume, 3_000);
        const before = writer.acknowledged;
        await new Promise((resolve) => setTimeout(resolve, 4_000));
        assert.ok(writer.acknowledged <= before + 1, "nobody looks after it");
        const restarted = node.restarted();
        return await watched(restarted, async () => {
          const tookMs = await goesOn(writer);
          const said = await takeDown(restarted, kind, volume, writer);
          return `went on ${tookMs} ms after the start; ${said}`;
        });
      }),
  );
}

refusalTests.add("a map that a process holds open is not removed, and the process is named", async (node) => {
  const volume = await inUse(node, "block");
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
  "a volume that was staged without a layer stays so, and has one after its next stage",
  async (node) => {
    const volume = await inUse(node, "ext4");
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

for (const kind of kindsOf("ext4", "xfs")) {
  refusalTests.add(
    `${kind}: a volume that is only read takes no writes after a reboot either`,
    (node) =>
      watched(node, async () => {
        const volume = await inUse(node, kind);
        const capability = capabilities[kind];
        const target = node.target("pvc-1");
        const data = kind === "block" ? target : `${target}/data`;
        await sh(`echo kept | dd of=${data} bs=4k conv=sync,notrunc status=none`);
        await node.unpublish(volume);
        await node.unstage(volume);
        const untouched = await volume.keep();
        volume.readOnly = true;
        await node.stage(volume, { ...layered, capability });
        await node.publish(volume, { capability, readOnly: true });
        const map = `/dev/dm-${(await sh("dmsetup info -c --noheadings -o minor rds-csi-pvc-1")).trim()}`;
        assert.equal(await sh(`blockdev --getro ${map}`), "1");
        await reboot(volume, 1_000);
        await sh(`echo 3 > /proc/sys/vm/drop_caches; head -c 4 ${data} > /dev/null`);
        await until("it is back", async () => (await node.problems(volume)).length === 0);
        assert.equal(await sh(`blockdev --getro ${map}`), "1");
        assert.notEqual((await shell(`echo x | dd of=${map} bs=4k count=1 conv=sync oflag=direct`)).code, 0);
        await sh("echo 3 > /proc/sys/vm/drop_caches");
        assert.equal(await sh(`head -c 4 ${data}`), "kept");
        await node.unpublish(volume);
        await node.unstage(volume);
        assert.match(await contentOf(kind, volume, "data"), /^kept/);
        await untouched();
        return "read again after the reboot, and not a byte was written";
      }),
  );
}
