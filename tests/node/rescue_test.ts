import { refusal } from "../fakes/refusal.ts";
// `rds-csi attach`, `detach` and `describe` on loop devices and file systems of this machine.
import assert from "node:assert/strict";
import { attach } from "../../src/cli/attach/attach.ts";
import { readAttachOptions, readDetachOptions } from "../../src/cli/attach/options.ts";
import { describeVolumes, readDescribeOptions } from "../../src/cli/describe/describe.ts";
import { detach } from "../../src/cli/attach/detach.ts";
import { type CommandIo, exitCodes } from "../../src/cli/io.ts";
import { type NodeParts, systemNodeParts } from "../../src/cli/serve/node.ts";
import { systemClock } from "../../src/host/clock.ts";
import type { Libc } from "../../src/host/libc.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import { block, checksum, ext4, nodeTest, type RealNode, run, TestVolume, xfs } from "./harness.ts";

const mib = 1n << 20n;
const small = 64n * mib;

interface Outcome {
  readonly code: number;
  readonly out: string;
}

/** Runs a command as the executable would, on the node's folders. */
async function command(
  node: RealNode,
  execute: (args: readonly string[], parts: NodeParts, io: CommandIo) => Promise<number>,
  ...args: string[]
): Promise<Outcome> {
  const parts = systemNodeParts(systemClock, { warn: () => {} });
  const printed: string[] = [];
  const io: CommandIo = {
    out: (line) => void printed.push(line),
    err: () => {},
    env: (name) => name === "NODE_ID" ? "node-1" : undefined,
    signal: AbortSignal.timeout(60_000),
  };
  const where = ["--connector", "loop", "--loop-backing", node.backing, "--state-dir", node.state];
  try {
    return { code: await execute([...args, ...where], parts, io), out: printed.join("\n") };
  } finally {
    (parts.files as Libc).close();
  }
}

const at = ["--nvme-address", "127.0.0.1"];
const env = (name: string) => name === "NODE_ID" ? "node-1" : undefined;

const attachTo = (node: RealNode, ...args: string[]) =>
  command(node, (all, parts, io) => attach(readAttachOptions(all, env), parts, io), ...args);
const detachFrom = (node: RealNode, ...args: string[]) =>
  command(node, (all, parts, io) => detach(readDetachOptions(all, env), parts, io), ...args);
const describe = (node: RealNode, ...args: string[]) =>
  command(
    node,
    (all, parts, io) => describeVolumes(readDescribeOptions(all, env, parts.files), parts, io),
    ...args,
  );

const isInUse = (error: unknown) => VolumeError.is(error, "in-use");

async function digestOf(path: string): Promise<string> {
  return await checksum(path);
}

/** A volume whose node died with it mounted: its log has to be replayed. */
async function crashed(node: RealNode, id: string, capability: typeof ext4): Promise<TestVolume> {
  const size = capability.access === "mount" && capability.filesystem === "xfs" ? 320n * mib : small;
  const alive = new TestVolume(node, `${id}-alive`, size);
  await node.stage(alive, { capability });
  await Deno.writeTextFile(`${node.staging(alive.id)}/file`, "precious\n");
  await node.unstage(alive);
  await node.stage(alive, { capability });
  await Deno.writeTextFile(`${node.staging(alive.id)}/later`, "only in the log, maybe\n");
  await run("sync", "-f", node.staging(alive.id));
  const volume = new TestVolume(node, id, size);
  await run("cp", "--sparse=always", alive.image, volume.image);
  await node.unstage(alive);
  alive.withdraw();
  return volume;
}

/** Writes a partition table with one partition, of the kind that every kernel knows (MBR). */
function partition(
  image: string,
  { firstMib, mib }: { readonly firstMib: number; readonly mib: number },
): void {
  const sector = new Uint8Array(512);
  const view = new DataView(sector.buffer);
  view.setUint8(446 + 4, 0x83);
  view.setUint32(446 + 8, firstMib * 2048, true);
  view.setUint32(446 + 12, mib * 2048, true);
  view.setUint16(510, 0xaa55, true);
  using file = Deno.openSync(image, { write: true });
  file.writeSync(sector);
}

nodeTest("an ext4 that needs repair by hand is repaired by the commands in the refusal", async (node) => {
  const [volume, other] = [new TestVolume(node, "pvc-1"), new TestVolume(node, "pvc-2")];
  for (const one of [volume, other]) {
    await node.stage(one);
    await Deno.writeTextFile(`${node.staging(one.id)}/file`, "precious\n");
    await node.unstage(one);
  }
  const before = await digestOf(other.image);
  volume.nextEpoch();
  await run("debugfs", "-w", "-R", "clri <2>", volume.image);
  await run("debugfs", "-w", "-R", "ssv state 2", volume.image);
  const refused = await node.stage(volume).then(() => "", (error) => String(error));
  assert.match(refused, /output=DEVICE: .*(?:snapshot|copy).*prints: /);
  const steps = /prints: (.*)$/.exec(refused)![1]!.split("; ");
  assert.deepEqual(steps, ["blockdev --setrw DEVICE", "e2fsck -f DEVICE"]);
  const { device } = JSON.parse((await attachTo(node, "pvc-1", ...at, "--json")).out);
  // A person answers its questions; a check that repaired something exits with 1.
  const typed = steps.map((step) => step.replace("DEVICE", device).replace("e2fsck", "e2fsck -y"));
  await run("sh", "-c", `${typed.join("; ")}; test $? -le 1`);
  assert.equal((await detachFrom(node, "pvc-1")).code, exitCodes.ok);
  await node.stage(volume);
  const [inode] = [...Deno.readDirSync(`${node.staging(volume.id)}/lost+found`)].map(({ name }) => name);
  assert.ok(inode !== undefined, "what the lost folder held is there");
  await node.unstage(volume);
  assert.equal(await digestOf(other.image), before);
});

for (const [name, capability] of [["ext4", ext4], ["xfs", xfs]] as const) {
  nodeTest(
    `attach shows what a crash left on ${name}, mounts it by the command it prints, and changes no byte`,
    async (node) => {
      const volume = await crashed(node, "pvc-1", capability);
      const before = await digestOf(volume.image);
      const attached = await attachTo(node, "pvc-1", ...at, "--json");
      assert.equal(attached.code, exitCodes.ok);
      const report = JSON.parse(attached.out);
      assert.equal(report.nqn, volume.nqn);
      assert.equal(report.readOnly, true);
      assert.equal(report.sizeBytes, Number(volume.sizeBytes));
      assert.equal(report.signatures.TYPE, name);
      await assert.rejects(run("dd", "if=/dev/zero", `of=${report.device}`, "count=1", "conv=nocreat"));
      const folder = `${node.folder}/rescue`;
      await run("sh", "-c", report.mount.replaceAll("/mnt/pvc-1", folder));
      assert.equal(await Deno.readTextFile(`${folder}/file`), "precious\n");
      await assert.rejects(detachFrom(node, "pvc-1"), isInUse);
      await run("umount", folder);
      assert.equal((await detachFrom(node, "pvc-1")).code, exitCodes.ok);
      assert.equal(await digestOf(volume.image), before);
      assert.equal((await detachFrom(node, "pvc-1")).code, exitCodes.unknown);
    },
  );
}

nodeTest("attach refuses a staged volume, shows it with --existing, and leaves it writable", async (node) => {
  const volume = new TestVolume(node, "pvc-1", small);
  await node.stage(volume);
  await assert.rejects(attachTo(node, "pvc-1", ...at), isInUse);
  await assert.rejects(detachFrom(node, volume.nqn), isInUse);
  const { code, out } = await attachTo(node, "pvc-1", "--existing");
  assert.equal(code, exitCodes.ok);
  assert.match(out, /^content +ext4 .*uuid=/m);
  assert.match(out, /^writes +accepted: /m);
  assert.doesNotMatch(out, /^mount it/m);
  await Deno.writeTextFile(`${node.staging("pvc-1")}/file`, "still writable");
  await node.unstage(volume);
});

nodeTest("attach refuses an attached volume, and detach an open one, until it is closed", async (node) => {
  const volume = new TestVolume(node, "pvc-1", small);
  const { out } = await attachTo(node, volume.nqn, ...at);
  assert.match(out, /^content +nothing: both ends are zero$/m);
  await assert.rejects(attachTo(node, "pvc-1", ...at), isInUse);
  const holder = new Deno.Command("sh", {
    args: ["-c", `exec 3<"$1"; echo; exec sleep 60`, "sh", await node.device(volume)],
    stdin: "null",
    stdout: "piped",
  }).spawn();
  const reader = holder.stdout.getReader();
  await reader.read();
  await assert.rejects(detachFrom(node, "pvc-1"), isInUse);
  holder.kill();
  await reader.cancel();
  await holder.status;
  assert.equal((await detachFrom(node, "pvc-1", "--json")).out, JSON.stringify({ detached: volume.nqn }));
});

nodeTest("attach leaves nothing connected when the volume is smaller than required", async (node) => {
  const volume = new TestVolume(node, "pvc-1", small);
  await assert.rejects(
    attachTo(node, "pvc-1", ...at, "--size", String(small + 1n)),
    refusal("identity-mismatch"),
  );
  assert.deepEqual((await describe(node, "pvc-1")).code, exitCodes.unknown);
  volume.withdraw();
  assert.equal((await attachTo(node, "pvc-1", ...at)).code, exitCodes.unknown);
  assert.equal((await attachTo(node, "pvc-1", "--existing")).code, exitCodes.unknown);
});

nodeTest("attach shows partitions, and detach takes them into account", async (node) => {
  const volume = new TestVolume(node, "pvc-1", small);
  partition(volume.image, { firstMib: 1, mib: 16 });
  await run("mkfs.ext4", "-q", "-E", `offset=${mib}`, volume.image, "16M");
  await attachTo(node, "pvc-1", ...at);
  const device = await node.device(volume);
  await run("partx", "-a", device);
  try {
    const report = JSON.parse((await attachTo(node, "pvc-1", "--existing", "--json")).out);
    assert.equal(report.content, "a dos partition table");
    const [partition] = report.partitions;
    assert.deepEqual([partition.sizeBytes, partition.signatures.TYPE], [Number(16n * mib), "ext4"]);
    await Deno.mkdir(`${node.folder}/rescue`);
    await run("sh", "-c", partition.mount.replaceAll("/mnt/pvc-1-1", `${node.folder}/rescue`));
    await assert.rejects(detachFrom(node, "pvc-1"), isInUse);
    await run("umount", `${node.folder}/rescue`);
  } finally {
    await run("partx", "-d", device);
  }
  assert.equal((await detachFrom(node, "pvc-1")).code, exitCodes.ok);
});

nodeTest("describe shows a healthy volume of either kind, and all of them as a table", async (node) => {
  const [a, b] = [new TestVolume(node, "pvc-a", small), new TestVolume(node, "pvc-b", small)];
  await node.stage(a);
  await node.publish(a);
  await node.stage(b, { capability: block });
  await node.publish(b, { capability: block });
  for (const volume of [a, b]) {
    const { code, out } = await describe(node, volume.id);
    assert.equal(code, exitCodes.ok, out);
    assert.match(out, new RegExp(`^mount +${node.target(volume.id)} \\(published\\): `, "m"));
    assert.match(out, /proven just now$/m);
    assert.match(out, /^describe: healthy$/m);
  }
  const { mounts, device } = JSON.parse((await describe(node, "pvc-b", "--json")).out);
  assert.equal(mounts[0].deviceNumber, device.deviceNumber);
  const table = await describe(node);
  assert.equal(table.code, exitCodes.ok);
  assert.match(table.out, /^pvc-a +ext4 +published +\/dev\/loop\d+ +64 MiB +loop\d+=live +2 +healthy$/m);
  assert.match(table.out, /^pvc-b +block +published .* 1 +healthy$/m);
  for (const volume of [a, b]) {
    await node.unpublish(volume);
    await node.unstage(volume);
  }
  assert.equal((await describe(node, "pvc-a")).code, exitCodes.unknown);
});

nodeTest(
  "describe finds a mount that is gone, one that is elsewhere, and a damaged state file",
  async (node) => {
    const volume = new TestVolume(node, "pvc-1", small);
    await node.stage(volume);
    await node.publish(volume);
    const other = `${node.folder}/other`;
    await Deno.mkdir(other);
    await run("mount", "--bind", node.staging("pvc-1"), other);
    assert.match(
      (await describe(node, "pvc-1")).out,
      new RegExp(`^warning +MountedElsewhere +.*: ${other}$`, "m"),
    );
    await run("umount", other);
    await run("umount", node.target("pvc-1"));
    const { code, out } = await describe(node, "pvc-1");
    assert.equal(code, exitCodes.failed);
    assert.match(out, /^problem +TargetMissing +.*nothing is mounted at .*path=/m);
    await node.unpublish(volume);
    await node.unstage(volume);
    await Deno.writeTextFile(`${node.state}/volumes/pvc-1.json`, "{");
    const damaged = await describe(node, "pvc-1");
    assert.equal(damaged.code, exitCodes.failed);
    assert.match(damaged.out, /^problem +StateDamaged +.*damaged/m);
    await Deno.remove(`${node.state}/volumes/pvc-1.json`);
  },
);
