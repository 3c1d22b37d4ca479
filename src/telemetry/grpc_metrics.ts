import type { Meter, MetricRegistry, MetricTable } from "./metrics.ts";

/** What is counted of gRPC calls; the names are those that gRPC's own interceptors use in other languages. */
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

/** Codes as gRPC's interceptors write them, so that dashboards made for those fit: `FailedPrecondition`. */
function codeLabel(code: string): string {
  if (code === "OK") return code;
  if (code === "CANCELLED") return "Canceled";
  return code.split("_").map((word) => word.slice(0, 1) + word.slice(1).toLowerCase()).join("");
}
