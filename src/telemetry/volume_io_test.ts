import assert from "node:assert/strict";
import { FakeKernelFiles } from "../../tests/fakes/kernel_files.ts";
import { VolumeError } from "../volume/errors.ts";
import { MetricRegistry } from "./metrics.ts";
import { VolumeIo } from "./volume_io.ts";

const stat = "  10  1  16  25  20  2  32  50  0  75  100  0 0 0 0";

function opened() {
  const registry = new MetricRegistry();
  const files = new FakeKernelFiles();
  const io = new VolumeIo(registry, files);
  files.texts.set("/sys/dev/block/259:1/diskseq", "7").set("/sys/dev/block/259:1/stat", stat);
  const shown = () => registry.expose().split("\n").filter((line) => line.startsWith("rds_csi_volume_"));
  return { registry, files, io, shown };
}

Deno.test("VolumeIo shows the kernel's counters of a volume's device, in base units", () => {
  const { io, shown } = opened();
  assert.deepEqual(shown(), []);
  io.occurred({ kind: "device", volumeId: "pvc-1", deviceNumber: "259:1" });
  assert.deepEqual(shown().toSorted(), [
    'rds_csi_volume_read_bytes_total{volume_id="pvc-1"} 8192',
    'rds_csi_volume_read_seconds_total{volume_id="pvc-1"} 0.025',
    'rds_csi_volume_reads_total{volume_id="pvc-1"} 10',
    'rds_csi_volume_write_seconds_total{volume_id="pvc-1"} 0.05',
    'rds_csi_volume_writes_total{volume_id="pvc-1"} 20',
    'rds_csi_volume_written_bytes_total{volume_id="pvc-1"} 16384',
  ]);
  io.occurred({ kind: "staged", volumeId: "pvc-1", staged: true });
  assert.equal(shown().length, 6);
  io.occurred({ kind: "staged", volumeId: "pvc-1", staged: false });
  assert.deepEqual(shown(), []);
});

Deno.test("VolumeIo shows nothing of another device that has got the volume's number", () => {
  const { io, files, shown } = opened();
  io.occurred({ kind: "device", volumeId: "pvc-1", deviceNumber: "259:1" });
  assert.equal(shown().length, 6);
  files.texts.set("/sys/dev/block/259:1/diskseq", "8");
  assert.deepEqual(shown(), []);
  files.texts.set("/sys/dev/block/259:1/diskseq", "7");
  assert.deepEqual(shown(), [], "it is not believed again before somebody has looked");
  io.occurred({ kind: "device", volumeId: "pvc-2", deviceNumber: "259:1" });
  assert.equal(shown().filter((line) => line.includes("pvc-2")).length, 6);
});

Deno.test("VolumeIo shows nothing where the kernel cannot identify devices, has lost one, or returns nothing", () => {
  const { io, files, shown } = opened();
  io.occurred({ kind: "device", volumeId: "pvc-1", deviceNumber: "259:9" });
  assert.deepEqual(shown(), []);
  for (
    const break_ of [
      () => files.texts.delete("/sys/dev/block/259:1/stat"),
      () => files.texts.set("/sys/dev/block/259:1/stat", "1 2 3"),
      () => {
        files.readText = () => {
          throw new VolumeError("unavailable", "not now");
        };
      },
    ]
  ) {
    files.texts.set("/sys/dev/block/259:1/stat", stat);
    io.occurred({ kind: "device", volumeId: "pvc-1", deviceNumber: "259:1" });
    assert.equal(shown().length, 6);
    break_();
    assert.deepEqual(shown(), []);
  }
});
