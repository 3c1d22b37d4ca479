// A volume with a device layer in use, and the watches that look after it.
import assert from "node:assert/strict";
import { VolumeLocks } from "../../../src/csi/server/call.ts";
import { systemRandom } from "../../../src/host/random.ts";
import { FenceWatch } from "../../../src/node/fencing/fence_watch.ts";
import { LayerWatch } from "../../../src/node/layer/layer_watch.ts";
import { type GuestNode, GuestVolume, sh, until } from "../kit/node.ts";
import { block, ext4, xfs } from "../../node/harness.ts";
import { isLong } from "../../support/long.ts";
import { Writer } from "./kernel_export_inside.ts";

/** What pods have of a volume: a file system, or its blocks. */
export const capabilities = { ext4, xfs, block };
export type Kind = keyof typeof capabilities;

export const sizes: Readonly<Record<Kind, bigint>> = {
  ext4: 64n << 20n,
  xfs: 320n << 20n,
  block: 64n << 20n,
};

/** All kinds, of which the short form has only some. */
export function kindsOf(...inShort: readonly Kind[]): readonly Kind[] {
  return isLong ? ["ext4", "xfs", "block"] : inShort;
}

/**
 * What writes wait for at most once the router answers, in milliseconds: 5 s are meant, of which 2 are the kernel's pause
 * before it connects again; in an emulated guest on a busy machine, the dozen processes of a repair take seconds.
 */
export const goesOnMs = 10_000;

/** What waits for ever must not keep the other tests from running, in milliseconds. */
const testMs = 75_000;

/** The parameters of a StorageClass with a device layer. */
export const layered = {
  volumeContext: { deviceLayer: "multipath", ctrlLossTmo: "600", reconnectDelay: "2" },
};

/** What is shown of a test that fails. */
export function say(message: string, fields: Readonly<Record<string, unknown>> = {}): void {
  const line = `${Math.round(performance.now())} ms: ${message} ${JSON.stringify(fields)}\n`;
  Deno.stderr.writeSync(new TextEncoder().encode(line));
}

/** Runs something while the node service's watches look at its volumes. */
export async function watched<T>(node: GuestNode, use: () => Promise<T>, limitMs = testMs): Promise<T> {
  const locks = new VolumeLocks();
  const lock = { tryTake: (keys: readonly string[]) => locks.tryTake(keys, "watch") };
  const { fencing } = node.service;
  const deps = { ...node.deps, notes: { info: say, warn: say } };
  const watches = [
    new LayerWatch({ deps, fencing, lock }),
    new FenceWatch({ deps, fencing, lock, random: systemRandom, intervalMs: 2_000 }),
  ];
  for (const watch of watches) watch.start();
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`not done within ${limitMs} ms`)), limitMs);
  const used = use();
  used.catch(() => {
    // It is late, and whoever waits for it was told so.
  });
  try {
    return await Promise.race([used, late]);
  } finally {
    clearTimeout(timer);
    await Promise.all(watches.map((watch) => watch.stop()));
  }
}

/** Stages and publishes a volume with a device layer. */
export async function inUse(node: GuestNode, kind: Kind, id = "pvc-1"): Promise<GuestVolume> {
  const volume = new GuestVolume(node, id, sizes[kind]);
  const capability = capabilities[kind];
  await node.stage(volume, { ...layered, capability });
  await node.publish(volume, { capability });
  assert.match(await sh(`dmsetup table rds-csi-${id}`), / queue_if_no_path .*queue_mode bio /);
  return volume;
}

/** What writes a line and syncs it, again and again. */
export function writerOn(node: GuestNode, kind: Kind, id = "pvc-1"): Writer {
  const target = node.target(id);
  return kind === "block" ? new Writer(target, "block") : new Writer(`${target}/log`);
}

/** Lets a volume be written while something befalls it; ends the writer whatever comes of it. */
export async function written(
  node: GuestNode,
  kind: Kind,
  use: (volume: GuestVolume, writer: Writer) => Promise<string>,
): Promise<string> {
  const volume = await inUse(node, kind);
  const writer = writerOn(node, kind);
  try {
    await writer.begins();
    return await use(volume, writer);
  } finally {
    await endAnyhow(volume, writer);
  }
}

/** Ends a writer that may wait for a device which does not come back. */
export async function endAnyhow(volume: GuestVolume, writer: Writer): Promise<void> {
  const killed = writer.kill();
  const late = new Promise<"late">((resolve) => Deno.unrefTimer(setTimeout(() => resolve("late"), 2_000)));
  if (await Promise.race([killed, late]) !== "late") return;
  await sh(`dmsetup message rds-csi-${volume.id} 0 fail_if_no_path; nvme disconnect -n ${volume.nqn}`);
  await killed;
}

/** How long after now the writer's next two acknowledged writes come, in milliseconds. */
export async function goesOn(writer: Writer): Promise<number> {
  const before = writer.acknowledged;
  return await until("the writer goes on", () => writer.acknowledged > before + 1, 30_000);
}

/** The router is away for so long; then it offers an image again, under another identity. */
export async function reboot(volume: GuestVolume, awayMs: number, image = volume.image): Promise<void> {
  volume.withdraw();
  await new Promise((resolve) => setTimeout(resolve, awayMs));
  volume.nvmet.serve(volume.nqn, image);
  say("the router is back");
}

/** The router is away for so long; then it offers the volume again as it was. */
export async function rebootKept(volume: GuestVolume, awayMs: number): Promise<void> {
  volume.withdraw();
  await new Promise((resolve) => setTimeout(resolve, awayMs));
  volume.exportAgain();
  say("the router is back");
}

/** How many bytes whoever uses a volume can have of it, at most. */
export async function shownBytes(kind: Kind, path: string): Promise<number> {
  if (kind === "block") return Number(await sh(`blockdev --getsize64 ${path}`));
  return Number(await sh(`stat -f -c %b ${path}`)) * Number(await sh(`stat -f -c %S ${path}`));
}

/** Ends the use of a volume: no write has failed, all that was acknowledged is on the image, in order, and it is whole. */
export async function takeDown(
  node: GuestNode,
  kind: Kind,
  volume: GuestVolume,
  writer: Writer,
): Promise<string> {
  await writer.end();
  await node.unpublish(volume);
  await node.unstage(volume);
  assert.equal(await sh("dmsetup ls"), "No devices found");
  const there = writer.wrote(await contentOf(kind, volume));
  return `${writer.acknowledged} acknowledged, ${there} there${kind === "block" ? "" : ", clean"}`;
}

/** What lies on the image of a volume that nobody uses any more: a file of its file system, which is whole, or text. */
export async function contentOf(kind: Kind, volume: GuestVolume, file = "log"): Promise<string> {
  volume.withdraw();
  const { image } = volume;
  if (kind === "block") return await sh(`tr -d ' \\0' < ${image}`);
  await sh(kind === "ext4" ? `e2fsck -fn ${image}` : `xfs_repair -n ${image}`);
  return await sh(
    `mount -o ro,loop ${image} /mnt && { cat /mnt/${file}; read=$?; umount /mnt; exit $read; }`,
  );
}

/** How many lines the next epoch finds of what was acknowledged before it: all of them, in a file system that is whole. */
export async function leftBy(kind: Kind, volume: GuestVolume, writer: Writer): Promise<number> {
  volume.withdraw();
  // Its log is replayed, as the next stage does.
  if (kind !== "block") await sh(`mount -o loop ${volume.image} /mnt && umount /mnt`);
  return writer.wrote(await contentOf(kind, volume));
}
