import assert from "node:assert/strict";
import { type GuestNode, GuestVolume, NodeTests, sh, until } from "../kit/node.ts";
import { existsSync } from "node:fs";
import { wrappedTool } from "../../node/wrapped_tool.ts";
import { isLong } from "../../support/long.ts";
import type { ToolName } from "../../../src/host/tools.ts";
import { VolumeError } from "../../../src/volume/errors.ts";
import {
  capabilities,
  contentOf,
  goesOn,
  goesOnMs,
  type Kind,
  kindsOf,
  layered,
  reboot,
  rebootKept,
  sizes,
  takeDown,
  watched,
  written,
} from "./device_layer_kit.ts";

/** A router that is away while a tool works on a volume, again and again, and for long. */
export const absenceTests = new NodeTests();

const absentMs = 4_000;
const rounds = 10;
/** Ten reboots take longer than other tests, in milliseconds. */
const roundsMs = 180_000;

/** A tool that waits while the router goes, so that all it does is done while the router is away, and the call it works for. */
interface Held {
  readonly kind: Kind;
  readonly tool: ToolName;
  /** Its first word, where it waits with that only. */
  readonly word?: string;
  readonly during: "first stage" | "stage" | "expand" | "unstage";
  readonly readOnly?: boolean;
}

const held: readonly Held[] = [
  { kind: "ext4", tool: "mkfs.ext4", during: "first stage" },
  { kind: "xfs", tool: "mkfs.xfs", during: "first stage" },
  { kind: "ext4", tool: "e2fsck", during: "stage" },
  { kind: "ext4", tool: "resize2fs", during: "expand" },
  { kind: "xfs", tool: "xfs_growfs", during: "expand" },
  { kind: "ext4", tool: "umount", during: "unstage" },
];

/** The kernel checks xfs while it is mounted; nothing but the map is made or changed for a raw block volume. */
const heldInLong: readonly Held[] = [
  { kind: "xfs", tool: "mount", during: "stage" },
  { kind: "xfs", tool: "xfs_logprint", during: "stage", readOnly: true },
  { kind: "xfs", tool: "umount", during: "unstage" },
  { kind: "block", tool: "dmsetup", word: "create", during: "stage" },
  { kind: "block", tool: "dmsetup", word: "load", during: "expand" },
  { kind: "block", tool: "dmsetup", word: "remove", during: "unstage" },
];

interface Part {
  readonly prepare?: (node: GuestNode, volume: GuestVolume) => Promise<unknown>;
  readonly act: (node: GuestNode, volume: GuestVolume) => Promise<unknown>;
  /** Takes the volume off the node where the call has left it there. */
  readonly end?: (node: GuestNode, volume: GuestVolume) => Promise<unknown>;
}

function partOf({ kind, during, readOnly = false }: Held): Part {
  const capability = capabilities[kind];
  const stage: Part["act"] = (node, volume) => node.stage(volume, { ...layered, capability });
  const unstage: Part["act"] = (node, volume) => node.unstage(volume);
  const takeOff: Part["end"] = async (node, volume) => {
    await node.unpublish(volume);
    await untilDone(() => node.unstage(volume));
  };
  const stageAndWrite = async (node: GuestNode, volume: GuestVolume) => {
    await stage(node, volume);
    await node.publish(volume, { capability });
    const target = node.target(volume.id);
    // In a file it lies in the kernel's memory, and goes to the disk while the file system is unmounted.
    if (kind !== "block") await sh(`seq 1 100000 > ${target}/numbers`);
    else await sh(`seq 1 100000 | dd of=${target} bs=64k iflag=fullblock conv=notrunc status=none`);
  };
  const publishOnceMore: Part["end"] = async (node, volume) => {
    await node.publish(volume, { capability, readOnly });
    await takeOff(node, volume);
  };
  switch (during) {
    case "first stage":
      return { act: stage, end: publishOnceMore };
    case "stage":
      return {
        prepare: async (node, volume) => {
          await stageAndWrite(node, volume);
          await takeOff(node, volume);
          volume.readOnly = readOnly;
        },
        act: stage,
        end: publishOnceMore,
      };
    case "expand":
      return {
        prepare: stageAndWrite,
        act: (node, volume) => node.grow(volume, sizes[kind] * 2n, node.target(volume.id)),
        end: takeOff,
      };
    case "unstage":
      return {
        prepare: async (node, volume) => {
          await stageAndWrite(node, volume);
          await node.unpublish(volume);
        },
        act: unstage,
      };
  }
}

for (const each of [...held, ...(isLong ? heldInLong : [])]) {
  const { kind, tool, word = "", during } = each;
  const { prepare, act, end } = partOf(each);
  absenceTests.add(
    `${kind}: a reboot of the router in the middle of ${tool} ${
      word && `${word} `
    }during a ${during} costs a pause`,
    (node) =>
      watched(node, async () => {
        const volume = new GuestVolume(node, "pvc-1", sizes[kind]);
        await prepare?.(node, volume);
        const hold = `${node.folder}/hold`;
        await Deno.writeTextFile(hold, "");
        const first = act(node, volume).then(() => "by the same call", (error) => {
          assert.ok(VolumeError.is(error), String(error));
          return `by a later call: ${error.message}`;
        });
        await until(`${tool} runs`, () => existsSync(`${node.folder}/held`));
        volume.withdraw();
        await Deno.remove(hold);
        await new Promise((resolve) => setTimeout(resolve, absentMs));
        volume.export();
        const outcome = await first;
        await untilDone(() => act(node, volume));
        await end?.(node, volume);
        assert.equal(await sh("dmsetup ls"), "No devices found");
        const isWritten = prepare !== undefined;
        const numbers = await contentOf(kind, volume, isWritten ? "numbers" : "../dev/null");
        if (isWritten) assert.ok(numbers === await sh("seq 1 100000"), "what was written is not there");
        return `done ${outcome}; ${isWritten ? "all that was written is there" : "clean"}`;
      }),
    (folder) => ({
      toolPaths: wrappedTool(
        folder,
        tool,
        `case "$*" in ${word}*) while [ -e ${folder}/hold ]; do touch ${folder}/held; sleep 0.05; done;; esac\n` +
          'exec "$tool" "$@"',
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

for (const kind of kindsOf("ext4")) {
  absenceTests.add(
    `${kind}: ten reboots in a row cost ten pauses`,
    (node) =>
      watched(node, () =>
        written(node, kind, async (volume, writer) => {
          const tookMs: number[] = [];
          for (let round = 0; round < rounds; round++) {
            if (round % 2 === 0) await reboot(volume, 1_000);
            else await rebootKept(volume, 1_000);
            tookMs.push(await goesOn(writer));
          }
          const said = await takeDown(node, kind, volume, writer);
          return `went on ${tookMs.join(", ")} ms after the router; ${said}`;
        }), roundsMs),
  );

  absenceTests.add(
    `${kind}: a router that is away for longer than the kernel tries to connect is connected again`,
    (node) =>
      watched(node, () =>
        written(node, kind, async (volume, writer) => {
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
          const said = await takeDown(node, kind, volume, writer);
          return `given up after ${goneMs} ms, went on ${tookMs} ms after the router; ${said}`;
        })),
  );

  absenceTests.add(
    `${kind}: a router that opens its port before its exports are back is connected again`,
    (node) =>
      watched(node, () =>
        written(node, kind, async (volume, writer) => {
          // It keeps the port open, so that the kernel is refused by name instead of by silence.
          const other = new GuestVolume(node, "pvc-2", sizes.ext4);
          try {
            volume.withdraw();
            await new Promise((resolve) => setTimeout(resolve, 8_000));
            const during = (await node.states(volume)).join() || "given up";
            volume.export();
            const tookMs = await goesOn(writer);
            assert.ok(tookMs <= goesOnMs, `went on after ${tookMs} ms`);
            const said = await takeDown(node, kind, volume, writer);
            return `the connection was ${during}; went on ${tookMs} ms after the export; ${said}`;
          } finally {
            other.withdraw();
          }
        })),
  );
}
