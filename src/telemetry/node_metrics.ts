import { allTools } from "../host/tools.ts";
import {
  formatRefusals,
  type NodeEvent,
  type NodeEvents,
  staleMountFinders,
  trimOutcomes,
} from "../volume/ports/node_events.ts";
import type { Meter, MetricRegistry, MetricTable } from "./metrics.ts";

/** The metrics of a node's work. */
export const nodeMetrics = {
  rds_csi_identity_mismatches_total: {
    type: "counter",
    help: "Actions refused because the device is not proven to be the volume.",
    labels: [],
  },
  rds_csi_format_refusals_total: {
    type: "counter",
    help: "Devices without a mountable file system that the driver refused to format, by reason.",
    labels: ["reason"],
  },
  rds_csi_passphrase_refusals_total: {
    type: "counter",
    help: "Stages of encrypted volumes that failed because the secret's passphrase opens none of their keys.",
    labels: [],
  },
  rds_csi_connects_total: {
    type: "counter",
    help: "Attempts to connect a volume, by outcome: ok or failed.",
    labels: ["outcome"],
  },
  rds_csi_stale_mounts_total: {
    type: "counter",
    help: "Mounts whose device is gone or has changed, or which do not answer, by what found them.",
    labels: ["finder"],
  },
  rds_csi_hung_operations_total: {
    type: "counter",
    help:
      "Operations that still hung in the kernel after their timeout, by tool; `file` for the driver's own files.",
    labels: ["operation"],
  },
  rds_csi_fenced_volumes_torn_down_total: {
    type: "counter",
    help:
      "Volumes cut off from this node because they were published in a later epoch, or unstaged after the router had not " +
      "offered them for long.",
    labels: [],
  },
  rds_csi_trims_total: {
    type: "counter",
    help:
      "Trims of file systems by --fstrim-interval, by outcome: ok, failed, or unsupported where the device takes no discards.",
    labels: ["outcome"],
  },
  rds_csi_trimmed_bytes_total: {
    type: "counter",
    help: "Bytes that file systems discarded; the router may free less.",
    labels: [],
  },
  rds_csi_last_trim_timestamp_seconds: {
    type: "gauge",
    help: "When a file system was last trimmed well, in seconds since the Unix epoch; 0 for not yet.",
    labels: [],
  },
  rds_csi_tool_seconds: {
    type: "histogram",
    help: "Run time of the tools that the driver runs, such as mkfs.ext4 and mount.",
    labels: ["tool"],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
  },
  rds_csi_waiting_volumes: {
    type: "gauge",
    help: "Volumes with a device layer whose writes wait for their device.",
    labels: [],
  },
  rds_csi_staged_volumes: {
    type: "gauge",
    help: "Volumes staged on this node, or shared directories published on it.",
    labels: [],
  },
} as const satisfies MetricTable;

/** Counts the events of a node. */
export class NodeMetrics implements NodeEvents {
  readonly #meter: Meter<typeof nodeMetrics>;
  readonly #staged = new Set<string>();
  readonly #waiting = new Set<string>();

  /** Metrics with a closed list of label values start at zero, so that the first event is an increase. */
  constructor(registry: MetricRegistry) {
    const meter = registry.declare(nodeMetrics);
    for (const reason of formatRefusals) meter.add("rds_csi_format_refusals_total", { reason }, 0);
    for (const outcome of ["ok", "failed"]) meter.add("rds_csi_connects_total", { outcome }, 0);
    for (const outcome of trimOutcomes) meter.add("rds_csi_trims_total", { outcome }, 0);
    for (const finder of staleMountFinders) meter.add("rds_csi_stale_mounts_total", { finder }, 0);
    for (const operation of ["file", ...allTools]) {
      meter.add("rds_csi_hung_operations_total", { operation }, 0);
    }
    meter.set("rds_csi_last_trim_timestamp_seconds", 0);
    meter.read("rds_csi_waiting_volumes", () => this.#waiting.size);
    meter.read("rds_csi_staged_volumes", () => this.#staged.size);
    this.#meter = meter;
  }

  occurred(event: NodeEvent): void {
    const meter = this.#meter;
    switch (event.kind) {
      case "identity-mismatch":
        return meter.add("rds_csi_identity_mismatches_total");
      case "format-refused":
        return meter.add("rds_csi_format_refusals_total", { reason: event.reason });
      case "passphrase-refused":
        return meter.add("rds_csi_passphrase_refusals_total");
      case "connected":
        return meter.add("rds_csi_connects_total", { outcome: event.outcome });
      case "stale-mount":
        return meter.add("rds_csi_stale_mounts_total", { finder: event.finder });
      case "operation-hung":
        return meter.add("rds_csi_hung_operations_total", { operation: event.operation });
      case "trimmed":
        meter.add("rds_csi_trims_total", { outcome: event.outcome });
        if (event.outcome !== "ok") return;
        meter.add("rds_csi_trimmed_bytes_total", {}, Number(event.bytes));
        return meter.set("rds_csi_last_trim_timestamp_seconds", event.atMs / 1000);
      case "fenced-torn-down":
        return meter.add("rds_csi_fenced_volumes_torn_down_total");
      case "waiting":
        if (event.waits) this.#waiting.add(event.volumeId);
        else this.#waiting.delete(event.volumeId);
        return;
      case "staged":
        if (event.staged) this.#staged.add(event.volumeId);
        else this.#staged.delete(event.volumeId);
        return;
      case "tool-ran":
        return meter.observe("rds_csi_tool_seconds", event.seconds, { tool: event.tool });
    }
  }
}

/** The metrics of a driver that registers itself with the kubelet. */
export const registrationMetrics = {
  rds_csi_kubelet_registered: {
    type: "gauge",
    help: "Whether the kubelet has registered the driver, by its last answer.",
    labels: [],
  },
} as const satisfies MetricTable;

/** Declares the metric; the returned function shows whether the kubelet has registered the driver. */
export function showsRegistration(registry: MetricRegistry): (isRegistered: boolean) => void {
  const meter = registry.declare(registrationMetrics);
  return (isRegistered) => meter.set("rds_csi_kubelet_registered", isRegistered ? 1 : 0);
}
