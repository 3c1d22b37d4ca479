import { refusal } from "../fakes/refusal.ts";
import assert from "node:assert/strict";
import { call, checksum, ext4, nodeTest, RealNode, run, TestVolume, volumeBytes, xfs } from "./harness.ts";
import { runsOf, wrappedTool } from "./wrapped_tool.ts";
import { mountsUnder } from "../support/left_here.ts";

const mebibyte = 1n << 20n;
const small = 16n * mebibyte;

/** Runs an action between the connecting of a volume and the first read of its device. */
function beforeProbe(node: RealNode, action: () => Promise<unknown>): void {
  const { filesystems } = node.deps;
  const probe = filesystems.probe.bind(filesystems);
  filesystems.probe = async (...args) => {
    await action();
    return await probe(...args);
  };
}

for (const capability of [ext4, xfs]) {
  const { filesystem } = capability as { filesystem: "ext4" | "xfs" };

  nodeTest(
    `${filesystem}: a device whose tail cannot be read is not formatted, blank as its head is`,
    async (node) => {
      const volume = new TestVolume(node, "pvc-1", small);
      // Without the device's knowledge: reads from there on fail with EIO.
      const cutBytes = small - 2n * mebibyte;
      beforeProbe(node, () => Deno.truncate(volume.image, Number(cutBytes)));
      await assert.rejects(
        node.stage(volume, { capability }),
        refusal("unavailable", /because a read fails/),
      );
      await assertBlank(volume, cutBytes);
      assert.deepEqual(mountsUnder(node.folder), []);
      assert.deepEqual(await node.deps.connector.connected(call()), []);
    },
  );

  nodeTest(
    `${filesystem}: a device of which nothing can be read is not formatted, though blkid finds nothing on it`,
    async (node) => {
      const volume = new TestVolume(node, "pvc-1", small);
      let said = "";
      beforeProbe(node, async () => {
        await Deno.truncate(volume.image, 0);
        const command = new Deno.Command("blkid", { args: ["-p", await node.device(volume)] });
        said = `exit ${(await command.output()).code}`;
      });
      await assert.rejects(
        node.stage(volume, { capability }),
        refusal("unavailable", /because a read fails/),
      );
      assert.equal(said, "exit 2", "the same as for a blank device");
      await assertBlank(volume, 0n);
    },
  );

  nodeTest(`${filesystem}: a device that ends in the middle of a read is not formatted`, async (node) => {
    const volume = new TestVolume(node, "pvc-1", small);
    const cutBytes = small - mebibyte / 2n;
    beforeProbe(node, () => Deno.truncate(volume.image, Number(cutBytes)));
    await assert.rejects(
      node.stage(volume, { capability }),
      refusal("unavailable", /Cannot read the device/),
    );
    await assertBlank(volume, cutBytes);
  });

  nodeTest(`${filesystem}: the very last sector of a device of odd size is read`, async (node) => {
    const oddBytes = volumeBytes + 512n;
    const blank = new TestVolume(node, "pvc-blank", oddBytes);
    await node.stage(blank, { capability });
    await node.unstage(blank);
    const used = new TestVolume(node, "pvc-used", oddBytes);
    const file = await Deno.open(used.image, { write: true });
    await file.seek(oddBytes - 1n, Deno.SeekMode.Start);
    await file.write(new Uint8Array([1]));
    file.close();
    await assert.rejects(
      node.stage(used, { capability }),
      refusal("precondition", /data of no known kind.*nothing was changed/),
    );
  });

  nodeTest(
    `${filesystem}: a device that lost both ends of its file system is not formatted, though both are blank`,
    async (node) => {
      const volume = new TestVolume(node, "pvc-1");
      await node.stage(volume, { capability });
      await node.unstage(volume);
      for (const at of [0n, volumeBytes / mebibyte - 1n]) {
        const zeros = [
          "if=/dev/zero",
          `of=${volume.image}`,
          "bs=1M",
          "count=1",
          "conv=notrunc",
          "status=none",
        ];
        await run("dd", ...zeros, `seek=${at}`);
      }
      const before = await checksum(volume.image);
      await assert.rejects(node.stage(volume, { capability }), refusal("precondition", /made here is gone/));
      // A node that knows nothing of the volume has to see it on the device.
      await Deno.remove(`${node.state}/known`, { recursive: true });
      await assert.rejects(
        node.stage(volume, { capability }),
        refusal("precondition", /data of no known kind/),
      );
      assert.equal(await checksum(volume.image), before);
    },
  );

  nodeTest(
    `${filesystem}: a used volume that comes back blank in the same epoch is not formatted`,
    async (node) => {
      const volume = new TestVolume(node, "pvc-1");
      await node.stage(volume, { capability });
      await Deno.writeTextFile(`${node.staging("pvc-1")}/data`, "precious");
      await node.unstage(volume);
      await run("truncate", "--size=0", volume.image);
      await run("truncate", `--size=${volumeBytes}`, volume.image);
      const before = await checksum(volume.image);
      await assert.rejects(
        node.stage(volume, { capability }),
        refusal("precondition", /made here is gone.*allow-format/),
      );
      assert.equal(await checksum(volume.image), before);
    },
  );

  nodeTest(
    `${filesystem}: a mkfs that is killed, early or late, is recovered from by the next stage`,
    async ({ folder }) => {
      for (const seconds of ["0.002", "0.006", "0.012", "0.025", "0.05", "0.1"]) {
        const inner = `${folder}/killed-after-${seconds}`;
        await Deno.mkdir(inner);
        const lines = `[ "$times" = 1 ] || exec "$tool" "$@"; exec timeout -s KILL ${seconds} "$tool" "$@"`;
        const toolPaths = wrappedTool(inner, `mkfs.${filesystem}`, lines);
        const node = new RealNode(inner, "node-1", { toolPaths });
        try {
          const volume = new TestVolume(node, "pvc-1");
          const first = await node.stage(volume, { capability }).then(() => "OK", (error) => error);
          assert.ok(first === "OK" && seconds !== "0.002" || refusal("unavailable")(first), String(first));
          await node.stage(volume, { capability });
          await Deno.writeTextFile(`${node.staging("pvc-1")}/data`, "works");
          await node.unstage(volume);
          await run(
            ...(filesystem === "ext4" ? ["e2fsck", "-fn"] : ["xfs_repair", "-nf"]) as [string, string],
            volume.image,
          );
          assert.ok(runsOf(inner, `mkfs.${filesystem}`) <= 2);
        } finally {
          node.libc.close();
        }
      }
    },
  );
}

nodeTest(
  "ext4: a used file system is kept where the state file says that mkfs was begun, as one from a backup may",
  async (node) => {
    const volume = new TestVolume(node, "pvc-1", small);
    await node.stage(volume);
    const path = `${node.state}/volumes/pvc-1.json`;
    const { content, here: { mountedAs: _, ...here }, ...rest } = JSON.parse(await Deno.readTextFile(path));
    await Deno.writeTextFile(`${node.staging("pvc-1")}/data`, "kept");
    await node.unstage(volume);
    // Before its log is replayed, a file system that a crash has left is inconsistent, too.
    await run("debugfs", "-w", "-R", "sif /data links_count 2", volume.image);
    const begun = {
      content: { ...content, filesystem: "started", used: false, rootOpened: false },
      here: { ...here, staged: false },
    };
    await Deno.writeTextFile(path, JSON.stringify({ ...rest, ...begun }));
    await node.stage(volume);
    assert.equal(await Deno.readTextFile(`${node.staging("pvc-1")}/data`), "kept");
    await node.unstage(volume);
  },
);

/** Checks that nothing was written to the image, and that it was not made longer. */
async function assertBlank(volume: TestVolume, sizeBytes: bigint): Promise<void> {
  const { size } = await Deno.stat(volume.image);
  assert.equal(BigInt(size), sizeBytes);
  await run("cmp", `--bytes=${sizeBytes}`, volume.image, "/dev/zero");
}
