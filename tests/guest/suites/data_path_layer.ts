import assert from "node:assert/strict";
import { percentile } from "../../bench/rpc.ts";
import { type Driver, driverPorts, startDriver, startRouter } from "../kit/driver.ts";
import { fill, installFio, measureSpeeds, type Speeds, type Workload, workloads } from "../kit/fio.ts";
import type { Guest } from "../kit/guest.ts";
import type { Bench, Suite } from "../kit/suite.ts";
import { GuestVolume } from "../kit/volume.ts";

const nodeId = "node-1";
const volumeBytes = 192 * 2 ** 20;
/** Odd, so that there is a middle one. */
const blockRounds = 7;
const mountRounds = 5;
/** What the layer may cost at most, where single rounds without it differ by more: see the figures of the control. */
const minRatio = 0.8;
/** How long a node service is looked at while nothing happens. */
const idleSeconds = 20;
const idleVolumes = 4;
/** USER_HZ of every Linux that this runs on. */
const ticksPerSecond = 100;
/** What a StorageClass says for a volume with the layer. */
const layered = { deviceLayer: "multipath" };

/** What the device layer costs whom it serves. */
export const suite: Suite = {
  what: "fio on the same volumes with and without their device layer, and what its watch takes meanwhile",
  limitMinutes: 10,
  needsBinary: true,
  needsFio: true,
  alone: true,
  run: async (bench) => {
    const guest = await bench.guest({
      ports: driverPorts,
      kernel: "backports",
      disks: [{ name: "pool", sizeBytes: 4 * 2 ** 30 }],
      kernelArguments: ["hardened_usercopy=off"],
    });
    await installFio(guest);
    await startRouter(guest, { disk: guest.disk("pool") });
    const driver = await startDriver(guest);
    await watchAtRest(bench, guest, driver);
    await onBlock(bench, guest, driver);
    await onFilesystem(bench, guest, driver);
    await driver.stop();
  },
};

/** A round: without the layer, with it, and without it again, so that what drifts shows. */
interface Round {
  readonly before: Speeds;
  readonly layer: Speeds;
  readonly after: Speeds;
}

/** One connection: the map, and the namespace that it is on. */
async function onBlock(bench: Bench, guest: Guest, { clients }: Driver): Promise<void> {
  const rounds: Round[] = [];
  const ran = await bench.test("block: fio runs on the map and on its namespace, in turns", async () => {
    const volume = await GuestVolume.create(
      clients.controller,
      "layer-block",
      "block",
      volumeBytes,
      layered,
    );
    await volume.publish(nodeId);
    await volume.attach(clients.node, nodeId);
    await fill(guest, volume.target);
    const below = await guest.sh(
      `number=$(stat -c '%Hr:%Lr' ${volume.target}); echo /dev/$(ls /sys/dev/block/$number/slaves)`,
    );
    assert.match(below, /^\/dev\/nvme\d+n\d+$/);
    for (let round = 0; round < blockRounds; round++) {
      const before = await measureSpeeds(guest, below);
      const layer = await measureSpeeds(guest, volume.target);
      rounds.push({ before, layer, after: await measureSpeeds(guest, below) });
    }
    await remove(volume, clients);
    return `${blockRounds} rounds on ${below}`;
  });
  if (ran) await compare(bench, "block", rounds);
}

/** One file on one volume, which is staged with the layer and without it. */
async function onFilesystem(bench: Bench, guest: Guest, { clients }: Driver): Promise<void> {
  const rounds: Round[] = [];
  const ran = await bench.test("ext4: fio runs on a volume that is staged with and without it", async () => {
    const volume = await GuestVolume.create(clients.controller, "layer-ext4", "ext4", volumeBytes);
    await volume.publish(nodeId);
    const path = `${volume.target}/data`;
    const measure = async (parameters: Readonly<Record<string, string>>) => {
      await volume.attach(clients.node, nodeId, parameters);
      assert.equal(
        await guest.sh("dmsetup ls | grep -c rds-csi || :"),
        "deviceLayer" in parameters ? "1" : "0",
      );
      if (rounds.length === 0) await fill(guest, path);
      const speeds = await measureSpeeds(guest, path);
      await volume.detach(clients.node);
      return speeds;
    };
    for (let round = 0; round < mountRounds; round++) {
      const before = await measure({});
      const layer = await measure(layered);
      rounds.push({ before, layer, after: await measure({}) });
    }
    await volume.unpublish(nodeId);
    await clients.controller.call("DeleteVolume", { volumeId: volume.id });
    return `${mountRounds} rounds`;
  });
  if (ran) await compare(bench, "ext4", rounds);
}

async function compare(bench: Bench, use: string, rounds: readonly Round[]): Promise<void> {
  for (const workload of Object.keys(workloads) as Workload[]) {
    await bench.test(`${use}, ${workload}: nearly as fast with the layer as without`, () => {
      const ratios = rounds.map(({ before, layer, after }) =>
        layer[workload] / Math.sqrt(before[workload] * after[workload])
      );
      const control = rounds.map(({ before, after }) => after[workload] / before[workload]);
      const showed = `${spreadOf(ratios)} times; without the layer the second time ${
        spreadOf(control)
      } times the first`;
      assert.ok(percentile(ratios, 0.5) >= minRatio, showed);
      return Promise.resolve(showed);
    });
  }
}

/** What the watch takes of a processor and of memory, while all is well. */
async function watchAtRest(bench: Bench, guest: Guest, driver: Driver): Promise<void> {
  const { clients } = driver;
  await bench.test("the watch takes little while nothing happens", async () => {
    const volumes: GuestVolume[] = [];
    for (let index = 0; index < idleVolumes; index++) {
      const volume = await GuestVolume.create(clients.controller, `idle-${index}`, "block", 16 * 2 ** 20);
      await volume.publish(nodeId);
      volumes.push(volume);
    }
    const said: string[] = [];
    for (const parameters of [{}, layered, {}, layered]) {
      for (const volume of volumes) await volume.attach(clients.node, nodeId, parameters);
      // Staging is over, and its garbage collected.
      await guest.sh("sleep 3");
      const began = await usedBy(guest, driver);
      await guest.sh(`sleep ${idleSeconds}`, { limitSeconds: idleSeconds + 30 });
      const ended = await usedBy(guest, driver);
      const share = (ended.seconds - began.seconds) / idleSeconds * 100;
      const name = "deviceLayer" in parameters ? "with the layer" : "without";
      said.push(`${name} ${share.toFixed(1)} % of a processor, ${ended.mebibytes.toFixed(0)} MiB`);
      for (const volume of volumes) await volume.detach(clients.node);
    }
    for (const volume of volumes) {
      await volume.unpublish(nodeId);
      await clients.controller.call("DeleteVolume", { volumeId: volume.id });
    }
    return `${idleVolumes} volumes, ${idleSeconds} s each: ${said.join("; ")}`;
  });
}

/** Processor time and resident memory of the driver, with the processes that it started and that have ended. */
async function usedBy(
  guest: Guest,
  { service }: Driver,
): Promise<{ readonly seconds: number; readonly mebibytes: number }> {
  const folder = `/proc/${await service.pid}`;
  const printed = await guest.sh(
    `cut -d ' ' -f 14-17 ${folder}/stat; grep VmRSS ${folder}/status | tr -dc 0-9`,
  );
  const [ticks = "", kibibytes = ""] = printed.split("\n");
  const seconds = ticks.split(" ").reduce((sum, each) => sum + Number(each), 0) / ticksPerSecond;
  assert.ok(seconds > 0 && Number(kibibytes) > 0, printed);
  return { seconds, mebibytes: Number(kibibytes) / 1024 };
}

async function remove(volume: GuestVolume, { controller, node }: Driver["clients"]): Promise<void> {
  await volume.detach(node);
  await volume.unpublish(nodeId);
  await controller.call("DeleteVolume", { volumeId: volume.id });
}

function spreadOf(ratios: readonly number[]): string {
  const [least, middle, most] = [Math.min(...ratios), percentile(ratios, 0.5), Math.max(...ratios)];
  return `${middle.toFixed(3)} (${least.toFixed(2)} to ${most.toFixed(2)})`;
}
