import {
  btrfsErrorKinds,
  type HardwareFinding,
  type JudgedHardware,
} from "../volume/model/health/hardware.ts";
import { poolsOn } from "../volume/rules/health/hardware.ts";
import type { ControllerEvent, ControllerEvents } from "../volume/ports/controller_events.ts";
import type { Labels, Meter, MetricRegistry, MetricTable } from "./metrics.ts";

/** The metrics of a router's arrays and drives. Of what the router does not report there is no series. */
export const hardwareMetrics = {
  rds_csi_hardware_timestamp_seconds: {
    type: "gauge",
    help:
      "Time of the last reading of the router's arrays and drives; 0 before the first one, and where another controller leads.",
    labels: ["backend"],
  },
  rds_csi_hardware_problems: {
    type: "gauge",
    help:
      "1 for each fault of an array, a drive or a Btrfs file system not known to be over. `pool` is empty " +
      "where no pool uses it.",
    labels: ["backend", "severity", "reason", "slot", "model", "serial", "pool"],
  },
  rds_csi_drive_temperature_celsius: {
    type: "gauge",
    help: "Temperature of a drive.",
    labels: ["backend", "slot", "serial"],
  },
  rds_csi_drive_used_ratio: {
    type: "gauge",
    help: "How much of its expected life a drive has used, by its own measure; it may exceed 1.",
    labels: ["backend", "slot", "serial"],
  },
  rds_csi_drive_spare_ratio: {
    type: "gauge",
    help: "How many of its spare blocks a drive has left.",
    labels: ["backend", "slot", "serial"],
  },
  rds_csi_drive_errors_total: {
    type: "counter",
    help: "Errors as the router counts them, by kind: io of a drive or an array; write, read, flush, " +
      "corruption or generation of a device of a Btrfs pool.",
    labels: ["backend", "slot", "serial", "pool", "kind"],
  },
} as const satisfies MetricTable;

type Name = keyof typeof hardwareMetrics & string;
type Gauge = Exclude<Name, "rds_csi_drive_errors_total">;

/** Shows the last reading of one router's hardware. */
export class HardwareMetrics implements ControllerEvents {
  readonly #meter: Meter<typeof hardwareMetrics>;
  #shown: (readonly [Name, Labels])[] = [];

  /** @param backend name of the router */
  constructor(registry: MetricRegistry, backend: string) {
    this.#meter = registry.declare(hardwareMetrics, { backend });
  }

  occurred(event: ControllerEvent): void {
    if (event.kind !== "hardware-read") return;
    for (const [name, labels] of this.#shown) this.#meter.drop(name, labels);
    this.#shown = [];
    this.#meter.set("rds_csi_hardware_timestamp_seconds", (event.read?.atMs ?? 0) / 1000);
    if (event.read !== undefined) this.#show(event.read);
  }

  #show({ reading, findings }: JudgedHardware): void {
    for (const finding of findings) this.#gauge("rds_csi_hardware_problems", labelsOf(finding), 1);
    for (const { slot, serial = "", celsius, usedPercent, sparePercent, ioErrors } of reading.disks ?? []) {
      const drive = { slot, serial };
      this.#gauge("rds_csi_drive_temperature_celsius", drive, celsius);
      this.#gauge("rds_csi_drive_used_ratio", drive, ratio(usedPercent));
      this.#gauge("rds_csi_drive_spare_ratio", drive, ratio(sparePercent));
      this.#count({ ...drive, pool: poolsOn(reading, slot).join(), kind: "io" }, ioErrors);
    }
    for (const { slot, errors } of (reading.filesystems ?? []).flatMap(({ devices = [] }) => devices)) {
      const disk = reading.disks?.find((one) => one.slot === slot);
      // Of any other file system its user may have chosen the numbers.
      if (slot === undefined || disk === undefined) continue;
      const labels = { slot, serial: disk.serial ?? "", pool: poolsOn(reading, slot).join() };
      for (const kind of btrfsErrorKinds) this.#count({ ...labels, kind }, errors[kind]);
    }
  }

  #gauge(name: Gauge, labels: Labels, value: number | undefined): void {
    if (value === undefined) return;
    this.#meter.set(name, value, labels);
    this.#shown.push([name, labels]);
  }

  #count(labels: Labels, value: number | undefined): void {
    if (value === undefined) return;
    this.#meter.total("rds_csi_drive_errors_total", value, labels);
    this.#shown.push(["rds_csi_drive_errors_total", labels]);
  }
}

function labelsOf({ severity, reason, slot, model = "", serial = "", pools }: HardwareFinding): Labels {
  return { severity, reason, slot, model, serial, pool: pools.join() };
}

function ratio(percent: number | undefined): number | undefined {
  return percent === undefined ? undefined : percent / 100;
}
