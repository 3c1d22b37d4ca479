import assert from "node:assert/strict";
import { join } from "node:path";
import { makeGuideSecret, secretFolder, simulatorPod } from "../../deploy/simulator_pod.ts";
import { controlPort, type Driver, driverPorts, startDriver } from "../kit/driver.ts";
import type { Guest } from "../kit/guest.ts";
import { GuestService } from "../kit/service.ts";
import type { Bench, Suite } from "../kit/suite.ts";
import { GuestVolume, untilOk } from "../kit/volume.ts";

const nodeId = "node-1";
const volumeBytes = 64 << 20;

/** What serves the volumes is the simulator's own target, and not the kernel's as in the other suites. */
export const suite: Suite = {
  what:
    "the simulated router of the chart's pod, by its very arguments, under the kernel's NVMe/TCP initiator",
  limitMinutes: 8,
  needsBinary: true,
  run: async (bench) => {
    const guest = await bench.guest({ ports: driverPorts, memoryMiB: 2048 });
    const pod = simulatorPod(guest.address);
    await giveSecret(bench, guest);
    // What the Service of the chart does.
    await guest.sh(`echo "${guest.address} ${pod.host}" >> /etc/hosts`);
    const first = await startPod(guest, pod.args);
    const driver = await startDriver(guest, {
      // Nothing of what the other suites tell a controller: the last flag of a name counts.
      mode: "node",
      nodeId,
      flags: [
        ...["--mode=all", "--cluster-id=try", `--known-node=${nodeId}`, "--unexport-grace=0s"],
        ...["--fence-interval=1s", "--fence-settle-time=3s", ...pod.routerFlags],
      ],
    });
    const { controller, node } = driver.clients;
    const data = await GuestVolume.create(controller, "data", "ext4", volumeBytes);
    await bench.test("a volume is formatted, written, and read back from the target", async () => {
      await data.publish(nodeId);
      await data.attach(node, nodeId);
      const sum = await write(guest, data);
      const transport = await guest.sh("cat /sys/class/nvme/nvme*/transport /sys/class/nvme/nvme*/address");
      await guest.sh("echo 3 > /proc/sys/vm/drop_caches");
      assert.equal(await sumOf(guest, data), sum);
      return transport.trim().replaceAll("\n", " ");
    });
    await bench.test("a snapshot of it becomes a volume with the same data", () =>
      restore(guest, driver, data));
    await bench.test("it is given up and deleted, and nothing is left", async () => {
      await giveUp(driver, data);
      assert.equal((await guest.sh("ls /sys/class/nvme")).trim(), "");
      const violations = await fetch(`http://127.0.0.1:${guest.forwarded(controlPort)}/violations`);
      assert.deepEqual(await violations.json(), []);
      return "no connection, no broken rule";
    });
    await bench.test("a volume of a simulator that was replaced by an empty one can be given up and deleted", async () => {
      const lost = await GuestVolume.create(controller, "lost", "ext4", volumeBytes);
      await lost.publish(nodeId);
      await lost.attach(node, nodeId);
      await first.killAlone();
      await guest.sh("rm -r /tmp/simulator");
      const second = await startPod(guest, pod.args);
      const startedMs = performance.now();
      await giveUp(driver, lost);
      const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
      assert.equal((await guest.sh("ls /sys/class/nvme")).trim(), "");
      await second.stop();
      return `after ${seconds} s, with 3 s of --fence-settle-time`;
    });
    await driver.stop();
  },
};

async function giveSecret(bench: Bench, guest: Guest): Promise<void> {
  const secret = join(bench.folder, "secret");
  await makeGuideSecret(secret);
  await guest.sh(`mkdir -p ${secretFolder}`);
  for (const { name } of Deno.readDirSync(secret)) {
    await guest.write(`${secretFolder}/${name}`, await Deno.readTextFile(join(secret, name)), 0o440);
  }
}

async function startPod(guest: Guest, args: readonly string[]): Promise<GuestService> {
  await guest.sh("mkdir -p /tmp/simulator");
  // The host is not in the pod, whose loopback the control port is at.
  const service = await GuestService.start(guest, "simulator", [...args, "--control-listen=0.0.0.0"]);
  await service.ready((lines) => lines.some((line) => line.startsWith('{"ready":true')));
  return service;
}

/** Fills a file of the volume with noise; answers its digest. */
async function write(guest: Guest, volume: GuestVolume): Promise<string> {
  await guest.sh("dd if=/dev/urandom of=$target/file bs=1M count=16 conv=fsync status=none", {
    env: { target: volume.target },
  });
  return await sumOf(guest, volume);
}

async function sumOf(guest: Guest, volume: GuestVolume): Promise<string> {
  return await guest.sh("sha256sum < $target/file", { env: { target: volume.target } });
}

async function restore(
  guest: Guest,
  { clients }: Pick<Driver, "clients">,
  source: GuestVolume,
): Promise<string> {
  const { controller, node } = clients;
  const sum = await sumOf(guest, source);
  const { snapshot } = await controller.call("CreateSnapshot", { name: "then", sourceVolumeId: source.id });
  await guest.sh("rm $target/file", { env: { target: source.target } });
  const copy = await GuestVolume.create(controller, "copy", "ext4", volumeBytes, {}, snapshot!.snapshotId);
  await copy.publish(nodeId);
  await copy.attach(node, nodeId);
  assert.equal(await sumOf(guest, copy), sum);
  await giveUp({ clients }, copy);
  await controller.call("DeleteSnapshot", { snapshotId: snapshot!.snapshotId });
  return "16 MiB, of which the source has nothing any more";
}

async function giveUp({ clients }: Pick<Driver, "clients">, volume: GuestVolume): Promise<void> {
  await volume.detach(clients.node);
  await untilOk(() => volume.unpublish(nodeId));
  await untilOk(() => clients.controller.call("DeleteVolume", { volumeId: volume.id }));
}
