import assert from "node:assert/strict";
import { NodeTests, sh, until } from "../kit/node.ts";
import { VolumeError } from "../../../src/volume/errors.ts";
import { call } from "../../node/harness.ts";
import {
  goesOn,
  goesOnMs,
  kindsOf,
  reboot,
  rebootKept,
  shownBytes,
  sizes,
  takeDown,
  watched,
  written,
} from "./device_layer_kit.ts";

/** A router that reboots under volumes in use. */
export const layerRebootTests = new NodeTests();

for (const kind of kindsOf("ext4", "xfs", "block")) {
  const rounds = kind === "ext4" ? 3 : 1;
  layerRebootTests.add(
    `${kind}: a writer waits while the router reboots and gives new identities, and loses nothing`,
    (node) =>
      watched(node, () =>
        written(node, kind, async (volume, writer) => {
          const number = await sh(`stat -c %d:%t:%T ${node.target(volume.id)}`);
          const tookMs: number[] = [];
          for (let round = 0; round < rounds; round++) {
            await reboot(volume, 4_000);
            tookMs.push(await goesOn(writer));
          }
          assert.ok(Math.max(...tookMs) <= goesOnMs, `went on after ${tookMs} ms`);
          await until("it is healthy", async () => (await node.problems(volume)).length === 0);
          assert.equal(await sh(`stat -c %d:%t:%T ${node.target(volume.id)}`), number, "the same device");
          const said = await takeDown(node, kind, volume, writer);
          return `${Deno.osRelease()}: went on ${tookMs.join(", ")} ms after the router; ${said}`;
        })),
  );
}

for (const kind of kindsOf("ext4", "xfs", "block")) {
  layerRebootTests.add(
    `${kind}: a writer waits for a router that keeps its identities`,
    (node) =>
      watched(node, () =>
        written(node, kind, async (volume, writer) => {
          await rebootKept(volume, 4_000);
          const tookMs = await goesOn(writer);
          assert.ok(tookMs <= goesOnMs, `went on after ${tookMs} ms`);
          const said = await takeDown(node, kind, volume, writer);
          return `went on ${tookMs} ms after the router; ${said}`;
        })),
  );
}

for (const kind of kindsOf("ext4")) {
  layerRebootTests.add(
    `${kind}: a volume grows in use, and goes on growing after a reboot`,
    (node) =>
      watched(node, () =>
        written(node, kind, async (volume, writer) => {
          const path = node.target("pvc-1");
          assert.equal(await node.grow(volume, sizes[kind] * 2n, path), sizes[kind] * 2n);
          await reboot(volume, 1_000);
          await goesOn(writer);
          // Until its new identity is noted, the kubelet is told to call again.
          await until("it is healthy", async () => (await node.problems(volume)).length === 0);
          const wanted = sizes[kind] * 4n;
          assert.equal(await node.grow(volume, wanted, path), wanted);
          const bytes = await shownBytes(kind, path);
          assert.ok(bytes > Number(wanted) * 0.75, `${bytes} bytes`);
          const said = await takeDown(node, kind, volume, writer);
          return `${bytes >> 20} MiB at last; ${said}`;
        })),
  );
}

for (const kind of kindsOf("ext4", "xfs", "block")) {
  layerRebootTests.add(
    `${kind}: a writer waits while the export is toggled for a new size, and the volume grows in use`,
    (node) =>
      watched(node, () =>
        written(node, kind, async (volume, writer) => {
          const volumePath = node.target("pvc-1");
          const wanted = sizes[kind] * 2n;
          volume.withdraw();
          await sh(`truncate -s ${wanted} ${volume.image}`);
          volume.nvmet.serve(volume.nqn, volume.image);
          const request = { volumeId: "pvc-1", volumePath, range: { requiredBytes: wanted, limitBytes: 0n } };
          const tookMs = await until("it has grown", () =>
            node.service.expand(request, call()).then((bytes) => bytes === wanted, (error) => {
              assert.ok(VolumeError.is(error), String(error));
              return false;
            }), 30_000);
          await goesOn(writer);
          const bytes = await shownBytes(kind, volumePath);
          assert.ok(bytes > Number(wanted) * 0.75, `${bytes} bytes`);
          if (kind === "block") {
            const last = `seek=${wanted / 4096n - 1n} count=1 oflag=direct conv=notrunc`;
            await sh(`dd if=/dev/zero of=${volumePath} bs=4k ${last}`);
          }
          const said = await takeDown(node, kind, volume, writer);
          return `grown ${tookMs} ms after the toggle; ${said}`;
        })),
  );
}
