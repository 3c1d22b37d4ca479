import assert from "node:assert/strict";
import { percentile } from "../../bench/rpc.ts";
import { VolumeByHand } from "../kit/by_hand.ts";
import { type Driver, driverPorts, startDriver, startRouter } from "../kit/driver.ts";
import type { Suite } from "../kit/suite.ts";
import { GuestVolume } from "../kit/volume.ts";

const nodeId = "node-1";
const rounds = 9;
/** Not counted before those: the driver is compiled while it works, and the kernel loads what both use. */
const warmUpRounds = 4;
const volumeBytes = 2 ** 30;

/** What both do with a volume, one after the other; what is checked is so with e2fsck. */
const stages = ["blank", "checked", "formatted"] as const;
type Step = typeof stages[number] | "unstage";

/** What the driver does beside what is done by hand, and how many times as long it took. A third more fails. */
const measured: readonly [
  string,
  { readonly driver: Step; readonly byHand: Step; readonly ratio: number },
][] = [
  ["stage of a blank volume", { driver: "blank", byHand: "blank", ratio: 1.34 }],
  ["stage of a formatted volume, which by hand is not checked", {
    driver: "checked",
    byHand: "formatted",
    ratio: 1.47,
  }],
  ["stage of a formatted volume, checked by both", { driver: "checked", byHand: "checked", ratio: 1.19 }],
  ["stage of a formatted volume with fsckMode off", {
    driver: "formatted",
    byHand: "formatted",
    ratio: 1.28,
  }],
  ["unstage", { driver: "unstage", byHand: "unstage", ratio: 1.49 }],
];

/** Milliseconds of each round. */
type Times = Record<Step, number[]>;

/** What the driver adds to the commands that it stands for. Both work in one guest, on the same router, in turns. */
export const suite: Suite = {
  what:
    "how long staging and unstaging take, beside nvme connect, blkid, mkfs, e2fsck, mount, umount and nvme disconnect by hand",
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
    const [ours, byHand] = [noTimes(), noTimes()];
    await bench.test("volumes are staged and unstaged by the driver and by hand, in turns", async () => {
      for (let round = 0; round < warmUpRounds + rounds; round++) {
        const [one, other] = [
          await publish(driver, `driver-${round}`),
          await publish(driver, `hand-${round}`),
        ];
        const sides = [
          () => timeDriver(driver, one, ours),
          () => timeByHand(new VolumeByHand(guest, other, nodeId), byHand),
        ];
        for (const measure of round % 2 === 0 ? sides : sides.toReversed()) await measure();
        if (round < warmUpRounds) {
          for (const times of [...Object.values(ours), ...Object.values(byHand)]) times.length = 0;
        }
        for (const volume of [one, other]) {
          await volume.unpublish(nodeId);
          await driver.clients.controller.call("DeleteVolume", { volumeId: volume.id });
        }
      }
      return `${rounds} rounds`;
    });
    for (const [work, { ratio, ...steps }] of measured) {
      const limit = ratio * 4 / 3;
      await bench.test(`${work}: at most ${limit.toFixed(2)} times as long as by hand`, () => {
        const [times, bareTimes] = [ours[steps.driver], byHand[steps.byHand]];
        const [ms, bareMs] = [percentile(times, 0.5), percentile(bareTimes, 0.5)];
        const showed = `${(ms / bareMs).toFixed(2)} times: ${ms.toFixed(0)} ms and ${
          bareMs.toFixed(0)
        } ms, medians of ${times.length}`;
        assert.ok(ms / bareMs <= limit, showed);
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

function noTimes(): Times {
  return { blank: [], checked: [], formatted: [], unstage: [] };
}

/** By the driver's log: the way to its socket from outside of the guest is longer than a kubelet's. */
async function timeDriver(driver: Driver, volume: GuestVolume, times: Times): Promise<void> {
  const { node } = driver.clients;
  for (const use of stages) {
    await volume.stage(node, nodeId, { fsckMode: use === "formatted" ? "off" : "preen" });
    await volume.unstage(node);
  }
  for (const [at, ms] of (await loggedMs(driver, volume.id, 2 * stages.length)).entries()) {
    times[at % 2 === 0 ? stages[at / 2]! : "unstage"].push(ms);
  }
}

/** How long the node's calls for a volume took, from their arrival to their answers, in milliseconds, once there are so many. */
async function loggedMs({ service }: Driver, volumeId: string, count: number): Promise<readonly number[]> {
  const isOne = (line: string) =>
    line.includes(`"volumeId":"${volumeId}"`) && /\/Node(?:Uns|S)tageVolume"/.test(line);
  await service.ready((lines) => lines.filter(isOne).length >= count);
  return service.lines.filter(isOne).map((line) => (JSON.parse(line) as { readonly ms: number }).ms);
}

async function timeByHand(volume: VolumeByHand, times: Times): Promise<void> {
  for (const use of stages) {
    times[use].push(await volume.stage(use));
    times.unstage.push(await volume.unstage("mounted"));
  }
}
