// File systems that a backup has frozen and left so, on each kind of device.
import assert from "node:assert/strict";
import type { StageRequest } from "../../../src/node/stage/wish.ts";
import { type GuestNode, GuestVolume, NodeTests, sh, timed, until } from "../kit/node.ts";
import { ext4, xfs } from "../../node/harness.ts";
import { layered } from "./device_layer_kit.ts";

const capabilities = { ext4, xfs };

/** What a stage says of the device that a file system lies on. */
const kinds: Readonly<Record<string, (volume: GuestVolume) => Partial<StageRequest>>> = {
  "the volume's own device": () => ({}),
  "a mapping of dm-crypt": (volume) => ({
    // A key that costs little, because emulation makes it slow.
    volumeContext: { encrypted: "true", pbkdfMemory: "32", pbkdfTime: "100" },
    secrets: { encryptionPassphrase: "correct horse battery staple" },
    publishContext: { ...volume.publishContext(), encrypted: "true" },
  }),
  "a device layer": () => layered,
};

/** What every change tries. */
export const frozenRows = new NodeTests();
/** The same on mapped devices. */
export const frozenMapRows = new NodeTests();

for (const filesystem of ["ext4", "xfs"] as const) {
  for (const [index, [kind, how]] of Object.entries(kinds).entries()) {
    const capability = capabilities[filesystem];
    const begin = async (node: GuestNode) => {
      const volume = new GuestVolume(node, "pvc-1", 400n << 20n);
      const change = { ...how(volume), capability };
      await node.stage(volume, change);
      await node.publish(volume, { capability });
      await Deno.writeTextFile(`${node.target("pvc-1")}/data`, "kept");
      return { volume, stage: () => node.stage(volume, change), staging: node.staging("pvc-1") };
    };
    const gone = async (node: GuestNode, volume: GuestVolume) => {
      assert.deepEqual(await node.states(volume), []);
      assert.equal(await sh("dmsetup ls"), "No devices found");
    };
    (index === 0 ? frozenRows : frozenMapRows).add(
      `${filesystem} on ${kind}: frozen when its pod goes, it is thawed by the unstage, and by the next stage`,
      async (node) => {
        const { volume, stage, staging } = await begin(node);
        await sh(`fsfreeze -f ${staging}`);
        await node.unpublish(volume);
        await node.unstage(volume);
        await gone(node, volume);
        await stage();
        await sh(`fsfreeze -f ${staging} && umount ${staging}`);
        const [, tookMs] = await timed(stage());
        await sh(`timeout 10 sh -c 'echo more >> ${staging}/data'`);
        assert.equal(await Deno.readTextFile(`${staging}/data`), "keptmore\n");
        await sh(`fsfreeze -f ${staging} && umount ${staging}`);
        await node.unstage(volume);
        await gone(node, volume);
        return `thawed by unstage; unmounted by hand and frozen, staged again in ${tookMs} ms and written to; ended by unstage`;
      },
    );
    (index === 0 ? frozenRows : frozenMapRows).add(
      `${filesystem} on ${kind}: frozen, and detached lazily from under an open file, it is thawed and written to`,
      async (node) => {
        const { volume, stage, staging } = await begin(node);
        await node.unpublish(volume);
        const holder = new Deno.Command("sh", { args: ["-c", `exec sleep 1000 < ${staging}/data`] }).spawn();
        try {
          await until("open", () => Deno.readTextFileSync(`/proc/${holder.pid}/comm`) === "sleep\n");
          await sh(`fsfreeze -f ${staging} && umount -l ${staging}`);
          await stage();
          await sh(`timeout 10 sh -c 'echo more >> ${staging}/data'`);
        } finally {
          holder.kill("SIGKILL");
          await holder.status;
        }
        await node.unstage(volume);
        await gone(node, volume);
        await stage();
        assert.equal(await Deno.readTextFile(`${staging}/data`), "keptmore\n");
        await node.unstage(volume);
        await gone(node, volume);
        return "written to while the file was open, and unstaged after it was closed";
      },
    );
  }
}
