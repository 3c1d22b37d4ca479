import { refusal, unsettled } from "../fakes/refusal.ts";
import assert from "node:assert/strict";
import { block, call, checksum, nodeTest, RealNode, run, TestVolume } from "./harness.ts";
import { mountsUnder } from "../support/left_here.ts";

const size = 16n * 1024n * 1024n;

async function stagedBlock(node: RealNode, id = "pvc-1"): Promise<TestVolume> {
  const volume = new TestVolume(node, id, size);
  await node.stage(volume, { capability: block });
  return volume;
}

const capability = block;

nodeTest("block: data outlives unpublish, unstage, a new epoch and a new stage", async (node) => {
  const volume = await stagedBlock(node);
  await node.publish(volume, { capability });
  await run("dd", "if=/dev/urandom", `of=${node.target("pvc-1")}`, "bs=1M", "count=4", "conv=nocreat,fsync");
  const before = await run("cmp", node.target("pvc-1"), volume.image);
  await node.unpublish(volume);
  await node.unstage(volume);
  volume.nextEpoch();
  await node.stage(volume, { capability });
  await node.publish(volume, { capability });
  assert.equal(await run("cmp", node.target("pvc-1"), volume.image), before);
  await node.unpublish(volume);
  await node.unstage(volume);
});

nodeTest("block: staging is a folder with the device's path, which no other user may read", async (node) => {
  const volume = await stagedBlock(node);
  const file = `${node.staging("pvc-1")}/device`;
  assert.equal(await Deno.readTextFile(file), await node.device(volume));
  assert.equal((await Deno.stat(file)).mode! & 0o777, 0o600);
  assert.deepEqual(mountsUnder(node.folder), []);
  await node.unstage(volume);
  assert.deepEqual(await node.deps.paths.list(node.staging("pvc-1")), []);
});

nodeTest(
  "block: a flush writes out what somebody has written who still has the device open",
  async (node) => {
    const volume = await stagedBlock(node);
    const device = await node.device(volume);
    const file = await Deno.open(device, { read: true, write: true });
    const written = new Uint8Array(4096).fill(7);
    await file.write(written);
    const inImage = async () => (await Deno.readFile(volume.image)).subarray(0, written.length);
    assert.deepEqual(await inImage(), new Uint8Array(written.length), "it is in the kernel's memory alone");
    assert.equal(await node.libc.flush(device, AbortSignal.timeout(10_000)), true);
    assert.deepEqual(await inImage(), written);
    file.close();
    await node.unstage(volume);
  },
);

nodeTest("block: nothing is written to the device, whatever is on it", async (node) => {
  const volume = new TestVolume(node, "pvc-1", size);
  await run("mkswap", volume.image);
  const before = await checksum(volume.image);
  await node.stage(volume, { capability });
  await node.publish(volume, { capability });
  await node.unpublish(volume);
  await node.unstage(volume);
  assert.equal(await checksum(volume.image), before);
});

nodeTest(
  "block: publishing makes the target file and its folder, once, and unpublishing removes the file",
  async (node) => {
    const volume = await stagedBlock(node);
    for (let i = 0; i < 3; i++) await node.publish(volume, { capability });
    assert.deepEqual(mountsUnder(node.folder), [node.target("pvc-1")]);
    assert.ok((await Deno.lstat(node.target("pvc-1"))).isBlockDevice);
    for (let i = 0; i < 2; i++) await node.unpublish(volume);
    assert.deepEqual(await node.deps.paths.list(`${node.kubelet}/pods/pod-1`), []);
    await node.unstage(volume);
  },
);

nodeTest(
  "block: a read-only publish cannot be written to, and a writable one beside it is refused",
  async (node) => {
    const volume = await stagedBlock(node);
    await node.publish(volume, { capability, readOnly: true });
    const write = () =>
      run("dd", "if=/dev/zero", `of=${node.target("pvc-1")}`, "bs=4096", "count=1", "conv=nocreat,fsync");
    await assert.rejects(write(), /not permitted|Read-only|denied/);
    const beside = { capability, targetPath: node.target("pvc-1", "pod-2") };
    await assert.rejects(node.publish(volume, beside), refusal("precondition", /read-only for all/));
    await assert.rejects(node.publish(volume, { capability }), unsettled("exists-incompatible"));
    await node.unpublish(volume);
    await node.publish(volume, { capability });
    await write();
    await node.unpublish(volume);
    await node.unstage(volume);
  },
);

nodeTest("block: a volume published read-only by its controller cannot be written to", async (node) => {
  const volume = new TestVolume(node, "pvc-1", size);
  volume.readOnly = true;
  await node.stage(volume, { capability });
  await node.publish(volume, { capability });
  const device = await node.device(volume);
  for (const path of [node.target("pvc-1"), device]) {
    const write = run("dd", "if=/dev/zero", `of=${path}`, "bs=4096", "count=1", "conv=nocreat,fsync");
    await assert.rejects(write, /not permitted|Read-only|denied/);
  }
  await node.unpublish(volume);
  await node.unstage(volume);
});

nodeTest("block: a single writer gets one target", async (node) => {
  const single = { access: "block", mode: "single-node-single-writer" } as const;
  const volume = await stagedBlock(node);
  await node.publish(volume, { capability: single });
  const second = { capability: single, targetPath: node.target("pvc-1", "pod-2") };
  await assert.rejects(node.publish(volume, second), refusal("precondition", /SINGLE_NODE_SINGLE_WRITER/));
  await node.publish(volume, { capability: single });
  await node.unpublish(volume);
  await node.publish(volume, second);
  await node.unpublish(volume, "pod-2");
  await node.unstage(volume);
});

nodeTest("block: a device grows under its publish, and no file system tool is needed", async (node) => {
  const volume = await stagedBlock(node);
  await node.publish(volume, { capability });
  volume.grow(size * 2n);
  const range = { requiredBytes: size * 2n, limitBytes: 0n };
  const request = { volumeId: "pvc-1", volumePath: node.target("pvc-1"), range };
  assert.equal(await node.service.expand(request, call()), size * 2n);
  const target = node.target("pvc-1");
  assert.equal(await run("blockdev", "--getsize64", target), `${size * 2n}\n`);
  assert.deepEqual(await node.service.stats("pvc-1", target, call()), {
    kind: "block",
    totalBytes: size * 2n,
  });
  await node.unpublish(volume);
  await node.unstage(volume);
});

nodeTest(
  "block: an unstage is refused while the device is bound, and goes through afterwards",
  async (node) => {
    const volume = await stagedBlock(node);
    await node.publish(volume, { capability });
    await assert.rejects(node.unstage(volume), refusal("in-use", /published at/));
    assert.equal(await Deno.readTextFile(`${node.staging("pvc-1")}/device`), await node.device(volume));
    await node.publish(volume, { capability });
    await node.unpublish(volume);
    await node.unstage(volume);
  },
);

nodeTest("block: an unstage is refused while the device is bound elsewhere", async (node) => {
  const volume = await stagedBlock(node);
  const elsewhere = `${node.folder}/elsewhere`;
  await Deno.writeTextFile(elsewhere, "");
  await run("mount", "--bind", await node.device(volume), elsewhere);
  try {
    await assert.rejects(node.unstage(volume), refusal("in-use", /bound at/));
  } finally {
    await run("umount", elsewhere);
  }
  await node.unstage(volume);
});

nodeTest(
  "block: an unstage is refused while a process has the device open, by whatever path",
  async (node) => {
    const volume = await stagedBlock(node);
    const number = await run("stat", "-c", "%Hr %Lr", await node.device(volume));
    const [major, minor] = number.trim().split(" ") as [string, string];
    await run("mknod", `${node.folder}/xvda`, "b", major, minor);
    const holder = new Deno.Command("sh", { args: ["-c", `exec sleep 60 < ${node.folder}/xvda`] }).spawn();
    try {
      await opened(holder.pid);
      await assert.rejects(node.unstage(volume), refusal("in-use", new RegExp(`process ${holder.pid} `)));
      assert.equal(await node.device(volume), await Deno.readTextFile(`${node.staging("pvc-1")}/device`));
    } finally {
      holder.kill("SIGKILL");
      await holder.status;
    }
    await node.unstage(volume);
  },
);

/** Waits until the shell of that process has become the intended program. */
async function opened(pid: number): Promise<void> {
  for (let i = 0; i < 200; i++) {
    if (Deno.readTextFileSync(`/proc/${pid}/comm`) === "sleep\n") return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error("the process did not start");
}

nodeTest("block: an unstage is refused while a loop device is on top", async (node) => {
  const volume = await stagedBlock(node);
  const top = (await run("losetup", "--find", "--show", await node.device(volume))).trim();
  try {
    await assert.rejects(node.unstage(volume), refusal("in-use", new RegExp(`${top} on top`)));
  } finally {
    await run("losetup", "-d", top);
  }
  await node.unstage(volume);
});

nodeTest("block: an unstage succeeds without device file and without staging folder", async (node) => {
  const volume = await stagedBlock(node);
  await Deno.remove(`${node.staging("pvc-1")}/device`);
  await node.unstage(volume);
  await node.stage(volume, { capability });
  await Deno.remove(node.staging("pvc-1"), { recursive: true });
  await node.unstage(volume);
});

nodeTest(
  "block: an unpublish goes through when the device is gone and when the target is gone",
  async (node) => {
    const volume = await stagedBlock(node);
    await node.publish(volume, { capability });
    await run("losetup", "-d", await node.device(volume));
    await node.unpublish(volume);
    await node.unstage(volume);
    const other = await stagedBlock(node, "pvc-2");
    await node.publish(other, { capability });
    await run("umount", node.target("pvc-2"));
    await Deno.remove(node.target("pvc-2"));
    await node.unpublish(other);
    await node.unstage(other);
  },
);

nodeTest("block: a target that is a folder, or a file with content, is not touched", async (node) => {
  const volume = await stagedBlock(node);
  await Deno.mkdir(node.target("pvc-1"), { recursive: true });
  await assert.rejects(node.publish(volume, { capability }), refusal("precondition", /not a file/));
  await Deno.remove(node.target("pvc-1"));
  await Deno.writeTextFile(node.target("pvc-1"), "somebody's data");
  await assert.rejects(node.unpublish(volume), refusal("precondition", /not an empty file/));
  assert.equal(await Deno.readTextFile(node.target("pvc-1")), "somebody's data");
  await node.unstage(volume);
});

nodeTest("two nodes reach the same exported files at once, each through its own devices", async (node) => {
  const other = new RealNode(node.folder, "node-2");
  try {
    const volumes = Array.from({ length: 6 }, (_, i) => new TestVolume(node, `pvc-${i}`, size));
    const each = volumes.flatMap((volume) => [node, other].map((on) => ({ volume, on })));
    await all(each.map(({ volume, on }) => on.stage(volume, { capability })));
    const devices = await all(each.map(({ volume, on }) => on.device(volume)));
    assert.equal(new Set(devices).size, 12);
    await all(each.map(({ volume, on }) => on.unstage(volume)));
  } finally {
    other.libc.close();
  }
});

/** Waits for all attempts, even when one fails. */
async function all<T>(attempts: readonly Promise<T>[]): Promise<readonly T[]> {
  await Promise.allSettled(attempts);
  return await Promise.all(attempts);
}
