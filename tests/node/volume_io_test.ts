import assert from "node:assert/strict";
import { MetricRegistry } from "../../src/telemetry/metrics.ts";
import { VolumeIo } from "../../src/telemetry/volume_io.ts";
import { call, nodeTest, run, TestVolume } from "./harness.ts";

const mebibyte = 1 << 20;

nodeTest("writes to a volume are counted for it, and for no other one", async (node) => {
  const [one, other] = ["pvc-1", "pvc-2"].map((id) => new TestVolume(node, id, 64n << 20n)) as [
    TestVolume,
    TestVolume,
  ];
  const registry = new MetricRegistry();
  const io = new VolumeIo(registry, node.libc);
  const written = (volume: TestVolume) => {
    const start = `rds_csi_volume_written_bytes_total{volume_id="${volume.id}"} `;
    const line = registry.expose().split("\n").find((each) => each.startsWith(start));
    return line === undefined ? undefined : Number(line.slice(start.length));
  };
  for (const volume of [one, other]) {
    await node.stage(volume);
    io.occurred({
      kind: "device",
      volumeId: volume.id,
      deviceNumber: node.events.devices.get(volume.id) ?? assert.fail("staging has not told of it"),
    });
  }
  const [before, otherBefore] = [written(one)!, written(other)!];
  assert.ok(before > 0, "a file system was made");
  await run("dd", "if=/dev/zero", `of=${node.staging("pvc-1")}/data`, "bs=1M", "count=8", "conv=fsync");
  const grown = written(one)! - before;
  assert.ok(grown >= 8 * mebibyte && grown < 16 * mebibyte, `${grown} bytes`);
  assert.ok(written(other)! - otherBefore < 4 * mebibyte, "the other one has only its own journal");
  // After a restart no device is known; the kubelet's next call for statistics reports it.
  node.events.devices.clear();
  await node.service.stats("pvc-1", node.staging("pvc-1"), call());
  assert.ok(node.events.devices.has("pvc-1"));
  await node.unstage(one);
  // No event has reported its end; the kernel's sequence number of the disk shows it.
  assert.equal(written(one), undefined);
  await node.unstage(other);
});
