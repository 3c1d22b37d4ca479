import assert from "node:assert/strict";
import { callWithin, type GuestNode, GuestVolume, NodeTests, refusal, sh, shell } from "../kit/node.ts";
import { call, ext4, xfs } from "../../node/harness.ts";
import { mountsUnder } from "../../support/left_here.ts";
import { runsOf, wrappedTool } from "../../node/wrapped_tool.ts";
import { VolumeError, type VolumeErrorKind } from "../../../src/volume/errors.ts";

const small = 32n << 20n;
const sectors = small / 512n;
const sectorsPerMiB = 2048n;

/** A tool that counts its runs, so that a mkfs that failed is seen as well. */
function counted(folder: string): { readonly toolPaths: ReturnType<typeof wrappedTool> } {
  const tools = ["mkfs.ext4", "mkfs.xfs"] as const;
  const wrapped = tools.map((tool) => wrappedTool(folder, tool, 'exec "$tool" "$@"'));
  return { toolPaths: Object.assign({}, ...wrapped) };
}

/** How often a file system was made, or begun. */
function formats(node: GuestNode): number {
  return runsOf(node.folder, "mkfs.ext4") + runsOf(node.folder, "mkfs.xfs");
}

async function unmap(node: GuestNode, volume: GuestVolume): Promise<void> {
  await volume.unmap();
  assert.deepEqual(await node.connector.connected(call()), []);
  assert.deepEqual(mountsUnder(node.folder), []);
}

const bad = (from: bigint, length: bigint): string => {
  const rows = [
    from > 0n ? `0 ${from} linear $below 0` : "",
    `${from} ${length} error`,
    from + length < sectors
      ? `${from + length} ${sectors - from - length} linear $below ${from + length}`
      : "",
  ];
  return rows.filter((row) => row !== "").join("\n");
};

/** Devices that cannot be read, or not always. */
export const readErrorTests = new NodeTests();

const locations: readonly (readonly [string, string])[] = [
  ["all of it", `0 ${sectors} error`],
  ["its first sectors", bad(0n, 8n)],
  ["a block in the middle of its head", bad(1024n, 8n)],
  ["its last sectors", bad(sectors - 8n, 8n)],
  ["the first block of its tail", bad(sectors - sectorsPerMiB, 8n)],
];
for (const [index, [location, table]] of locations.entries()) {
  const capability = index % 2 === 0 ? ext4 : xfs;
  readErrorTests.add(
    `dm-error: a device is not formatted of which ${location} cannot be read`,
    async (node) => {
      const volume = await GuestVolume.mapped(node, "pvc-1", small, table);
      const before = await volume.digest();
      const said = await refusal(
        node.stage(volume, { capability }),
        "unavailable",
        /Cannot read the device because a read fails/,
      );
      assert.equal(await volume.digest(), before);
      assert.equal(formats(node), 0);
      await unmap(node, volume);
      return said;
    },
    counted,
  );
}

readErrorTests.add(
  "dm-flakey: a device whose reads fail now and then is never formatted over what it holds",
  async (node) => {
    const volume = await GuestVolume.mapped(node, "pvc-1", small, `0 ${sectors} linear $below 0`);
    await sh(`dd if=/dev/urandom of=${volume.device} bs=4k count=1 seek=100 oflag=direct status=none`);
    const before = await volume.digest();
    await volume.remap(`0 ${sectors} flakey $below 0 1 1 ${await errorReads(volume.below!)}`);
    const outcomes = new Map<string, number>();
    for (let round = 0; round < 5; round++) {
      const outcome = await node.stage(volume).then(() => "OK", (error) => error);
      assert.ok(VolumeError.is(outcome), `formatted or mounted: ${outcome}`);
      const word = /a read fails|data of no known kind|does not appear/.exec(outcome.message)?.[0] ??
        outcome.message;
      outcomes.set(word, (outcomes.get(word) ?? 0) + 1);
      assert.equal(await volume.digest(), before);
    }
    assert.equal(formats(node), 0);
    await unmap(node, volume);
    return [...outcomes].map(([word, count]) => `${count} × ${word}`).join(", ");
  },
  counted,
);

readErrorTests.add(
  "dm-flakey: a device that drops what is written is not taken for formatted, and not formatted again",
  async (node) => {
    const volume = await GuestVolume.mapped(
      node,
      "pvc-1",
      small,
      `0 ${sectors} flakey $below 0 0 600 1 drop_writes`,
    );
    const before = await volume.digest();
    const first = await refusal(node.stage(volume), "precondition", /Cannot mount/);
    const again = await refusal(
      node.stage(volume),
      "precondition",
      /file system made here is gone/,
    );
    assert.equal(await volume.digest(), before);
    assert.equal(formats(node), 1);
    await sh(`nvme disconnect -n ${volume.nqn}`);
    await unmap(node, volume);
    return `${first.slice(0, 40)}…; then: ${again.slice(0, 90)}…`;
  },
  counted,
);

/** Whether the kernel can be told to fail reads alone; else all that is asked fails. */
async function errorReads(below: string): Promise<string> {
  const table = `0 8 flakey ${below} 0 1 1 1 error_reads`;
  const { code } = await shell(`dmsetup create probe --table '${table}' && dmsetup remove probe`);
  return code === 0 ? "1 error_reads" : "";
}

/** Devices of another size, or late. */
export const sizeTests = new NodeTests();

const refuses: readonly (readonly [string, bigint, VolumeErrorKind, RegExp])[] = [
  ["is empty", 0n, "unavailable", /does not appear/],
  [
    "is shorter than the volume",
    small - (1n << 20n),
    "identity-mismatch",
    /expected size>=33554432 found size=32505856/,
  ],
  [
    "is longer than the volume",
    small + (1n << 20n),
    "precondition",
    /its size is not the one it was published with/,
  ],
];
for (const [what, sizeBytes, kind, text] of refuses) {
  sizeTests.add(`a device is not formatted that ${what}`, async (node) => {
    const volume = new GuestVolume(node, "pvc-1", small);
    volume.withdraw();
    await Deno.truncate(volume.image, Number(sizeBytes));
    volume.export();
    const within = sizeBytes === 0n ? callWithin(5_000) : call();
    const said = await refusal(node.service.stage(node.stageRequest(volume), within), kind, text);
    assert.equal((await Deno.stat(volume.image)).size, Number(sizeBytes));
    await sh(`cmp -n ${sizeBytes} ${volume.image} /dev/zero`);
    assert.equal(formats(node), 0);
    assert.deepEqual(await node.connector.connected(call()), []);
    return said;
  }, counted);
}

sizeTests.add("a device that comes late is waited for, and judged by what is on it", async (node) => {
  const volume = new GuestVolume(node, "pvc-1", small);
  await sh(`dd if=/dev/urandom of=${volume.image} bs=4k count=1 seek=8191 conv=notrunc status=none`);
  const before = await volume.digest();
  volume.nvmet.setEnabled(volume.nqn, false);
  setTimeout(() => volume.nvmet.setEnabled(volume.nqn, true), 2_000);
  const said = await refusal(node.stage(volume), "precondition", /data of no known kind/);
  assert.equal(await volume.digest(), before);
  assert.equal(formats(node), 0);
  return said;
}, counted);

/** Devices of which blkid says nothing. */
export const contentTests = new NodeTests();

for (
  const [what, line, kind, text] of [
    [
      "fails",
      "echo 'blkid: error: cannot read' >&2; exit 4",
      "unavailable",
      /signatures cannot be read: blkid exit=4/,
    ],
    ["is killed", "kill -KILL $$", "unavailable", /signatures cannot be read: blkid/],
    ["says that there is nothing on a device with data", "exit 2", "precondition", /data of no known kind/],
  ] as const
) {
  contentTests.add(`a device is not formatted when blkid ${what}`, async (node) => {
    const volume = new GuestVolume(node, "pvc-1", small);
    if (kind === "precondition") await sh(`mke2fs -q -t ext4 ${volume.image}`);
    const before = await volume.digest();
    const said = await refusal(node.stage(volume), kind, text);
    assert.equal(await volume.digest(), before);
    assert.equal(formats(node), 0);
    return said;
  }, (folder) => ({
    toolPaths: { ...counted(folder).toolPaths, ...wrappedTool(folder, "blkid", line) },
  }));
}
