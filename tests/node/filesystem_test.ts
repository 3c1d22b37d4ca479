import { refusal, unsettled } from "../fakes/refusal.ts";
import assert from "node:assert/strict";
import { canGrowExt4Online } from "../../src/cli/acceptance/scratch.ts";
import { call, checksum, ext4, nodeTest, RealNode, run, TestVolume, volumeBytes, xfs } from "./harness.ts";
import { wrappedTool } from "./wrapped_tool.ts";
import { mountsUnder } from "../support/left_here.ts";

const mebibyte = 1048576;

/** Writes a text to a place before the end of a volume that is not staged, as a file that lies there would have it. */
async function planted(volume: TestVolume, beforeEndBytes: number, text: string): Promise<void> {
  using file = await Deno.open(volume.image, { write: true });
  await file.seek(-beforeEndBytes, Deno.SeekMode.End);
  await file.write(new TextEncoder().encode(text));
}

for (const capability of [ext4, xfs]) {
  const { filesystem } = capability as { filesystem: string };

  nodeTest(`${filesystem}: data outlives unpublish, unstage, a new epoch and a new stage`, async (node) => {
    const volume = new TestVolume(node, "pvc-1");
    await node.stage(volume, { capability });
    await node.publish(volume, { capability });
    await Deno.writeTextFile(`${node.target("pvc-1")}/data`, "kept");
    await node.unpublish(volume);
    await node.unstage(volume);
    assert.deepEqual(mountsUnder(node.folder), []);
    assert.deepEqual(await node.deps.connector.connected(call()), []);
    volume.nextEpoch();
    await node.stage(volume, { capability });
    await node.publish(volume, { capability });
    assert.equal(await Deno.readTextFile(`${node.target("pvc-1")}/data`), "kept");
    await node.unpublish(volume);
    await node.unstage(volume);
    assert.deepEqual(await node.deps.paths.list(`${node.state}/volumes`), []);
    assert.deepEqual(await node.deps.paths.list(`${node.kubelet}/pods/pod-1`), []);
  });

  nodeTest(
    `${filesystem}: a pod cannot make tools take its volume for a member of an array`,
    async (node) => {
      const volume = new TestVolume(node, "pvc-1");
      await node.stage(volume, { capability });
      await node.publish(volume, { capability });
      // Both are looked for at the end of a device, where any user may write.
      const sector = new Uint8Array(512);
      sector.set(new TextEncoder().encode("$XIDE$"));
      const bytes = new Uint8Array(mebibyte).map((_, at) => sector[at % 512]!);
      const file = await Deno.open(`${node.target("pvc-1")}/upload`, { write: true, create: true });
      try {
        for (;;) await file.write(bytes);
      } catch (error) {
        assert.match(String(error), /No space left/);
      } finally {
        file.close();
      }
      await node.unpublish(volume);
      await node.unstage(volume);
      await planted(volume, 1024, "Intel Raid ISM Cfg Sig. 1.3.00");
      const blkid = await new Deno.Command("blkid", { args: ["-p", volume.image] }).output();
      assert.doesNotMatch(new TextDecoder().decode(blkid.stdout), new RegExp(`TYPE="${filesystem}"`));
      volume.nextEpoch();
      await node.stage(volume, { capability });
      await node.publish(volume, { capability });
      assert.ok((await Deno.stat(`${node.target("pvc-1")}/upload`)).size > 0);
      await node.unpublish(volume);
      await node.unstage(volume);
    },
  );

  nodeTest(`${filesystem}: every call can be repeated, and there is one mount`, async (node) => {
    const volume = new TestVolume(node, "pvc-1");
    for (let i = 0; i < 2; i++) await node.stage(volume, { capability });
    for (let i = 0; i < 3; i++) await node.publish(volume, { capability });
    assert.deepEqual(mountsUnder(node.folder), [node.staging("pvc-1"), node.target("pvc-1")]);
    await node.stage(volume, { capability });
    for (let i = 0; i < 2; i++) await node.unpublish(volume);
    for (let i = 0; i < 2; i++) await node.unstage(volume);
  });

  // The kernel grows a mounted ext4 only with CAP_SYS_RESOURCE, which some sandboxes withhold even from root: there the
  // refusal is tested.
  const refused = filesystem === "ext4" && !canGrowExt4Online()
    ? refusal("precondition", /CAP_SYS_RESOURCE/)
    : undefined;
  const outcome = refused === undefined ? "grows" : "is not grown without CAP_SYS_RESOURCE, and says so,";

  nodeTest(`${filesystem}: a file system ${outcome} online with its device`, async (node) => {
    const volume = new TestVolume(node, "pvc-1");
    await node.stage(volume, { capability });
    await node.publish(volume, { capability });
    const before = await node.service.stats("pvc-1", node.target("pvc-1"), call());
    volume.grow(volumeBytes * 2n);
    const range = { requiredBytes: volumeBytes * 2n, limitBytes: 0n };
    const request = { volumeId: "pvc-1", volumePath: node.target("pvc-1"), range };
    const expand = node.service.expand(request, call());
    if (refused === undefined) assert.equal(await expand, volumeBytes * 2n);
    else await assert.rejects(expand, refused);
    const after = await node.service.stats("pvc-1", node.target("pvc-1"), call());
    assert.ok(before.kind === "filesystem" && after.kind === "filesystem");
    const grewBytes = after.stats.totalBytes - before.stats.totalBytes;
    if (refused === undefined) assert.ok(grewBytes > volumeBytes * 8n / 10n);
    else assert.equal(grewBytes, 0n);
    await node.unpublish(volume);
    await node.unstage(volume);
  });

  nodeTest(`${filesystem}: a file system smaller than its device ${outcome} by a stage`, async (node) => {
    const volume = new TestVolume(node, "pvc-1");
    await node.stage(volume, { capability });
    await node.unstage(volume);
    volume.grow(volumeBytes * 2n);
    volume.nextEpoch();
    await node.stage(volume, { capability });
    const { problems } = await node.service.volumeHealth("pvc-1", call());
    const reasons = problems.map(({ reason }) => reason);
    assert.deepEqual(reasons, refused === undefined ? [] : ["NotGrown"]);
    if (refused !== undefined) return await node.unstage(volume);
    const answer = await node.service.stats("pvc-1", node.staging("pvc-1"), call());
    assert.ok(answer.kind === "filesystem" && answer.stats.totalBytes > volumeBytes * 17n / 10n);
    assert.ok(answer.stats.totalInodes > 0n && answer.stats.availableBytes <= answer.stats.totalBytes);
    await node.unstage(volume);
  });

  nodeTest(
    `${filesystem}: a read-only stage writes nothing to the device, and lets nobody write`,
    async (node) => {
      const volume = new TestVolume(node, "pvc-1");
      await node.stage(volume, { capability });
      await Deno.writeTextFile(`${node.staging("pvc-1")}/data`, "kept");
      await node.unstage(volume);
      const copy = new TestVolume(node, "pvc-2");
      await Deno.copyFile(volume.image, copy.image);
      copy.mayReplay = true;
      copy.readOnly = true;
      copy.mayFormat = false;
      const before = await checksum(copy.image);
      await node.stage(copy, { capability });
      await node.publish(copy, { capability });
      assert.equal(await Deno.readTextFile(`${node.target("pvc-2")}/data`), "kept");
      await assert.rejects(Deno.writeTextFile(`${node.target("pvc-2")}/other`, "no"), /Read-only/);
      const device = await node.device(copy);
      await assert.rejects(writeAt(device, 0n), /not permitted|denied/i);
      await node.unpublish(copy);
      await node.unstage(copy);
      assert.equal(await checksum(copy.image), before);
    },
  );

  nodeTest(
    `${filesystem}: a read-only publish of a writable volume is read-only there and nowhere else`,
    async (node) => {
      const volume = new TestVolume(node, "pvc-1");
      await node.stage(volume, { capability });
      await node.publish(volume, { capability, readOnly: true });
      await node.publish(volume, { capability, targetPath: node.target("pvc-1", "pod-2") });
      await assert.rejects(Deno.writeTextFile(`${node.target("pvc-1")}/file`, "no"), /Read-only/);
      await Deno.writeTextFile(`${node.target("pvc-1", "pod-2")}/file`, "yes");
      assert.equal(await Deno.readTextFile(`${node.target("pvc-1")}/file`), "yes");
      await assert.rejects(node.publish(volume, { capability }), unsettled("exists-incompatible"));
      await node.unpublish(volume);
      await node.unpublish(volume, "pod-2");
      await node.unstage(volume);
    },
  );

  nodeTest(`${filesystem}: only a new file system's root is open to everyone`, async (node) => {
    const volume = new TestVolume(node, "pvc-1");
    await node.stage(volume, { capability });
    const mode = async () => (await Deno.stat(node.staging("pvc-1"))).mode! & 0o777;
    assert.equal(await mode(), 0o777);
    await Deno.chmod(node.staging("pvc-1"), 0o700);
    await node.stage(volume, { capability });
    await node.unstage(volume);
    volume.nextEpoch();
    await node.stage(volume, { capability });
    assert.equal(await mode(), 0o700);
    await node.unstage(volume);
  });

  nodeTest(
    `${filesystem}: a new file system's root stays open when the node loses power right after`,
    async (node) => {
      const volume = new TestVolume(node, "pvc-1");
      await node.stage(volume, { capability });
      const copy = new TestVolume(node, "pvc-2");
      await run("cp", "--sparse=always", volume.image, copy.image);
      await node.unstage(volume);
      copy.mayFormat = false;
      await node.stage(copy, { capability });
      assert.equal((await Deno.stat(node.staging("pvc-2"))).mode! & 0o777, 0o777);
      await node.unstage(copy);
    },
  );

  nodeTest(`${filesystem}: an imported one is mounted though its data looks like a CD`, async (node) => {
    const volume = new TestVolume(node, "pvc-1");
    await node.stage(volume, { capability });
    await node.unstage(volume);
    await writeAt(volume.image, 32_768n, new TextEncoder().encode("\x01CD001\x01"));
    volume.mayFormat = false;
    volume.imported = true;
    await node.stage(volume, { capability });
    await node.unstage(volume);
  });

  nodeTest(`${filesystem}: no data of any kind is formatted over`, async (node) => {
    const small = 16n * BigInt(mebibyte);
    const contents: readonly [string, (image: string) => Promise<unknown>][] = [
      ["another file system", (image) => run("mkfs.ext4", "-q", "-t", "ext2", image)],
      ["swap", (image) => run("mkswap", image)],
      ["garbage near its beginning", (image) => writeAt(image, 700_000n)],
      ["garbage at its very end", (image) => writeAt(image, small - 1n)],
      ["a partition table", (image) => writeAt(image, 510n, new Uint8Array([0x55, 0xaa]))],
    ];
    for (const [at, [, fill]] of contents.entries()) {
      const volume = new TestVolume(node, `pvc-${at}`, small);
      await fill(volume.image);
      const before = await checksum(volume.image);
      await assert.rejects(
        node.stage(volume, { capability }),
        refusal("precondition", new RegExp(`volume=pvc-${at}; nothing was changed`)),
      );
      assert.equal(await checksum(volume.image), before);
      assert.deepEqual(mountsUnder(node.folder), []);
      assert.deepEqual(await node.deps.connector.connected(call()), []);
      assert.deepEqual(await node.deps.paths.list(`${node.state}/volumes`), []);
    }
  });

  nodeTest(
    `${filesystem}: the other of the two file systems is neither formatted over nor mounted`,
    async (node) => {
      const volume = new TestVolume(node, "pvc-1");
      await node.stage(volume, { capability: filesystem === "ext4" ? xfs : ext4 });
      await node.unstage(volume);
      await assert.rejects(
        node.stage(volume, { capability }),
        refusal("precondition", /it holds .*use it with fsType/),
      );
    },
  );

  nodeTest(`${filesystem}: an interrupted mkfs is found and started again`, async (node) => {
    const volume = new TestVolume(node, "pvc-1");
    await node.stage(volume, { capability });
    const stagingState = `${node.state}/volumes/pvc-1.json`;
    const started = JSON.parse(await Deno.readTextFile(stagingState));
    await node.unstage(volume);
    // Only the beginnings exist, as mkfs leaves them: no superblock, but not blank either.
    await Deno.truncate(volume.image, 0);
    await Deno.truncate(volume.image, Number(volumeBytes));
    await writeAt(volume.image, 500_000n);
    await Deno.writeTextFile(stagingState, JSON.stringify(begunAgain(started)));
    await node.stage(volume, { capability });
    assert.equal(JSON.parse(await Deno.readTextFile(stagingState)).content.filesystem, "done");
    await Deno.writeTextFile(`${node.staging("pvc-1")}/data`, "works");
    await node.unstage(volume);
  });

  nodeTest(`${filesystem}: a mkfs whose end is not recorded is kept if it is complete`, async (node) => {
    const volume = new TestVolume(node, "pvc-1");
    await node.stage(volume, { capability });
    const stagingState = `${node.state}/volumes/pvc-1.json`;
    const started = JSON.parse(await Deno.readTextFile(stagingState));
    await node.unstage(volume);
    const uuid = () => run("blkid", "-p", "-o", "value", "-s", "UUID", volume.image);
    const before = await uuid();
    await Deno.writeTextFile(stagingState, JSON.stringify(begunAgain(started)));
    await node.stage(volume, { capability });
    assert.equal(await uuid(), before);
    assert.equal((await Deno.stat(node.staging("pvc-1"))).mode! & 0o777, 0o777);
    await node.unstage(volume);
  });
}

/** The state of a file, as if its mkfs had begun and nothing had come after that. */
function begunAgain(state: { readonly content: object; readonly here: object }): object {
  return {
    ...state,
    content: { ...state.content, filesystem: "started", used: false, rootOpened: false },
    here: { ...state.here, staged: false, published: [] },
  };
}

async function writeAt(path: string, offset: bigint, bytes = new Uint8Array([1])): Promise<void> {
  const file = await Deno.open(path, { write: true });
  try {
    await file.seek(offset, Deno.SeekMode.Start);
    await file.write(bytes);
  } finally {
    file.close();
  }
}

nodeTest("features of both file systems are those that kernel 5.10 mounts", async (node) => {
  const volume = new TestVolume(node, "pvc-1");
  await node.stage(volume);
  const features = await run("dumpe2fs", "-h", await node.device(volume));
  assert.doesNotMatch(features, /orphan_file|metadata_csum_seed/);
  assert.match(features, /Reserved block count: +0\n/);
  await node.unstage(volume);
  const other = new TestVolume(node, "pvc-2");
  await node.stage(other, { capability: xfs });
  const info = await run("xfs_info", node.staging("pvc-2"));
  assert.match(info, /nrext64=0/);
  await node.unstage(other);
});

nodeTest("label and mkfs options reach the file system", async (node) => {
  const volume = new TestVolume(node, "pvc-1");
  await node.stage(volume, { volumeContext: { fsLabel: "data", mkfsOptions: "-I 512 -E stride=16" } });
  const info = await run("dumpe2fs", "-h", await node.device(volume));
  assert.match(info, /volume name: +data\n[^]*RAID stride: +16\n[^]*Inode size:\s+512\n/);
  await node.unstage(volume);
});

nodeTest(
  "an ext4 whose blocks are too small for its volume stays with its pod, in use or not",
  async (node) => {
    const volume = new TestVolume(node, "pvc-1");
    const change = { volumeContext: { mkfsOptions: "-b 1024" } };
    await node.stage(volume, change);
    await node.publish(volume);
    await Deno.writeTextFile(`${node.target("pvc-1")}/data`, "kept");
    const bytes = 2n << 40n;
    volume.grow(bytes);
    const range = { requiredBytes: bytes, limitBytes: 0n };
    const expand = () =>
      node.service.expand({ volumeId: "pvc-1", volumePath: node.target("pvc-1"), range }, call());
    await assert.rejects(expand(), refusal("precondition", /blocks are too small/));
    await node.unpublish(volume);
    await node.unstage(volume);
    volume.nextEpoch();
    await node.stage(volume, change);
    await node.publish(volume);
    const { problems } = await node.service.volumeHealth("pvc-1", call());
    assert.deepEqual(problems.map(({ reason }) => reason), ["NotGrown"]);
    await assert.rejects(expand(), refusal("precondition", /blocks are too small/));
    assert.equal(await Deno.readTextFile(`${node.target("pvc-1")}/data`), "kept");
    await node.unpublish(volume);
    await node.unstage(volume);
  },
);

nodeTest("an ext4 with errors=panic is mounted so that an error makes it read-only", async (node) => {
  const volume = new TestVolume(node, "pvc-1");
  await node.stage(volume);
  await run("tune2fs", "-e", "panic", await node.device(volume));
  await node.unstage(volume);
  await node.stage(volume);
  const lines = (await Deno.readTextFile("/proc/self/mountinfo")).split("\n");
  const line = lines.find((text) => text.includes(` ${node.staging("pvc-1")} `));
  assert.match(line ?? "", /errors=remount-ro/);
  assert.match(await run("dumpe2fs", "-h", await node.device(volume)), /Errors behavior: +Panic\n/);
  await node.unstage(volume);
});

nodeTest("a read-only ext4 with errors=panic does not panic the node either", async (node) => {
  const volume = new TestVolume(node, "pvc-1");
  await node.stage(volume);
  await run("tune2fs", "-e", "panic", await node.device(volume));
  await node.unstage(volume);
  volume.readOnly = true;
  await node.stage(volume);
  const name = (await node.device(volume)).slice("/dev/".length);
  const options = await Deno.readTextFile(`/proc/fs/ext4/${name}/options`);
  assert.match(options, /^ro\n/);
  assert.match(options, /^errors=remount-ro$/m);
  await node.unstage(volume);
});

nodeTest("mount flags reach the mount, and survive a read-only publish", async (node) => {
  const volume = new TestVolume(node, "pvc-1");
  const mountFlags = ["noatime", "nodev", "nosuid"];
  await node.stage(volume, { mountFlags });
  await node.publish(volume, { mountFlags, readOnly: true });
  const lines = (await Deno.readTextFile("/proc/self/mountinfo")).split("\n");
  const options = lines.find((line) => line.includes(` ${node.target("pvc-1")} `))?.split(" ")[5];
  assert.deepEqual(options?.split(",").toSorted(), ["noatime", "nodev", "nosuid", "ro"]);
  await node.unpublish(volume);
  await node.unstage(volume);
});

for (const capability of [ext4, xfs]) {
  const { filesystem } = capability as { filesystem: string };
  nodeTest(
    `${filesystem}: discard and an SELinux label with commas reach mount as they are`,
    async (unused) => {
      const { folder } = unused;
      const toolPaths = wrappedTool(
        folder,
        "mount",
        `printf '%s\\n' "$@" >> ${folder}/words; exec "$tool" "$@"`,
      );
      const node = new RealNode(folder, "node-2", { toolPaths });
      try {
        const volume = new TestVolume(node, "pvc-1");
        const label = 'context="system_u:object_r:container_file_t:s0:c1,c2"';
        for (let i = 0; i < 2; i++) await node.stage(volume, { capability, mountFlags: ["discard", label] });
        const text = (await Deno.readTextFile(`${folder}/words`)).split("\n");
        const own = filesystem === "xfs" ? "nouuid" : "errors=remount-ro";
        const options = `rw,${own},discard,${label}`;
        assert.deepEqual(text.filter((word) => word.includes("discard")), [options]);
        const line = (await Deno.readTextFile("/proc/self/mountinfo")).split("\n").find((line) =>
          line.includes(` ${node.staging("pvc-1")} `)
        );
        assert.match(line?.split(" ").at(-1) ?? "", /\bdiscard\b/);
        await node.unstage(volume);
      } finally {
        node.libc.close();
      }
    },
  );
}

nodeTest("an ext4 that needs repair by hand is left with the command to run", async (node) => {
  const volume = new TestVolume(node, "pvc-1");
  await node.stage(volume);
  await node.unstage(volume);
  volume.nextEpoch();
  await run("debugfs", "-w", "-R", "clri <2>", volume.image);
  await run("debugfs", "-w", "-R", "ssv state 2", volume.image);
  await assert.rejects(
    node.stage(volume),
    refusal("precondition", /rds-csi attach VOLUME.*e2fsck -f DEVICE/),
  );
  assert.deepEqual(mountsUnder(node.folder), []);
  assert.deepEqual(await node.deps.connector.connected(call()), []);
});

nodeTest("a clone of a mounted xfs mounts beside it", async (node) => {
  const volume = new TestVolume(node, "pvc-1");
  await node.stage(volume, { capability: xfs });
  await node.unstage(volume);
  const clone = new TestVolume(node, "pvc-2");
  await Deno.copyFile(volume.image, clone.image);
  for (const each of [volume, clone]) {
    each.nextEpoch();
    await node.stage(each, { capability: xfs });
  }
  assert.deepEqual(mountsUnder(node.folder), [node.staging("pvc-1"), node.staging("pvc-2")]);
  await node.unstage(volume);
  await node.unstage(clone);
});

nodeTest("a device of more than the published size is not formatted", async (node) => {
  const volume = new TestVolume(node, "pvc-1");
  await Deno.truncate(volume.image, Number(volumeBytes) + mebibyte);
  await assert.rejects(node.stage(volume), refusal("precondition", /its size/));
});
