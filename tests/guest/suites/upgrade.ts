import assert from "node:assert/strict";
import { codeOf, type CsiClients } from "../../../src/csi/server/client.ts";
import { type Driver, driverPorts, startDriver, startRouter } from "../kit/driver.ts";
import type { Guest } from "../kit/guest.ts";
import type { Bench, Suite } from "../kit/suite.ts";
import type { GuestVolume } from "../kit/volume.ts";
import { tryLegacyVolumes } from "./upgrade/legacy.ts";
import { isLong } from "../../support/long.ts";
import { beginWork, mountKubeletFolder, nodeId, type Workload } from "./upgrade/workload.ts";
import { Stamping } from "./writers/writer.ts";

const stopFile = "/run/stop";
/** How often the plugin is ended, in turn by SIGKILL and by SIGTERM. */
const rounds = isLong ? 20 : 4;
/** Longest that one write of a workload may take, in milliseconds: what the ending of the plugin must not show in. */
const longestWriteMs = 10_000;

/** The plugin is killed, ended and started again under running workloads. */
export const suite: Suite = {
  what:
    "the plugin is killed and replaced while workloads write: no write fails, no mount or connection is touched",
  limitMinutes: isLong ? 60 : 10,
  needsBinary: true,
  run: async (bench) => {
    const guest = await bench.guest({
      ports: driverPorts,
      memoryMiB: 2048,
      disks: [{ name: "pool", sizeBytes: 4 * 2 ** 30 }],
    });
    await mountKubeletFolder(guest);
    const stamping = await Stamping.install(bench.folder, [guest]);
    await tryReplacements(bench, guest, stamping);
    await tryLegacyVolumes(bench, guest, stamping);
  },
};

async function tryReplacements(bench: Bench, guest: Guest, stamping: Stamping): Promise<void> {
  const router = await startRouter(guest, { disk: guest.disk("pool") });
  let driver = await start(guest);
  const workloads: Workload[] = [];
  for (const use of ["ext4", "block"] as const) {
    const options = { name: `upgrade-${use}`, use, sizeBytes: 1 << 30, stop: stopFile };
    workloads.push(await beginWork(guest, driver.clients, stamping, options));
  }
  await bench.test("killed and ended again and again, and started again each time, under workloads", async () => {
    const before = await footprint(guest);
    for (let round = 0; round < rounds; round++) {
      driver = await replace(guest, driver, round % 2 === 0 ? "kill" : "stop", workloads);
      assert.equal(await footprint(guest), before, "mounts or connections are others than before");
    }
    assert.equal(
      await guest.sh("dmesg | grep -E 'I/O error|nvme.*(reconnect|failed|timeout|lost)' || :"),
      "",
    );
    const mounts = before.split("\n").filter((line) => !line.startsWith("nvme")).length;
    return `${rounds} times; ${mounts} mounts and 2 connections as before`;
  });
  await bench.test(
    "the workloads end well: each block is as it was written last, and none took long",
    () => endWork(guest, workloads),
  );
  await bench.test(
    "the plugin that came last takes the volumes off the node, and what was written is there",
    () => takeOff(guest, driver, stamping, workloads),
  );
  await driver.stop();
  await router.service.stop();
}

/** Ends the plugin and starts the next one, which has to know the volumes; the workloads go on all the time. */
async function replace(
  guest: Guest,
  old: Driver,
  end: "kill" | "stop",
  workloads: readonly Workload[],
): Promise<Driver> {
  await old[end]();
  await Promise.all(workloads.map(({ writer }) => writer.progresses()));
  const driver = await start(guest);
  await Promise.all(workloads.map(({ writer }) => writer.progresses()));
  for (const { volume } of workloads) {
    volume.goOnWith(driver.clients.controller);
    await assertKnown(driver.clients, volume);
  }
  return driver;
}

async function endWork(guest: Guest, workloads: readonly Workload[]): Promise<string> {
  await guest.sh(`touch ${stopFile}`);
  const shown = [];
  for (const { volume, writer } of workloads) {
    await writer.end();
    const { verified, longestMs = Infinity } = writer.reported.at(-1)!.line;
    assert.ok(longestMs < longestWriteMs, `a write to ${volume.use} took ${longestMs} ms`);
    shown.push(
      `${volume.use}: ${writer.acknowledged} writes, ${verified} blocks verified, slowest ${longestMs} ms`,
    );
  }
  return shown.join("; ");
}

async function takeOff(
  guest: Guest,
  { clients }: Driver,
  stamping: Stamping,
  workloads: readonly Workload[],
): Promise<string> {
  const leave = async (volume: GuestVolume) => {
    await volume.detach(clients.node);
    await volume.unpublish(nodeId);
  };
  for (const { volume } of workloads) await leave(volume);
  assert.equal(await footprint(guest), "");
  const shown = [];
  for (const { volume, path, writer } of workloads) {
    await volume.publish(nodeId);
    await volume.attach(clients.node, nodeId);
    const stamps = await stamping.read(guest, path);
    assert.ok(stamps.every(([, , , isWhole]) => isWhole), "a block is torn");
    assert.equal(Math.max(...stamps.map(([, , sequence]) => sequence)), writer.acknowledged);
    shown.push(`${volume.use}: ${stamps.length} whole blocks, the last one among them`);
    await leave(volume);
    await clients.controller.call("DeleteVolume", { volumeId: volume.id });
  }
  return shown.join("; ");
}

/** A plugin in a mount namespace of its own, which ends with it, as a container's. */
function start(guest: Guest): Promise<Driver> {
  return startDriver(guest, { nodeId, namespace: "shared" });
}

/** Every mount and every connection of volumes, with the numbers that a new one would not have. */
async function footprint(guest: Guest): Promise<string> {
  return await guest.sh(
    `grep pvc- /proc/self/mountinfo
     for one in /sys/class/nvme/nvme*; do
       [ ! -e "$one" ] || echo "\${one##*/} $(cat $one/subsysnqn $one/state $one/cntlid | tr '\\n' ' ')"
     done; :`,
  );
}

async function assertKnown({ node }: CsiClients, volume: GuestVolume): Promise<void> {
  const request = { volumeId: volume.id, volumePath: volume.target, stagingTargetPath: volume.staging };
  const { usage } = await node.call("NodeGetVolumeStats", request);
  const total = Number(usage.find(({ unit }) => unit === "BYTES")?.total);
  assert.ok(total > 0.8 * 2 ** 30, `${volume.use} shows ${total} bytes`);
  const unstaged = await node.call("NodeUnstageVolume", {
    volumeId: volume.id,
    stagingTargetPath: volume.staging,
  }).then(() => "OK", codeOf);
  assert.equal(unstaged, "FAILED_PRECONDITION", "a published volume was unstaged");
}
