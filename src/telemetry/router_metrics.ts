import type { Meter, MetricRegistry, MetricTable } from "./metrics.ts";

/** The metrics of a controller's commands to the router, and of its connection. */
export const routerMetrics = {
  rds_csi_router_commands_total: {
    type: "counter",
    help: "Commands to the router, by purpose and by outcome: ended in order, torn, timeout, " +
      "cancelled while it ran, or not-run because the router gave no channel.",
    labels: ["backend", "kind", "outcome"],
  },
  rds_csi_router_command_seconds: {
    type: "histogram",
    help: "Time from sending a command to its end; commands that were not run do not count.",
    labels: ["backend", "kind"],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
  },
  rds_csi_router_commands_waiting: {
    type: "gauge",
    help: "Commands that wait for their turn.",
    labels: ["backend"],
  },
  rds_csi_router_connected: {
    type: "gauge",
    help: "Whether there is a connection to the router; there is none before the first command.",
    labels: ["backend"],
  },
  rds_csi_router_reconnects_total: {
    type: "counter",
    help: "Connections to the router after the first one.",
    labels: ["backend"],
  },
  rds_csi_router_connection_failures_total: {
    type: "counter",
    help: "Connections that could not be opened, or ended before the first command.",
    labels: ["backend"],
  },
  rds_csi_router_breaker_open: {
    type: "gauge",
    help: "Whether calls are refused at once because the router cannot be reached, or answers no command.",
    labels: ["backend"],
  },
  rds_csi_router_ssh_exploited: {
    type: "gauge",
    help:
      "Whether the router's RouterOS has holes in SSH by which routers are being taken over; 0 before it has " +
      "reported its version.",
    labels: ["backend"],
  },
} as const satisfies MetricTable;

/** The number of commands. */
export interface RouterLoad {
  readonly waiting: number;
  readonly running: number;
}

/** What a router has reported of itself. */
export interface IdentifiedRouter {
  readonly version: string;
  readonly board: string;
  /** Whether its version has holes in SSH that are exploited. */
  readonly sshExploited: boolean;
}

/** Receives a controller's commands and the state of its connection. No method throws, or affects the caller. */
export interface RouterEvents {
  /** Called when a command is over. */
  command(event: {
    /** Its purpose; one of few words. */
    readonly kind: string;
    /** Its result; one of few words. */
    readonly outcome: string;
    /** Milliseconds from sending to the end. */
    readonly ms: number;
  }): void;
  /** Called when the connection's state has changed. */
  connection(event: { readonly state: string; readonly reason?: string | undefined }): void;
  /** Called when the circuit breaker's state has changed, or an attempt has failed again. */
  breaker(event: { readonly state: string; readonly cause?: string | undefined }): void;
  /** Called when the router has reported its version and board. */
  identified?(router: IdentifiedRouter): void;
  /** Sets the function that returns the present number of commands; it only reads memory. */
  load(read: () => RouterLoad): void;
}

/** Counts commands to one router, and the states of its connection. */
export class RouterMetrics implements RouterEvents {
  readonly #meter: Meter<typeof routerMetrics>;
  #wasConnected = false;

  /** @param backend name of the router */
  constructor(registry: MetricRegistry, backend: string) {
    this.#meter = registry.declare(routerMetrics, { backend });
  }

  command({ kind, outcome, ms }: Parameters<RouterEvents["command"]>[0]): void {
    this.#meter.add("rds_csi_router_commands_total", { kind, outcome });
    if (outcome === "not-run") return;
    this.#meter.observe("rds_csi_router_command_seconds", ms / 1000, { kind });
  }

  connection({ state }: { readonly state: string }): void {
    const isReady = state === "ready";
    this.#meter.set("rds_csi_router_connected", isReady ? 1 : 0);
    if (isReady && this.#wasConnected) this.#meter.add("rds_csi_router_reconnects_total");
    this.#wasConnected ||= isReady;
    if (state === "backing-off") this.#meter.add("rds_csi_router_connection_failures_total");
  }

  breaker({ state }: { readonly state: string }): void {
    // While one command tests whether the router is back, the others are still refused.
    this.#meter.set("rds_csi_router_breaker_open", state === "closed" ? 0 : 1);
  }

  identified({ sshExploited }: IdentifiedRouter): void {
    this.#meter.set("rds_csi_router_ssh_exploited", sshExploited ? 1 : 0);
  }

  load(read: () => RouterLoad): void {
    this.#meter.read("rds_csi_router_commands_waiting", () => read().waiting);
  }
}
