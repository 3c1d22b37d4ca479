import { messageOf } from "../../volume/error_messages.ts";
import type { CallRecord } from "../../csi/server/access_log.ts";
import type { RegistrationKeeperOptions } from "../../csi/server/registration_keeper.ts";
import { wireStatus } from "../../csi/server/grpc_status.ts";
import { ControllerMetrics, showsLeader } from "../../telemetry/controller_metrics.ts";
import { DirectoryMetrics } from "../../telemetry/directory_metrics.ts";
import { declareProcessMetrics, GrpcMetrics } from "../../telemetry/driver_metrics.ts";
import {
  type ListenAddress,
  serveTelemetry,
  type StatusReaders,
  type TelemetryPages,
  type TelemetryServer,
} from "../../telemetry/http.ts";
import type { ServeConfig } from "../config/config.ts";
import type { Logger } from "../../telemetry/log.ts";
import { HardwareMetrics } from "../../telemetry/hardware_metrics.ts";
import { MetricRegistry } from "../../telemetry/metrics.ts";
import { NodeMetrics, showsRegistration } from "../../telemetry/node_metrics.ts";
import { type RouterEvents, RouterMetrics } from "../../telemetry/router_metrics.ts";
import { type ClaimLookup, type DriverFacts, parseStatusQuery } from "../../telemetry/status/model.ts";
import { StatusStore } from "../../telemetry/status/status_store.ts";
import type { DirectoryEvents } from "../../volume/ports/directory_events.ts";
import type { ControllerEvent, ControllerEvents } from "../../volume/ports/controller_events.ts";
import { fanOut } from "../../volume/ports/event_listener.ts";
import type { Clock } from "../../volume/ports/system.ts";
import type { NodeEvent, NodeEvents } from "../../volume/ports/node_events.ts";
import type { KernelFiles } from "../../host/kernel_files.ts";
import { VolumeIo } from "../../telemetry/volume_io.ts";

/**
 * The facts by which a driver's state is judged. Reading them waits neither for the network nor for anything that
 * hangs.
 */
export interface SignsOfLife {
  /** Whether a client that dials the endpoint reaches this process. */
  isInPlace(): Promise<boolean>;
  /** Whether what the driver needs has answered since it started; always true if it needs nothing. */
  hasAnswered(): boolean;
  /** Why the driver can do nothing on this node, for people; undefined when it can. */
  obstacle(): Promise<string | undefined>;
  /**
   * Asks again for what the driver needs, without waiting. Returns for how many milliseconds a question has been
   * unanswered.
   */
  askAgain(): number;
}

/** Where a driver serves metrics and status; undefined for nowhere. */
export type TelemetryAddresses = Pick<ServeConfig, "metricsAddress" | "statusAddress">;

/**
 * How long a router may leave a question unanswered, in milliseconds: two questions of the kubelet come in less than 30
 * s.
 */
const silentMs = 15_000;

/** The metrics and status of a driver. */
export class Telemetry {
  readonly #addresses: TelemetryAddresses;
  /** A node's port belongs to the host: a client that reaches it need not see whose volumes are there. */
  readonly #statusReaders: StatusReaders;
  #url: string | undefined;
  readonly #registry = new MetricRegistry();
  readonly #grpc: GrpcMetrics;
  readonly #servers: TelemetryServer[] = [];
  #stopping = false;
  readonly #clock: Clock;
  readonly #board: StatusStore;

  constructor(addresses: TelemetryAddresses, facts: DriverFacts, clock: Clock) {
    this.#addresses = addresses;
    const isOpen = !facts.roles.includes("node") && addresses.statusAddress === undefined;
    this.#statusReaders = isOpen ? "everybody" : "this-machine";
    this.#clock = clock;
    this.#grpc = new GrpcMetrics(this.#registry);
    this.#board = new StatusStore(facts, clock);
    declareProcessMetrics(this.#registry, facts.version, clock.now());
  }

  /** `http://host:port` of the metrics; undefined when they are not served. */
  get url(): string | undefined {
    return this.#url;
  }

  /** Receives every answered call. */
  observe(record: CallRecord): void {
    this.#grpc.count(record);
    const { code, error, requestId } = record;
    const message = code === "OK" ? "" : wireStatus(error, requestId).details;
    this.#board.called({ ...record, message });
  }

  /** Counts and shows the events of that router's controller; calling it declares the metrics of a controller. */
  controllerEvents(backend: string): ControllerEvents {
    const { controller } = this.#board;
    const claimOf = (handle: string) => controller.claimOf(handle);
    const metrics = new ControllerMetrics(this.#registry, () => this.#clock.now(), backend, claimOf);
    const hardware = new HardwareMetrics(this.#registry, backend);
    return fanOut<ControllerEvent>(metrics, hardware, controller.router(backend));
  }

  /** Counts the events of a controller of directories; calling it declares its metrics. */
  directoryEvents(backend: string): DirectoryEvents {
    return new DirectoryMetrics(this.#registry, backend);
  }

  /** Counts the events of that router's client; calling it declares its metrics. */
  routerEvents(backend: string): readonly RouterEvents[] {
    const metrics = new RouterMetrics(this.#registry, backend);
    return [metrics, this.#board.controller.router(backend)];
  }

  /** Receives whether a controller leads; calling it declares the metric of that. */
  leaderEvents(): (isLeading: boolean) => void {
    const metric = showsLeader(this.#registry);
    const show = (isLeading: boolean) => {
      metric(isLeading);
      this.#board.controller.leads(isLeading);
    };
    show(false);
    return show;
  }

  /** Shows the claims of a controller's volumes; they are looked up for each request of the page. */
  showClaims(claimOf: ClaimLookup): void {
    this.#board.controller.claimOf = claimOf;
  }

  /**
   * Counts the events of a node; calling it declares the metrics of a node.
   *
   * @param files where the kernel's counters of volumes are read, if they are to be shown
   */
  nodeEvents(files?: Pick<KernelFiles, "readText">): NodeEvents {
    const io = files && new VolumeIo(this.#registry, files);
    return fanOut<NodeEvent>(new NodeMetrics(this.#registry), this.#board.node, ...io ? [io] : []);
  }

  /** Shows the events of the registration with the kubelet; calling it declares its metrics. */
  registrationEvents(): RegistrationKeeperOptions["observeState"] {
    const metric = showsRegistration(this.#registry);
    const { node } = this.#board;
    node.registration("offered");
    return (state) => {
      metric(state === "registered");
      node.registration(state);
    };
  }

  /** Starts serving. A failure is logged: volumes are served without metrics. */
  serve(log: Logger, signs: SignsOfLife): void {
    const pages: TelemetryPages = {
      metrics: () => this.#registry.expose(),
      failure: () => this.#failure(signs),
      unreadiness: () => this.#unreadiness(signs),
      status: async (parameters) => {
        const query = parseStatusQuery(parameters);
        const [failure, unreadiness] = [await this.#failure(signs), await this.#unreadiness(signs)];
        return { query, status: this.#board.read(query, { failure, unreadiness }) };
      },
    };
    const { metricsAddress, statusAddress } = this.#addresses;
    this.#url = this.#serveAt("metrics-address", metricsAddress, this.#statusReaders, pages, log);
    this.#serveAt("status-address", statusAddress, "everybody", pages, log);
  }

  /** The URL; undefined where nothing is served. */
  #serveAt(
    flag: string,
    address: ListenAddress | undefined,
    readers: StatusReaders,
    pages: TelemetryPages,
    log: Logger,
  ): string | undefined {
    if (address === undefined) return undefined;
    try {
      const server = serveTelemetry(address, pages, this.#clock, readers);
      this.#servers.push(server);
      log.info("serving metrics", { url: server.url, flag: `--${flag}` });
      return server.url;
    } catch (error) {
      const { hostname, port } = address;
      const reason = messageOf(error);
      log.error("cannot serve metrics", { hostname, port, reason, flag: `--${flag}` });
      return undefined;
    }
  }

  /** Notes that the driver stops: it does not count as ready any more. */
  stopping(): void {
    this.#stopping = true;
  }

  /**
   * Returns why a restart would help. It does not help for a router that is away, a refused login, or a dead device.
   */
  async #failure(signs: SignsOfLife): Promise<string | undefined> {
    if (this.#stopping || await signs.isInPlace()) return undefined;
    return "the CSI socket is gone, or belongs to another process";
  }

  async #unreadiness(signs: SignsOfLife): Promise<string | undefined> {
    if (this.#stopping) return "stopping";
    if (!signs.hasAnswered()) {
      return "the router has not answered yet, or cannot be used; see the log of the container `driver` for the reason";
    }
    const waitedMs = signs.askAgain();
    if (this.#board.routersAway !== undefined) return this.#board.routersAway;
    if (waitedMs >= silentMs) return `the router has not answered for ${Math.floor(waitedMs / 1000)} s`;
    return await signs.obstacle() ?? await this.#failure(signs);
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop()));
  }
}
