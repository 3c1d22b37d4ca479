import assert from "node:assert/strict";
import type { JudgedHardware } from "../volume/model/health/hardware.ts";
import { HardwareMetrics } from "./hardware_metrics.ts";
import { MetricRegistry } from "./metrics.ts";

const read: JudgedHardware = {
  atMs: 1_700_000_000_000,
  reading: {
    disks: [
      {
        slot: "nvme1",
        serial: "S1",
        master: "pool",
        celsius: 40,
        usedPercent: 101,
        sparePercent: 5,
        ioErrors: 3,
      },
      { slot: "nvme2", serial: "S2" },
      { slot: "pool", kind: "raid", mountPoint: "pool" },
    ],
    filesystems: [
      {
        activity: [],
        devices: [{ slot: "pool", errors: { write: 2 } }, { slot: undefined, errors: { write: 9 } }],
      },
      { activity: [], devices: [{ slot: "pvc-1", errors: { write: 7 } }] },
    ],
  },
  findings: [{
    ...{ reason: "DriveWorn", severity: "warning", slot: "nvme1", model: "M", serial: "S1" },
    ...{ pools: ["pool"], message: "worn" },
  }],
};

function scene() {
  const registry = new MetricRegistry();
  const metrics = new HardwareMetrics(registry, "r");
  return {
    metrics,
    lines: () => registry.expose().split("\n").filter((line) => line !== "" && !line.startsWith("#")),
  };
}

Deno.test("HardwareMetrics shows what a reading knows, with its time", () => {
  const { metrics, lines } = scene();
  metrics.occurred({ kind: "hardware-read", read });
  assert.deepEqual(lines(), [
    `rds_csi_hardware_timestamp_seconds{backend="r"} 1700000000`,
    `rds_csi_hardware_problems{backend="r",severity="warning",reason="DriveWorn",slot="nvme1",model="M",serial="S1",pool="pool"} 1`,
    `rds_csi_drive_temperature_celsius{backend="r",slot="nvme1",serial="S1"} 40`,
    `rds_csi_drive_used_ratio{backend="r",slot="nvme1",serial="S1"} 1.01`,
    `rds_csi_drive_spare_ratio{backend="r",slot="nvme1",serial="S1"} 0.05`,
    `rds_csi_drive_errors_total{backend="r",slot="nvme1",serial="S1",pool="pool",kind="io"} 3`,
    `rds_csi_drive_errors_total{backend="r",slot="pool",pool="pool",kind="write"} 2`,
  ]);
});

Deno.test("HardwareMetrics shows nothing of what is unknown now, and after another controller took the lead", () => {
  const { metrics, lines } = scene();
  const none = [`rds_csi_hardware_timestamp_seconds{backend="r"} 0`];
  assert.deepEqual(lines(), none);
  metrics.occurred({ kind: "hardware-read", read });
  metrics.occurred({ kind: "hardware-read", read: { ...read, reading: {}, findings: [] } });
  assert.deepEqual(lines(), [`rds_csi_hardware_timestamp_seconds{backend="r"} 1700000000`]);
  metrics.occurred({ kind: "hardware-read", read });
  metrics.occurred({ kind: "hardware-read", read: undefined });
  assert.deepEqual(lines(), none);
});
