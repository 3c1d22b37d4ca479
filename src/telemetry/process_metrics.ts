import { cpuUsage } from "node:process";
import type { MetricRegistry, MetricTable } from "./metrics.ts";

/** What is told of the process itself. */
export const processMetrics = {
  rds_csi_build_info: {
    type: "gauge",
    help: "Always 1; the labels tell what runs.",
    labels: ["version", "deno_version"],
  },
  process_start_time_seconds: {
    type: "gauge",
    help: "When the process started, in seconds since the Unix epoch.",
    labels: [],
  },
  process_cpu_seconds_total: {
    type: "counter",
    help: "Processor time that the process has used, in its own code and in the kernel.",
    labels: [],
  },
  process_resident_memory_bytes: { type: "gauge", help: "Resident memory.", labels: [] },
} as const satisfies MetricTable;

/** Declares what is told of the process. */
export function declareProcessMetrics(registry: MetricRegistry, version: string, startedMs: number): void {
  const meter = registry.declare(processMetrics);
  meter.set("rds_csi_build_info", 1, { version, deno_version: Deno.version.deno });
  meter.set("process_start_time_seconds", startedMs / 1000);
  registry.beforeExpose(() => {
    const { user, system } = cpuUsage();
    meter.total("process_cpu_seconds_total", (user + system) / 1e6);
  });
  meter.read("process_resident_memory_bytes", () => Deno.memoryUsage().rss);
}
