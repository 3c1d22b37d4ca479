import type { KernelFiles } from "../host/kernel_files.ts";
import type { NodeEvent, NodeEvents } from "../volume/ports/node_events.ts";
import type { Meter, MetricRegistry, MetricTable } from "./metrics.ts";

const labels = ["volume_id"] as const;

/**
 * The kernel's counters of the devices of staged volumes. Each has one series for each volume, so they are optional.
 */
export const volumeIoMetrics = {
  rds_csi_volume_read_bytes_total: {
    type: "counter",
    help: "Bytes read from a volume's device.",
    labels,
  },
  rds_csi_volume_written_bytes_total: {
    type: "counter",
    help: "Bytes written to a volume's device.",
    labels,
  },
  rds_csi_volume_reads_total: {
    type: "counter",
    help: "Reads that a volume's device has ended.",
    labels,
  },
  rds_csi_volume_writes_total: {
    type: "counter",
    help: "Writes that a volume's device has ended.",
    labels,
  },
  rds_csi_volume_read_seconds_total: {
    type: "counter",
    help: "Total time of a volume's reads.",
    labels,
  },
  rds_csi_volume_write_seconds_total: {
    type: "counter",
    help: "Total time of a volume's writes.",
    labels,
  },
} as const satisfies MetricTable;

/** The position of each in a device's statistics, and its factor (Linux, block/stat.rst). */
const fields: Readonly<Record<keyof typeof volumeIoMetrics, readonly [field: number, unit: number]>> = {
  rds_csi_volume_reads_total: [0, 1],
  rds_csi_volume_read_bytes_total: [2, 512],
  rds_csi_volume_read_seconds_total: [3, 1 / 1000],
  rds_csi_volume_writes_total: [4, 1],
  rds_csi_volume_written_bytes_total: [6, 512],
  rds_csi_volume_write_seconds_total: [7, 1 / 1000],
};

const names = Object.keys(fields) as (keyof typeof volumeIoMetrics)[];

/** A device by the kernel's number, and its sequence number, which no other device gets until the next boot. */
interface Device {
  readonly number: string;
  readonly sequence: string;
}

/**
 * Shows the kernel's counters of the devices of staged volumes. It only reads /sys, from the kernel's memory: a dead
 * device delays nothing.
 *
 * A device's number may belong to another one at the time of a scrape. So the kernel's sequence number of the disk
 * (Linux 5.15 and newer) is kept from when the device was known to be the volume's. A device with another sequence
 * number is not shown.
 */
export class VolumeIo implements NodeEvents {
  readonly #files: Pick<KernelFiles, "readText">;
  readonly #meter: Meter<typeof volumeIoMetrics>;
  readonly #devices = new Map<string, Device>();

  constructor(registry: MetricRegistry, files: Pick<KernelFiles, "readText">) {
    this.#files = files;
    this.#meter = registry.declare(volumeIoMetrics);
    registry.beforeExpose(() => this.#read());
  }

  occurred(event: NodeEvent): void {
    if (event.kind === "device") this.#see(event.volumeId, event.deviceNumber);
    else if (event.kind === "staged" && !event.staged) this.#forget(event.volumeId);
  }

  #see(volumeId: string, number: string): void {
    const sequence = this.#sequenceOf(number);
    if (sequence === undefined) this.#forget(volumeId);
    else this.#devices.set(volumeId, { number, sequence });
  }

  #read(): void {
    for (const [volumeId, { number, sequence }] of this.#devices) {
      const text = this.#text(`/sys/dev/block/${number}/stat`)?.trim().split(/\s+/).map(Number) ?? [];
      // Compared after the read, so that the counters certainly belong to that device.
      if (text.length < 11 || this.#sequenceOf(number) !== sequence) this.#forget(volumeId);
      else {
        for (const name of names) {
          const [field, unit] = fields[name];
          this.#meter.total(name, text[field]! * unit, { volume_id: volumeId });
        }
      }
    }
  }

  #sequenceOf(number: string): string | undefined {
    return this.#text(`/sys/dev/block/${number}/diskseq`);
  }

  /** A value that cannot be read is not shown. */
  #text(path: string): string | undefined {
    try {
      return this.#files.readText(path);
    } catch {
      return undefined;
    }
  }

  #forget(volumeId: string): void {
    this.#devices.delete(volumeId);
    for (const name of names) this.#meter.drop(name, { volume_id: volumeId });
  }
}
