// File systems that a backup has frozen and left so, on mapped devices; tests/node/frozen_test.ts has those on their own.
import assert from "node:assert/strict";
import type { StageRequest } from "../../../src/node/stage/wish.ts";
import {
  callWithin,
  type GuestNode,
  GuestVolume,
  NodeTests,
  refusal,
  sh,
  shell,
  timed,
  until,
} from "../kit/node.ts";
import { VolumeError } from "../../../src/volume/errors.ts";
import { block, ext4, xfs } from "../../node/harness.ts";
import { layered } from "./device_layer_kit.ts";

const capabilities = { ext4, xfs };

/** What a stage says of the device that a file system lies on. */
const kinds: Readonly<Record<string, (volume: GuestVolume) => Partial<StageRequest>>> = {
  "a mapping of dm-crypt": (volume) => ({
    // A key that costs little, because emulation makes it slow.
    volumeContext: { encrypted: "true", pbkdfMemory: "32", pbkdfTime: "100" },
    secrets: { encryptionPassphrase: "correct horse battery staple" },
    publishContext: { ...volume.publishContext(), encrypted: "true" },
  }),
  "a device layer": () => layered,
};

/** What takes too long for every change. */
export const frozenRows = new NodeTests();

/** Nothing of a volume is on the node. */
async function gone(node: GuestNode, volume: GuestVolume): Promise<void> {
  assert.deepEqual(await node.states(volume), []);
  assert.equal(await sh("dmsetup ls"), "No devices found");
}

/** The path of a map's device. */
async function mapped(name: string): Promise<string> {
  return `/dev/dm-${(await sh(`dmsetup info -c --noheadings -o minor ${name}`)).trim()}`;
}

frozenRows.add(
  "a logical volume on a raw volume that is frozen, as LVM does for a snapshot, is named and keeps it",
  async (node) => {
    const volume = new GuestVolume(node, "pvc-1", 64n << 20n);
    const at = `${node.folder}/lv`;
    await node.stage(volume, { capability: block });
    await node.publish(volume, { capability: block });
    const device = await node.device(volume);
    await sh(`dmsetup create vg-lv --uuid LVM-aaaa --table '0 65536 linear ${device} 0' && mkdir ${at}`);
    const logical = await mapped("vg-lv");
    await sh(`mkfs.ext4 -q ${logical} && mount ${logical} ${at} && dmsetup suspend vg-lv`);
    await node.unpublish(volume);
    const named = /itself uses .* by \/dev\/dm-[0-9]+ \(vg-lv, LVM\)/;
    const [said, tookMs] = await timed(refusal(node.unstage(volume), "in-use", named));
    assert.deepEqual(await node.states(volume), ["live"]);
    await sh(`dmsetup resume vg-lv && umount ${at} && dmsetup remove vg-lv && rmdir ${at}`);
    await node.unstage(volume);
    await gone(node, volume);
    return `refused after ${tookMs} ms: ${said.slice(0, 160)}…; unstaged when it was gone`;
  },
);

for (const filesystem of ["ext4", "xfs"] as const) {
  for (const [kind, how] of Object.entries(kinds)) {
    const capability = capabilities[filesystem];
    const begin = async (node: GuestNode) => {
      const volume = new GuestVolume(node, "pvc-1", 400n << 20n);
      const change = { ...how(volume), capability };
      await node.stage(volume, change);
      await node.publish(volume, { capability });
      await Deno.writeTextFile(`${node.target("pvc-1")}/data`, "kept");
      return { volume, stage: () => node.stage(volume, change), staging: node.staging("pvc-1") };
    };
    frozenRows.add(
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
    frozenRows.add(
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
    frozenRows.add(
      `${filesystem} on ${kind}: with its map suspended, which freezes it, no unstage hangs, and one after that ends`,
      async (node) => {
        const { volume, stage, staging } = await begin(node);
        const map = await mapped("rds-csi-pvc-1");
        const unstage = () =>
          node.service.unstage({ volumeId: "pvc-1", stagingPath: staging }, callWithin(30_000));
        await sh("dmsetup suspend rds-csi-pvc-1");
        let outcome: unknown;
        let tookMs: number;
        let second: string;
        try {
          second = (await shell(`timeout 10 mount -t ${filesystem} ${map} /mnt && umount /mnt`)).stderr;
          const target = { volumeId: "pvc-1", targetPath: node.target("pvc-1") };
          await node.service.unpublish(target, callWithin(30_000));
          [outcome, tookMs] = await timed(unstage().then(() => undefined, (error) => error));
        } finally {
          await shell("dmsetup resume rds-csi-pvc-1");
        }
        assert.ok(outcome === undefined || VolumeError.is(outcome), String(outcome));
        assert.ok(tookMs < 40_000, `${tookMs} ms of 30000`);
        await until("unstaged", () => unstage().then(() => true, () => false), 60_000);
        await gone(node, volume);
        await stage();
        assert.equal(await Deno.readTextFile(`${staging}/data`), "kept");
        await sh(`timeout 10 sh -c 'echo more >> ${staging}/data'`);
        await node.unstage(volume);
        await gone(node, volume);
        const answer = VolumeError.is(outcome) ? `${outcome.kind}: ${outcome.message.slice(0, 200)}…` : "OK";
        return `a second mount: ${second.trim()}; unstage after ${tookMs} ms: ${answer}; unstaged when it was resumed`;
      },
    );
  }
}
