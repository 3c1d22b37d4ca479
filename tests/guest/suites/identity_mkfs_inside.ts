import assert from "node:assert/strict";
import type { Capability } from "../../../src/volume/model/capabilities.ts";
import type { VolumeErrorKind } from "../../../src/volume/errors.ts";
import { type GuestNode, GuestVolume, is, NodeTests, refusal, sh, shell, timed, until } from "../kit/node.ts";
import { ext4, xfs } from "../../node/harness.ts";

const sizes = { ext4: 64n << 20n, xfs: 320n << 20n };

/** A volume whose writes take long, so that mkfs can be met in the middle. */
async function slow(node: GuestNode, sizeBytes: bigint): Promise<GuestVolume> {
  return await GuestVolume.mapped(node, "pvc-1", sizeBytes, delayed(sizeBytes, 150));
}

/** The device mapper's table for writes that take so many milliseconds. */
function delayed(sizeBytes: bigint, milliseconds: number): string {
  return `0 ${sizeBytes / 512n} delay $below 0 0 $below 0 ${milliseconds}`;
}

async function pidOf(tool: string): Promise<string> {
  return (await shell(`pgrep -x ${tool}`)).stdout;
}

/** Begins a stage, and stops its mkfs in the middle; answers that stage and the process. */
async function stopped(
  node: GuestNode,
  volume: GuestVolume,
  capability: Capability,
  tool: string,
): Promise<{ readonly stage: Promise<unknown>; readonly pid: string }> {
  // What waits in memory would be written to its end, whatever becomes of the process.
  await sh("echo 65536 > /proc/sys/vm/dirty_bytes");
  const stage = node.stage(volume, { capability }).then(() => "OK", (error) => error);
  await until("mkfs runs", async () => await pidOf(tool) !== "");
  const pid = await pidOf(tool);
  // xfs begins at the beginning.
  const loaded = tool === "mkfs.xfs" ? 1n << 20n : volume.sizeBytes;
  // It stands still while it is looked at, which takes longer than it would take to its end.
  await until("it has written something", async () => {
    await sh(`kill -STOP ${pid}; sleep 0.3`);
    const written = (await shell(`cmp -s -n ${loaded} ${volume.image} /dev/zero`)).code === 1;
    if (!written) await sh(`kill -CONT ${pid}; sleep 0.1`);
    return written;
  }, 60_000);
  assert.equal(await pidOf(tool), pid, `${tool} ended before it could be stopped`);
  await sh("echo 0 > /proc/sys/vm/dirty_bytes; echo 20 > /proc/sys/vm/dirty_ratio");
  return { stage, pid };
}

/** Kills it, and answers what asserts that nothing was written since. */
async function killed(
  stage: Promise<unknown>,
  pid: string,
  volume: GuestVolume,
): Promise<() => Promise<void>> {
  await sh(`kill -KILL ${pid}`);
  assert.ok(is("unavailable", /Cannot run mkfs/)(await stage));
  await volume.remap(delayed(volume.sizeBytes, 0));
  return await volume.keep();
}

/** mkfs that was killed in the middle, over a real connection. */
export const interruptedTests = new NodeTests();

for (const capability of [ext4, xfs]) {
  const { filesystem } = capability as { filesystem: "ext4" | "xfs" };
  const tool = `mkfs.${filesystem}`;
  interruptedTests.add(
    `${filesystem}: a mkfs that was killed in the middle is made again only as the first one might have been`,
    async (node) => {
      const volume = await slow(node, sizes[filesystem]);
      const { stage: first, pid } = await stopped(node, volume, capability, tool);
      // As a driver that was killed and started again, while its mkfs lives on.
      const restarted = node.restarted();
      const said = [
        await refusal(
          restarted.stage(volume, { capability }),
          "busy",
          /in use, perhaps by an earlier attempt/,
        ),
      ];
      restarted.libc.close();
      const assertUntouched = await killed(first, pid, volume);
      const stage = async (change: Record<string, string>, kind: VolumeErrorKind, text: RegExp) => {
        const publishContext = { ...volume.publishContext(), ...change };
        said.push(await refusal(node.stage(volume, { capability, publishContext }), kind, text));
        await assertUntouched();
      };
      await stage({ mayFormat: "false" }, "precondition", /not on record as never written/);
      await stage({ readonly: "true" }, "precondition", /used read-only/);
      await stage(
        { size: String(volume.sizeBytes - 4096n) },
        "precondition",
        /its size is not the one it was published with/,
      );
      await stage({ size: String(volume.sizeBytes + 4096n) }, "identity-mismatch", /size/);
      // As a router that reboots gives the export another identity: the epoch, the size and the NQN say what it is.
      await sh(`nvme disconnect -n ${volume.nqn} || :`);
      volume.nvmet.setUuid(volume.nqn, "01234567-89ab-4cde-8f01-23456789abcd");
      const [, tookMs] = await timed(node.stage(volume, { capability }));
      await Deno.writeTextFile(`${node.staging("pvc-1")}/data`, "works");
      await node.unstage(volume);
      volume.withdraw();
      await sh(filesystem === "ext4" ? `e2fsck -fn ${volume.image}` : `xfs_repair -n ${volume.image}`);
      volume.export();
      await node.stage(volume, { capability });
      assert.equal(await Deno.readTextFile(`${node.staging("pvc-1")}/data`), "works");
      await node.unstage(volume);
      await volume.unmap();
      return `${
        said.map((text) => /because (.*?)[:;,]/.exec(text)?.[1] ?? text).join("; ")
      }; then made again in ${tookMs} ms, clean`;
    },
  );
}

interruptedTests.add(
  "a mkfs that was killed in one epoch is not made again in the next",
  async (node) => {
    const volume = await slow(node, sizes.ext4);
    const { stage, pid } = await stopped(node, volume, ext4, "mkfs.ext4");
    const assertUntouched = await killed(stage, pid, volume);
    volume.nextEpoch();
    const said = await refusal(
      node.stage(volume),
      "precondition",
      /not on record as never written|data of no known kind/,
    );
    await assertUntouched();
    await node.unstage(volume);
    await volume.unmap();
    return said;
  },
);
