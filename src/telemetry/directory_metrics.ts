import type { DirectoryEvent, DirectoryEvents } from "../volume/ports/directory_events.ts";
import type { Meter, MetricRegistry, MetricTable } from "./metrics.ts";

/** The metrics of a controller of directories. */
export const directoryMetrics = {
  rds_csi_share_usable: {
    type: "gauge",
    help:
      "Whether directories can be made on the share: it is mounted, shared over NFS, and holds no image of a block " +
      "volume; as it was read last, at least every ten minutes.",
    labels: ["backend"],
  },
  rds_csi_share_free_bytes: {
    type: "gauge",
    help: "Free space on the share, as it was read last.",
    labels: ["backend"],
  },
  rds_csi_directory_removals_pending: {
    type: "gauge",
    help: "Deleted directories that wait for their removal.",
    labels: ["backend"],
  },
} as const satisfies MetricTable;

/** Counts the events of a controller of directories. */
export class DirectoryMetrics implements DirectoryEvents {
  readonly #meter: Meter<typeof directoryMetrics>;

  /** @param backend name of the router */
  constructor(registry: MetricRegistry, backend: string) {
    this.#meter = registry.declare(directoryMetrics, { backend });
  }

  occurred(event: DirectoryEvent): void {
    switch (event.kind) {
      case "share-read":
        this.#meter.set("rds_csi_share_usable", event.isUsable ? 1 : 0);
        this.#meter.set("rds_csi_share_free_bytes", Number(event.freeBytes));
        return;
      case "removals-pending":
        return this.#meter.set("rds_csi_directory_removals_pending", event.count);
      case "removal-progress":
        return;
    }
  }
}
