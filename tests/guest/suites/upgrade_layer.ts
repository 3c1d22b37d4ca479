import assert from "node:assert/strict";
import { type Driver, driverPorts, type Router, startDriver, startRouter } from "../kit/driver.ts";
import type { Guest } from "../kit/guest.ts";
import { usualKernel } from "../kit/kernel.ts";
import type { Suite } from "../kit/suite.ts";
import { SeededRandom } from "../../fakes/random.ts";
import { isLong } from "../../support/long.ts";
import { beginWork, mountKubeletFolder, nodeId, type Workload } from "./upgrade/workload.ts";
import { Stamping } from "./writers/writer.ts";

const uses = isLong ? ["ext4", "xfs", "block"] as const : ["ext4", "block"] as const;
/** No xfs is smaller. */
const volumeBytes = isLong ? 320 << 20 : 64 << 20;
/** How long the router is away, in milliseconds. */
const downMs = 4_000;
/** Within how long after the router's return a repair is over, so that a kill falls into it, in milliseconds. */
const repairMs = 5_000;
/** Rounds of each end, at other moments. */
const rounds = isLong ? 10 : 2;
/** Of the volumes' StorageClass. */
const parameters = { reconnectDelay: "2", ctrlLossTmo: "600" };
const stopFile = "/run/stop";

/** How the plugin ends, and when: while its router is away, or somewhere in the repair after that. */
const ends = [
  ["is killed while its volumes wait", "kill", () => downMs / 2],
  ["is killed in the midst of repairs", "kill", (fraction: number) => downMs + fraction * repairMs],
  ["is replaced while its volumes wait", "stop", () => downMs / 2],
  ["is replaced in the midst of repairs", "stop", (fraction: number) => downMs + fraction * repairMs],
] as const;

/** The plugin's process, killed and replaced while volumes with a device layer wait for a router that reboots. */
export const suite: Suite = {
  what:
    "the plugin is killed and replaced while volumes with a device layer wait: no write fails, none is lost",
  limitMinutes: isLong ? 40 : 10,
  needsBinary: true,
  run: async (bench) => {
    const random = new SeededRandom(bench.seed());
    const guest = await bench.guest({
      ports: driverPorts,
      // It gives a connection up at the first refusal, so that each reboot is one for the device layer.
      kernel: usualKernel("backports"),
      memoryMiB: 2048,
      disks: [{ name: "pool", sizeBytes: 4 * 2 ** 30 }],
    });
    await mountKubeletFolder(guest);
    const stamping = await Stamping.install(bench.folder, [guest]);
    const router = await startRouter(guest, {
      disk: guest.disk("pool"),
      flags: ["--behaviour", "bootIdentity=new"],
    });
    let driver = await start(guest);
    const workloads: Workload[] = [];
    const begun = await bench.test(`${uses.join(" and ")} are written behind maps`, async () => {
      for (const use of uses) {
        const options = { name: `waits-${use}`, use, sizeBytes: volumeBytes, parameters, stop: stopFile };
        workloads.push(await beginWork(guest, driver.clients, stamping, options));
      }
      return await guest.sh("dmsetup table");
    });
    if (!begun) return;
    for (const [what, end, moment] of ends) {
      const isFine = await bench.test(`the plugin ${what}, and the next one lets them go on`, async () => {
        const said: string[] = [];
        for (let round = 0; round < rounds; round++) {
          const afterMs = moment(random.fraction());
          const ended = await endDuringReboot(router, driver, end, afterMs, workloads);
          driver = await start(guest);
          const startedMs = performance.now();
          await Promise.all(workloads.map(({ writer }) => writer.progresses()));
          const onMs = Math.round(performance.now() - startedMs);
          said.push(`ended after ${Math.round(afterMs)} ms${ended}, went on ${onMs} ms after the next start`);
          for (const { volume } of workloads) volume.goOnWith(driver.clients.controller);
        }
        return said.join("; ");
      });
      if (!isFine) return;
    }
    await bench.test(
      "every block was as it was written last; the last plugin takes the volumes down, and the file system is clean",
      () => takeDown(guest, router, driver, workloads),
    );
    await driver.stop();
    await router.service.stop();
  },
};

/** Nobody looks after the volumes then, and nothing is written until somebody does. */
async function endDuringReboot(
  router: Router,
  driver: Driver,
  end: "kill" | "stop",
  afterMs: number,
  workloads: readonly Workload[],
): Promise<string> {
  const body = JSON.stringify({ downMs, disksLateMs: 0, nvmePort: "before" });
  await router.control("/reboot", { method: "POST", body });
  await sleep(afterMs);
  await driver[end]();
  // The router is back, with all of its exports.
  await sleep(Math.max(0, downMs - afterMs) + 3_000);
  if (afterMs >= downMs) return "";
  const before = workloads.map(({ writer }) => writer.acknowledged);
  await sleep(2_000);
  assert.deepEqual(workloads.map(({ writer }) => writer.acknowledged), before, "nobody looks after them");
  return ", nothing was acknowledged without it";
}

async function takeDown(
  guest: Guest,
  router: Router,
  { clients }: Driver,
  workloads: readonly Workload[],
): Promise<string> {
  await guest.sh(`touch ${stopFile}`);
  const said: string[] = [];
  for (const { volume, writer } of workloads) {
    await writer.end();
    const { verified, longestMs } = writer.reported.at(-1)!.line;
    said.push(`${volume.use}: ${writer.acknowledged} writes, ${verified} verified, slowest ${longestMs} ms`);
    await volume.detach(clients.node);
    await volume.unpublish(nodeId);
    if (volume.use === "block") continue;
    const images = `find ${router.backing} -type f -path "*${volume.id}*"`;
    const check = volume.use === "xfs" ? "xfs_repair -n" : "e2fsck -fn";
    await guest.sh(`image=$(${images}); ${check} "$image"`);
  }
  assert.equal(await guest.sh("dmsetup ls"), "No devices found");
  assert.deepEqual(await router.violations(), []);
  return said.join("; ");
}

/** A plugin in a mount namespace of its own, which ends with it, as a container's. */
function start(guest: Guest): Promise<Driver> {
  return startDriver(guest, { nodeId, namespace: "shared", flags: ["--device-layer", "multipath"] });
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
