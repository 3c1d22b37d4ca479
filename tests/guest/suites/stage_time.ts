import assert from "node:assert/strict";
import { percentile } from "../../bench/rpc.ts";
import { VolumeByHand } from "../kit/by_hand.ts";
import { type Driver, driverPorts, startDriver, startRouter } from "../kit/driver.ts";
import type { Suite } from "../kit/suite.ts";
import { GuestVolume } from "../kit/volume.ts";

const nodeId = "node-1";
const rounds = 7;
const volumeBytes = 2 ** 30;

/** What is timed, and how many times the commands by hand it took. A third more fails. */
const measured = {
  "stage of a blank volume": 1.54,
  "stage of a formatted volume": 1.85,
  "unstage": 1.97,
} as const;
type Work = keyof typeof measured;

/** Milliseconds of each round. */
type Times = Record<Work, { driver: number[]; byHand: number[] }>;

/** What the driver adds to the commands that it stands for. Both work in one guest, on the same router, in turns. */
export const suite: Suite = {
  what:
    "how long staging and unstaging take, beside nvme connect, blkid, mkfs, mount, umount and nvme disconnect by hand",
  limitMinutes: 8,
  needsBinary: true,
  alone: true,
  run: async (bench) => {
    const guest = await bench.guest({
      ports: driverPorts,
      disks: [{ name: "pool", sizeBytes: 32 * 2 ** 30 }],
    });
    await startRouter(guest, { disk: guest.disk("pool") });
    const driver = await startDriver(guest);
    const times = Object.fromEntries(
      Object.keys(measured).map((work) => [work, { driver: [], byHand: [] }]),
    ) as unknown as Times;
    await bench.test("volumes are staged and unstaged by the driver and by hand, in turns", async () => {
      // The first round is not counted: the driver compiles, and the kernel loads what both use.
      for (let round = 0; round <= rounds; round++) {
        const [one, other] = [
          await publish(driver, `driver-${round}`),
          await publish(driver, `hand-${round}`),
        ];
        const sides = [
          () => timeDriver(driver, one, times),
          () => timeByHand(new VolumeByHand(guest, other, nodeId), times),
        ];
        for (const measure of round % 2 === 0 ? sides : sides.toReversed()) await measure();
        if (round === 0) {
          for (const { driver, byHand } of Object.values(times)) driver.length = byHand.length = 0;
        }
        for (const volume of [one, other]) {
          await volume.unpublish(nodeId);
          await driver.clients.controller.call("DeleteVolume", { volumeId: volume.id });
        }
      }
      return `${rounds} rounds`;
    });
    for (const [work, ratio] of Object.entries(measured)) {
      const limit = ratio * 4 / 3;
      await bench.test(`${work}: at most ${limit.toFixed(2)} times as long as by hand`, () => {
        const { driver, byHand } = times[work as Work];
        const [ours, bare] = [percentile(driver, 0.5), percentile(byHand, 0.5)];
        const showed = `${(ours / bare).toFixed(2)} times: ${ours.toFixed(0)} ms and ${
          bare.toFixed(0)
        } ms, medians of ${driver.length}`;
        assert.ok(ours / bare <= limit, showed);
        return Promise.resolve(showed);
      });
    }
    await driver.stop();
  },
};

async function publish(driver: Driver, name: string): Promise<GuestVolume> {
  const volume = await GuestVolume.create(driver.clients.controller, name, "ext4", volumeBytes);
  await volume.publish(nodeId);
  return volume;
}

/** Timed on the host, so that the way of the call to the driver counts. */
async function timeDriver(driver: Driver, volume: GuestVolume, times: Times): Promise<void> {
  const { node } = driver.clients;
  const timed = async (work: Work, act: () => Promise<void>) => {
    const startedMs = performance.now();
    await act();
    times[work].driver.push(performance.now() - startedMs);
  };
  await timed("stage of a blank volume", () => volume.stage(node, nodeId));
  await timed("unstage", () => volume.unstage(node));
  await timed("stage of a formatted volume", () => volume.stage(node, nodeId));
  await timed("unstage", () => volume.unstage(node));
}

async function timeByHand(volume: VolumeByHand, times: Times): Promise<void> {
  times["stage of a blank volume"].byHand.push(await volume.stage("blank"));
  times["unstage"].byHand.push(await volume.unstage("mounted"));
  times["stage of a formatted volume"].byHand.push(await volume.stage("formatted"));
  times["unstage"].byHand.push(await volume.unstage("mounted"));
}
