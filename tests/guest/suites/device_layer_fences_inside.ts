import assert from "node:assert/strict";
import { VolumeError } from "../../../src/volume/errors.ts";
import { call } from "../../node/harness.ts";
import { type GuestNode, type GuestVolume, NodeTests, sh, shell, until } from "../kit/node.ts";
import { endAnyhow, inUse, type Kind, kindsOf, leftBy, say, watched, writerOn } from "./device_layer_kit.ts";
import type { Writer } from "./kernel_export_inside.ts";

/** Volumes that are fenced while much of theirs waits, again and again: nothing may hang in the kernel. */
export const fenceTests = new NodeTests();

const rounds = 10;
const roundMs = 60_000;
/** From the router's going to the later epoch: around the kernel's first attempt to connect again, and after it. */
const absencesMs = [0, 1_000, 1_800, 2_000, 2_200, 3_000, 5_000];

for (const kind of kindsOf()) {
  fenceTests.add(
    `${kind}: volumes that are fenced with unwritten data are unstaged, ${rounds} times in a row`,
    (node) =>
      watched(node, async () => {
        const tookMs: number[] = [];
        // It keeps the router's port open, so that the kernel is refused by name.
        const other = await inUse(node, "ext4", "pvc-other");
        for (let round = 0; round < rounds; round++) {
          tookMs.push(await fenceOnce(node, kind, round));
        }
        await node.unpublish(other);
        await node.unstage(other);
        assert.equal(await sh("dmsetup ls"), "No devices found");
        return `${Deno.osRelease()}: unstaged ${
          tookMs.join(", ")
        } ms after the later epoch, nothing was written to it, all that was acknowledged is there`;
      }, rounds * roundMs / 2),
  );
}

/** Answers after how many milliseconds of the later epoch the volume was off the node. */
async function fenceOnce(node: GuestNode, kind: Kind, round: number): Promise<number> {
  const volume = await inUse(node, kind, `pvc-${round}`);
  const writer = writerOn(node, kind, volume.id);
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`not done within ${roundMs} ms`)), roundMs);
  try {
    return await Promise.race([
      fenceInUse(node, kind, volume, writer, absencesMs[round % absencesMs.length]!),
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
  kind: Kind,
  volume: GuestVolume,
  writer: Writer,
  absentMs: number,
): Promise<number> {
  await writer.begins();
  const target = node.target(volume.id);
  const unwritten = "if=/dev/zero bs=1M count=8";
  if (kind !== "block") await sh(`dd ${unwritten} of=${target}/unsynced status=none`);
  volume.withdraw();
  // The last one who closes a device waits for all that was written to it, so this one writes once it is away.
  const closing = kind === "block"
    ? shell(`dd ${unwritten} of=${target} seek=32 conv=notrunc,fsync`)
    : undefined;
  await new Promise((resolve) => setTimeout(resolve, absentMs));
  const kept = await volume.keep();
  volume.epoch++;
  volume.export();
  const began = performance.now();
  assert.notEqual(await writer.failed(), 0);
  assert.notEqual((await closing)?.code, 0);
  await node.unpublish(volume);
  await until("it is unstaged", () => isUnstaged(node, volume), roundMs);
  const tookMs = Math.round(performance.now() - began);
  await kept();
  await leftBy(kind, volume, writer);
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
