import assert from "node:assert/strict";
import { NodeTests, sh, until } from "../kit/node.ts";
import { VolumeError } from "../../../src/volume/errors.ts";
import { block, call, ext4, xfs } from "../../node/harness.ts";
import {
  checked,
  endAnyhow,
  goesOn,
  goesOnMs,
  inUse,
  reboot,
  rebootKept,
  sizes,
  takeDown,
  watched,
  writerOn,
} from "./device_layer_kit.ts";

/** A router that reboots under volumes in use. */
export const layerRebootTests = new NodeTests();

for (const capability of [ext4, xfs]) {
  const { filesystem } = capability as { filesystem: "ext4" | "xfs" };
  const rounds = filesystem === "ext4" ? 3 : 1;
  layerRebootTests.add(
    `${filesystem}: a writer waits while the router reboots and gives new identities, and loses nothing`,
    (node) =>
      watched(node, async () => {
        const volume = await inUse(node, capability);
        const writer = writerOn(node);
        const tookMs: number[] = [];
        try {
          await writer.begins();
          for (let round = 0; round < rounds; round++) {
            await reboot(volume, 4_000);
            tookMs.push(await goesOn(writer));
          }
          assert.ok(Math.max(...tookMs) <= goesOnMs, `went on after ${tookMs} ms`);
          await until("it is healthy", async () => (await node.problems(volume)).length === 0);
          const said = await takeDown(node, volume, writer);
          await checked(volume, filesystem);
          return `${Deno.osRelease()}: went on ${tookMs.join(", ")} ms after the router; ${said}; clean`;
        } finally {
          await endAnyhow(volume, writer);
        }
      }),
  );
}

for (const capability of [ext4, xfs]) {
  const { filesystem } = capability as { filesystem: "ext4" | "xfs" };
  layerRebootTests.add(
    `${filesystem}: a writer waits for a router that keeps its identities`,
    (node) =>
      watched(node, async () => {
        const volume = await inUse(node, capability);
        const writer = writerOn(node);
        try {
          await writer.begins();
          await rebootKept(volume, 4_000);
          const tookMs = await goesOn(writer);
          assert.ok(tookMs <= goesOnMs, `went on after ${tookMs} ms`);
          const said = await takeDown(node, volume, writer);
          await checked(volume, filesystem);
          return `went on ${tookMs} ms after the router; ${said}; clean`;
        } finally {
          await endAnyhow(volume, writer);
        }
      }),
  );
}

for (const [what, bringBack] of [["new", reboot], ["its own", rebootKept]] as const) {
  layerRebootTests.add(
    `a raw block volume in use goes on under the same device after a reboot that gives ${what} identities`,
    (node) =>
      watched(node, async () => {
        const volume = await inUse(node, block);
        const target = node.target("pvc-1");
        const write = (text: string) =>
          sh(`echo ${text} | dd of=${target} bs=4k oflag=direct conv=sync,notrunc status=none`);
        await write("before");
        const number = await sh(`stat -c %t:%T ${target}`);
        await bringBack(volume, 3_000);
        const began = performance.now();
        await write("after");
        const tookMs = Math.round(performance.now() - began);
        assert.ok(tookMs <= goesOnMs, `went on after ${tookMs} ms`);
        assert.equal(await sh(`stat -c %t:%T ${target}`), number);
        assert.equal(await sh(`head -c 5 ${volume.image}`), "after");
        await node.unpublish(volume);
        await node.unstage(volume);
        return `went on ${tookMs} ms after the router`;
      }),
  );
}

layerRebootTests.add(
  "a volume grows in use, and goes on growing after a reboot",
  (node) =>
    watched(node, async () => {
      const volume = await inUse(node, ext4);
      const path = node.target("pvc-1");
      assert.equal(await node.grow(volume, sizes.ext4 * 2n, path), sizes.ext4 * 2n);
      await reboot(volume, 1_000);
      await until("it is back", async () => (await node.problems(volume)).length === 0);
      assert.equal(await node.grow(volume, sizes.ext4 * 4n, path), sizes.ext4 * 4n);
      const mib = Number(await sh(`stat -f -c '%b * %S / 1048576' ${path} | sed 's/.*/echo $((&))/' | sh`));
      assert.ok(mib > 220, `${mib} MiB`);
      await node.unpublish(volume);
      await node.unstage(volume);
      await checked(volume, "ext4");
      return `${mib} MiB at last, clean`;
    }),
);

for (const capability of [ext4, xfs, block]) {
  const kind = capability.access === "mount" ? capability.filesystem as "ext4" | "xfs" : undefined;
  layerRebootTests.add(
    `${
      kind ?? "a raw block volume"
    }: a writer waits while the export is toggled for a new size, and the volume grows in use`,
    (node) =>
      watched(node, async () => {
        const volume = await inUse(node, capability);
        const volumePath = node.target("pvc-1");
        const wanted = sizes[kind ?? "ext4"] * 2n;
        const writer = kind === undefined ? undefined : writerOn(node);
        try {
          await writer?.begins();
          volume.withdraw();
          await sh(`truncate -s ${wanted} ${volume.image}`);
          volume.nvmet.serve(volume.nqn, volume.image);
          const request = { volumeId: "pvc-1", volumePath, range: { requiredBytes: wanted, limitBytes: 0n } };
          const tookMs = await until("it has grown", () =>
            node.service.expand(request, call()).then((bytes) =>
              bytes === wanted, (error) => {
              assert.ok(VolumeError.is(error), String(error));
              return false;
            }), 30_000);
          if (writer === undefined || kind === undefined) {
            assert.equal(BigInt(await sh(`blockdev --getsize64 ${volumePath}`)), wanted);
            await sh(
              `echo end | dd of=${volumePath} bs=4k seek=${
                wanted / 4096n - 1n
              } oflag=direct conv=sync,notrunc`,
            );
            assert.equal(await sh(`tail -c 4096 ${volume.image} | head -c 3`), "end");
            await node.unpublish(volume);
            await node.unstage(volume);
            return `grown ${tookMs} ms after the toggle`;
          }
          await goesOn(writer);
          const shown = Number(await sh(`stat -f -c %b ${volumePath}`)) *
            Number(await sh(`stat -f -c %S ${volumePath}`));
          assert.ok(shown > Number(wanted) * 0.75, `${shown} bytes`);
          const said = await takeDown(node, volume, writer);
          await checked(volume, kind);
          return `grown ${tookMs} ms after the toggle; ${said}; clean`;
        } finally {
          if (writer !== undefined) await endAnyhow(volume, writer);
        }
      }),
  );
}
