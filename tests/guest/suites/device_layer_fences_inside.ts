import assert from "node:assert/strict";
import { VolumeError } from "../../../src/volume/errors.ts";
import type { Capability } from "../../../src/volume/model/capabilities.ts";
import { call, ext4, xfs } from "../../node/harness.ts";
import { type GuestNode, type GuestVolume, NodeTests, sh, shell, until } from "../kit/node.ts";
import { endAnyhow, inUse, say, watched, writerOn } from "./device_layer_kit.ts";
import type { Writer } from "./kernel_export_inside.ts";

/** Volumes that are fenced while much of theirs waits, again and again: nothing may hang in the kernel. */
export const fenceTests = new NodeTests();

const rounds = 10;
const roundMs = 60_000;
/** From the router's going to the later epoch: around the kernel's first attempt to connect again, and after it. */
const absencesMs = [0, 1_000, 1_800, 2_000, 2_200, 3_000, 5_000];

for (const capability of [ext4, xfs]) {
  const { filesystem } = capability as { filesystem: string };
  fenceTests.add(
    `${filesystem}: volumes that are fenced with unwritten data are unstaged, ${rounds} times in a row`,
    (node) =>
      watched(node, async () => {
        const tookMs: number[] = [];
        // It keeps the router's port open, so that the kernel is refused by name.
        const other = await inUse(node, ext4, "pvc-other");
        for (let round = 0; round < rounds; round++) {
          tookMs.push(await fenceOnce(node, capability, round));
        }
        await node.unpublish(other);
        await node.unstage(other);
        assert.equal(await sh("dmsetup ls"), "No devices found");
        return `${Deno.osRelease()}: unstaged ${
          tookMs.join(", ")
        } ms after the later epoch, nothing was written to it`;
      }, rounds * roundMs / 2),
  );
}

/** Answers after how many milliseconds of the later epoch the volume was off the node. */
async function fenceOnce(node: GuestNode, capability: Capability, round: number): Promise<number> {
  const volume = await inUse(node, capability, `pvc-${round}`);
  const writer = writerOn(node, volume.id);
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`not done within ${roundMs} ms`)), roundMs);
  try {
    return await Promise.race([
      fenceInUse(node, volume, writer, absencesMs[round % absencesMs.length]!),
      late,
    ]);
  } catch (error) {
    // Who hangs in the kernel, and where.
    await shell("echo w > /proc/sysrq-trigger");
    const { stdout } = await shell("dmsetup table; dmsetup status; dmesg | tail -n 250");
    // What hangs may hang for ever, and then no failure is told of.
    say(`round ${round}: ${error}\n${stdout}`);
    throw error;
  } finally {
    clearTimeout(timer);
    await endAnyhow(volume, writer);
  }
}

async function fenceInUse(
  node: GuestNode,
  volume: GuestVolume,
  writer: Writer,
  absentMs: number,
): Promise<number> {
  await writer.begins();
  await sh(`dd if=/dev/zero of=${node.target(volume.id)}/unsynced bs=1M count=8 status=none`);
  volume.withdraw();
  await new Promise((resolve) => setTimeout(resolve, absentMs));
  const kept = await volume.keep();
  volume.epoch++;
  volume.export();
  const began = performance.now();
  assert.notEqual(await writer.failed(), 0);
  await node.unpublish(volume);
  await until("it is unstaged", () => isUnstaged(node, volume), roundMs);
  const tookMs = Math.round(performance.now() - began);
  await kept();
  volume.withdraw();
  await sh(`rm ${volume.image}*`);
  return tookMs;
}

/** The watch takes it down as well, and nothing here keeps them apart. */
async function isUnstaged(node: GuestNode, { id }: GuestVolume): Promise<boolean> {
  try {
    await node.service.unstage({ volumeId: id, stagingPath: node.staging(id) }, call());
    return true;
  } catch (error) {
    assert.ok(VolumeError.is(error, "in-use") || VolumeError.is(error, "unavailable"), String(error));
    return false;
  }
}
