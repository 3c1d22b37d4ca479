import { cpuUsage } from "node:process";
import type { Meter, MetricRegistry, MetricTable } from "./metrics.ts";

/** The metrics of the process itself. */
export const processMetrics = {
  rds_csi_build_info: {
    type: "gauge",
    help: "Always 1; the labels name what runs.",
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

/** Declares the metrics of the process. */
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

/** The metrics of gRPC calls; the names are those of gRPC's own interceptors in other languages. */
export const grpcMetrics = {
  grpc_server_handled_total: {
    type: "counter",
    help: "Calls answered, whatever their code.",
    labels: ["grpc_type", "grpc_service", "grpc_method", "grpc_code"],
  },
  grpc_server_handling_seconds: {
    type: "histogram",
    help: "Time from a call's arrival to its answer.",
    labels: ["grpc_type", "grpc_service", "grpc_method"],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
  },
} as const satisfies MetricTable;

/** An answered call. */
export interface AnsweredCall {
  /** gRPC path, such as `/csi.v1.Controller/CreateVolume`. */
  readonly path: string;
  /** gRPC code, such as `FAILED_PRECONDITION`. */
  readonly code: string;
  readonly durationMs: number;
}

/** Counts gRPC calls. */
export class GrpcMetrics {
  readonly #meter: Meter<typeof grpcMetrics>;

  constructor(registry: MetricRegistry) {
    this.#meter = registry.declare(grpcMetrics);
  }

  /** Counts one call. Never throws. */
  count({ path, code, durationMs }: AnsweredCall): void {
    const [, service = "", method = ""] = path.split("/");
    const labels = { grpc_type: "unary", grpc_service: service, grpc_method: method };
    this.#meter.add("grpc_server_handled_total", { ...labels, grpc_code: codeLabel(code) });
    this.#meter.observe("grpc_server_handling_seconds", durationMs / 1000, labels);
  }
}

/** Codes in the form of gRPC's interceptors, so that existing dashboards fit: `FailedPrecondition`. */
function codeLabel(code: string): string {
  if (code === "OK") return code;
  if (code === "CANCELLED") return "Canceled";
  return code.split("_").map((word) => word.slice(0, 1) + word.slice(1).toLowerCase()).join("");
}
