import assert from "node:assert/strict";
import { type GuestNode, GuestVolume, NodeTests, sh, until } from "../kit/node.ts";
import { ext4, xfs } from "../../node/harness.ts";
import { runsOf, wrappedTool } from "../../node/wrapped_tool.ts";
import { VolumeError } from "../../../src/volume/errors.ts";
import {
  checked,
  endAnyhow,
  goesOn,
  goesOnMs,
  inUse,
  layered,
  reboot,
  rebootKept,
  sizes,
  takeDown,
  watched,
  writerOn,
} from "./device_layer_kit.ts";

/** A router that is away while a tool works on a volume, again and again, and for long. */
export const absenceTests = new NodeTests();

/** The tools that wait while there is a file of that name, so that all they do is done while the router is away. */
const held = ["mkfs.ext4", "mkfs.xfs", "e2fsck", "resize2fs", "xfs_growfs", "umount"] as const;
type Held = typeof held[number];

const absentMs = 4_000;
const rounds = 10;
/** Ten reboots take longer than other tests, in milliseconds. */
const roundsMs = 180_000;

interface Part {
  readonly prepare?: (node: GuestNode, volume: GuestVolume) => Promise<unknown>;
  readonly act: (node: GuestNode, volume: GuestVolume) => Promise<unknown>;
  /** Takes the volume off the node where the call has left it there. */
  readonly end?: (node: GuestNode, volume: GuestVolume) => Promise<unknown>;
}

type Kind = "ext4" | "xfs";
const capabilities = { ext4, xfs };

function kindOf(tool: Held): Kind {
  return tool.includes("xfs") ? "xfs" : "ext4";
}

function partOf(tool: Held): Part {
  const kind = kindOf(tool);
  const capability = capabilities[kind];
  const stage: Part["act"] = (node, volume) => node.stage(volume, { ...layered, capability });
  const unstage: Part["act"] = (node, volume) => node.unstage(volume);
  const grow: Part["act"] = (node, volume) => node.grow(volume, sizes[kind] * 2n, node.target(volume.id));
  const stageAndWrite = async (node: GuestNode, volume: GuestVolume) => {
    await stage(node, volume);
    await node.publish(volume, { capability });
    // It lies in the kernel's memory, and goes to the disk while the file system is unmounted.
    await sh(`seq 1 100000 > ${node.target(volume.id)}/numbers`);
  };
  const publishOnceMore: Part["end"] = async (node, volume) => {
    await node.publish(volume, { capability });
    await node.unpublish(volume);
    await untilDone(() => node.unstage(volume));
  };
  const takeOff: Part["end"] = async (node, volume) => {
    await node.unpublish(volume);
    await untilDone(() => node.unstage(volume));
  };
  const parts: Readonly<Record<Held, Part>> = {
    "mkfs.ext4": { act: stage, end: publishOnceMore },
    "mkfs.xfs": { act: stage, end: publishOnceMore },
    "e2fsck": {
      prepare: async (node, volume) => {
        await stageAndWrite(node, volume);
        await node.unpublish(volume);
        await node.unstage(volume);
      },
      act: stage,
      end: publishOnceMore,
    },
    "resize2fs": { prepare: stageAndWrite, act: grow, end: takeOff },
    "xfs_growfs": { prepare: stageAndWrite, act: grow, end: takeOff },
    "umount": {
      prepare: async (node, volume) => {
        await stageAndWrite(node, volume);
        await node.unpublish(volume);
      },
      act: unstage,
    },
  };
  return parts[tool];
}

for (const tool of held) {
  const kind = kindOf(tool);
  const { prepare, act, end } = partOf(tool);
  absenceTests.add(
    `a reboot of the router in the middle of ${tool} costs a pause`,
    (node) =>
      watched(node, async () => {
        const volume = new GuestVolume(node, "pvc-1", sizes[kind]);
        await prepare?.(node, volume);
        const hold = `${node.folder}/hold`;
        await Deno.writeTextFile(hold, "");
        const before = runsOf(node.folder, tool);
        const first = act(node, volume).then(() => "by the same call", (error) => {
          assert.ok(VolumeError.is(error), String(error));
          return `by a later call: ${error.message}`;
        });
        await until(`${tool} runs`, () => runsOf(node.folder, tool) > before);
        volume.withdraw();
        await Deno.remove(hold);
        await new Promise((resolve) => setTimeout(resolve, absentMs));
        volume.export();
        const outcome = await first;
        await untilDone(() => act(node, volume));
        await end?.(node, volume);
        assert.equal(await sh("dmsetup ls"), "No devices found");
        await checked(volume, kind);
        if (prepare === undefined) return `done ${outcome}; clean`;
        const numbers = await sh(
          `mount -o ro,loop ${volume.image} /mnt; md5sum < /mnt/numbers; umount /mnt`,
        );
        assert.equal(numbers, await sh("seq 1 100000 | md5sum"));
        return `done ${outcome}; all that was written is there; clean`;
      }),
    (folder) => ({
      toolPaths: wrappedTool(
        folder,
        tool,
        `while [ -e ${folder}/hold ]; do sleep 0.05; done; exec "$tool" "$@"`,
      ),
    }),
  );
}

/** Calls again, as the kubelet does. */
async function untilDone(act: () => Promise<unknown>): Promise<void> {
  await until("the call goes through", () =>
    act().then(() => true, (error) => {
      assert.ok(VolumeError.is(error), String(error));
      return false;
    }), 30_000);
}

absenceTests.add("ten reboots in a row cost ten pauses", (node) =>
  watched(node, async () => {
    const volume = await inUse(node, ext4);
    const writer = writerOn(node);
    const tookMs: number[] = [];
    try {
      await writer.begins();
      for (let round = 0; round < rounds; round++) {
        if (round % 2 === 0) await reboot(volume, 1_000);
        else await rebootKept(volume, 1_000);
        tookMs.push(await goesOn(writer));
      }
      const said = await takeDown(node, volume, writer);
      await checked(volume, "ext4");
      return `went on ${tookMs.join(", ")} ms after the router; ${said}; clean`;
    } finally {
      await endAnyhow(volume, writer);
    }
  }, roundsMs));

absenceTests.add(
  "a router that is away for longer than the kernel tries to connect is connected again",
  (node) =>
    watched(node, async () => {
      const volume = await inUse(node, ext4);
      const writer = writerOn(node);
      try {
        await writer.begins();
        // The kernel's own patience, of an hour as well as of seconds, ends while the node service waits.
        await sh("for attribute in /sys/class/nvme/nvme*/ctrl_loss_tmo; do echo 4 > $attribute; done");
        volume.withdraw();
        const goneMs = await until(
          "the kernel gives up",
          async () => (await node.states(volume)).length === 0,
        );
        await new Promise((resolve) => setTimeout(resolve, 15_000));
        assert.ok((await node.problems(volume)).includes("DeviceWaiting"));
        volume.export();
        const tookMs = await goesOn(writer);
        assert.ok(tookMs <= goesOnMs, `went on after ${tookMs} ms`);
        const said = await takeDown(node, volume, writer);
        await checked(volume, "ext4");
        return `given up after ${goneMs} ms, went on ${tookMs} ms after the router; ${said}; clean`;
      } finally {
        await endAnyhow(volume, writer);
      }
    }),
);

absenceTests.add(
  "a router that opens its port before its exports are back is connected again",
  (node) =>
    watched(node, async () => {
      const volume = await inUse(node, ext4);
      // It keeps the port open, so that the kernel is refused by name instead of by silence.
      const other = new GuestVolume(node, "pvc-2", sizes.ext4);
      const writer = writerOn(node);
      try {
        await writer.begins();
        volume.withdraw();
        await new Promise((resolve) => setTimeout(resolve, 8_000));
        const during = (await node.states(volume)).join() || "given up";
        volume.export();
        const tookMs = await goesOn(writer);
        assert.ok(tookMs <= goesOnMs, `went on after ${tookMs} ms`);
        const said = await takeDown(node, volume, writer);
        await checked(volume, "ext4");
        return `the connection was ${during}; went on ${tookMs} ms after the export; ${said}; clean`;
      } finally {
        other.withdraw();
        await endAnyhow(volume, writer);
      }
    }),
);
