import { readServeConfig, type ServeConfig } from "../config/config.ts";
import { loadRoutersParser } from "../config/backends.ts";
import type { CallRecord } from "../../csi/server/access_log.ts";
import { identityMethods } from "../../csi/services/identity.ts";
import { loadCsi } from "../../csi/server/proto.ts";
import { type CsiServices, type RunningServer, startServer } from "../../csi/server/server.ts";
import { systemClock } from "../../host/clock.ts";
import type { KernelFiles } from "../../host/kernel_files.ts";
import { systemRandom } from "../../host/random.ts";
import { onSignal } from "../../host/signals.ts";
import { createLogger, type Logger, type LogSink, LogThreshold, stderrSink } from "../../telemetry/log.ts";
import type { ClaimLookup, DriverFacts } from "../../telemetry/status/model.ts";
import { version } from "../build_version.ts";
import type { CallContext, Clock, Random } from "../../volume/ports/system.ts";
import type { ClusterView } from "../../volume/ports/cluster_view.ts";
import type { Controller } from "./controller.ts";
import { FirstAnswer } from "./first_answer.ts";
import { aborted, type CommandIo, exitCodes } from "../io.ts";
import type { OpenNode } from "./node.ts";
import type { RegistrationKeeper } from "../../csi/server/registration_keeper.ts";
import type { RouterAdapters } from "./router.ts";
import { dropControllerPrivileges, dropNetworkPrivilege } from "./privileges.ts";
import { Telemetry } from "./telemetry.ts";

/**
 * How long running calls may take to finish after SIGTERM, in milliseconds: within the 30 s that Kubernetes gives a
 * pod.
 */
const stopGraceMs = 25_000;

/** The adapters of a driver. */
export interface DriverAdapters {
  readonly clock: Clock;
  readonly random: Random;
  readonly sink: LogSink;
  readText(path: string): Promise<string>;
  /** The log level. @default {from the configuration} */
  readonly threshold?: LogThreshold;
  /** Ends a start that waits. */
  readonly signal?: AbortSignal;
  /** The view of the cluster, if there is one. */
  readonly clusterView?: ClusterView | undefined;
  /** Wraps the transports to routers, to record what goes through them. */
  readonly through?: RouterAdapters["through"];
}

/** A driver that serves. */
export interface RunningDriver {
  /** The endpoint for clients. */
  readonly address: string;
  /** The address of the metrics, as `http://host:port`; undefined when they are not served. */
  readonly metricsUrl: string | undefined;
  /**
   * Asks the router, if there is a controller, until it has answered once, so that readiness is known without a call.
   */
  seekRouter(signal: AbortSignal): Promise<void>;
  /** Resolves with the reason when another process has replaced this driver, so that it may not go on. */
  readonly lost: Promise<string>;
  /** Takes no new calls, lets running ones finish within `graceMs`, and closes the connection to the router. */
  stop(graceMs: number): Promise<void>;
}

/** The text of `rds-csi serve --help` before the flags. */
export const usage = "Usage: rds-csi serve [flags]\n\nServes the CSI services.\n\nFlags:\n";

/** `rds-csi serve`: serves until the signal. */
export async function serveCommand(args: readonly string[], io: CommandIo): Promise<number> {
  const parser = await loadRoutersParser(args, io.env);
  const config = readServeConfig(args, io.env, Deno.readTextFileSync, parser);
  const sink = stderrSink();
  const threshold = levelBySignal(config, sink);
  const adapters = { clock: systemClock, random: systemRandom, sink, threshold, readText: Deno.readTextFile };
  if (config.node === undefined) await dropControllerPrivileges(config.endpoint);
  const driver = await startDriver(config, { ...adapters, signal: io.signal });
  if (needsNoNetwork(config)) await dropNetworkPrivilege();
  const over = new AbortController();
  const seeking = driver.seekRouter(AbortSignal.any([io.signal, over.signal]));
  const lost = await Promise.race([aborted(io.signal), driver.lost]);
  over.abort(new Error("the driver ends"));
  await seeking;
  // Calls that began under the lead must not complete under another controller's.
  await driver.stop(lost === undefined ? stopGraceMs : 0);
  return lost === undefined ? exitCodes.ok : exitCodes.failed;
}

/**
 * Lets a signal change the log level while the driver runs: the port of the metrics is read by others, and must not
 * change anything. Without a listener the signal would end the process.
 */
function levelBySignal({ logLevel, logFormat }: ServeConfig, sink: LogSink): LogThreshold {
  const threshold = new LogThreshold(logLevel);
  const log = createLogger({ clock: systemClock, sink, level: threshold, format: logFormat });
  onSignal("SIGUSR2", () => {
    threshold.lower();
    log.warn("the log level was changed", { signal: "SIGUSR2", logged: threshold.level });
  });
  return threshold;
}

/**
 * Starts a driver by its configuration.
 *
 * @throws {VolumeError} when a file cannot be read or the endpoint cannot be served
 */
export async function startDriver(config: ServeConfig, adapters: DriverAdapters): Promise<RunningDriver> {
  const { clock, sink, threshold = new LogThreshold(config.logLevel) } = adapters;
  const log = createLogger({ clock, sink, level: threshold, format: config.logFormat });
  for (const warning of config.warnings) log.warn(warning);
  const telemetry = new Telemetry(config, factsOf(config), adapters.clock);
  const roles = await openRoles(config, adapters, log, telemetry);
  const router = roles.controller && new FirstAnswer(roles.controller.ready);
  const over = new AbortController();
  const services = servicesOf(config, roles, router);
  const observe = (record: CallRecord) => telemetry.observe(record);
  const { endpoint } = config;
  const server = await startServer({ endpoint, services, csi: loadCsi(), log, observe, ...adapters });
  // Not before it serves: a process that finds another one at its socket must not touch the volumes.
  roles.node?.start();
  roles.controller?.start();
  log.info("serving", {
    endpoint: server.address,
    driver: config.driverName,
    version,
    deno: Deno.version.deno,
  });
  telemetry.serve(log, {
    isInPlace: () => server.isInPlace(),
    hasAnswered: () => isWaiting(roles) || (router?.isIn ?? true),
    obstacle: () => roles.node?.obstacle() ?? Promise.resolve(undefined),
    askAgain: () => isWaiting(roles) ? 0 : router?.askAgain(clock, over.signal) ?? 0,
  });
  const registration = await register(config, adapters, log, telemetry, roles.node);
  const { lead } = roles.controller ?? {};
  void lead?.lost.then((reason) => log.error("this controller has lost the lead and exits", { reason }));
  return {
    address: server.address,
    metricsUrl: telemetry.url,
    // Only for /readyz: where that is not served, only calls ask the router.
    seekRouter: async (signal) => {
      const mayAsk = await lead?.begun(signal).then(() => true, () => false) ?? true;
      if (telemetry.url !== undefined && mayAsk) await router?.seek(adapters.clock, signal);
    },
    lost: lead?.lost ?? new Promise(() => {}),
    stop: async (graceMs) => {
      over.abort(new Error("the driver stops"));
      await stopDriver(server, { ...roles, registration }, telemetry, log, graceMs);
    },
  };
}

function factsOf(config: ServeConfig): DriverFacts {
  const { driverName, node } = config;
  return {
    driverName,
    version,
    roles: [
      ...servesController(config) ? ["controller" as const] : [],
      ...node === undefined ? [] : ["node" as const],
    ],
    nodeId: node?.nodeId,
    routers: Object.fromEntries(
      routersOf(config).map(({ name, router }) => [name, `${router.address}:${router.port}`]),
    ),
  };
}

function routersOf({ routers, directories }: ServeConfig) {
  if (directories !== undefined) return [{ name: directories.backend, router: directories.router }];
  return routers.map(({ router, settings }) => ({ name: settings.backend, router }));
}

interface Roles {
  readonly controller: Controller | undefined;
  readonly node: OpenNode | undefined;
}

interface RegisteredRoles extends Roles {
  readonly registration: RegistrationKeeper | undefined;
}

/** Not before the driver serves: the kubelet calls it at once. */
async function register(
  config: ServeConfig,
  adapters: DriverAdapters,
  log: Logger,
  telemetry: Telemetry,
  node: OpenNode | undefined,
): Promise<RegistrationKeeper | undefined> {
  if (config.registration === undefined) return undefined;
  const { openRegistration } = await import("./registration.ts");
  const keeper = openRegistration(config.registration, config.driverName, {
    ...adapters,
    log,
    observeState: telemetry.registrationEvents(),
    observe: (record) => telemetry.observe(record),
    obstacle: () => node?.obstacle() ?? Promise.resolve(undefined),
  });
  keeper.start();
  return keeper;
}

/** A role loads only what it needs: SSH would waste a node's memory, and tools a controller's. */
async function openRoles(
  config: ServeConfig,
  adapters: DriverAdapters,
  log: Logger,
  telemetry: Telemetry,
): Promise<Roles> {
  const controller = await openControllerOf(config, adapters, log, telemetry);
  return { controller, node: await openNodeOf(config, adapters, log, telemetry) };
}

async function openNodeOf(
  { kind, node, volumeMetrics }: ServeConfig,
  adapters: DriverAdapters,
  log: Logger,
  telemetry: Telemetry,
): Promise<OpenNode | undefined> {
  if (node === undefined) return undefined;
  const events = telemetry.nodeEvents(volumeMetrics ? await kernelFiles() : undefined);
  if (kind === "directory") {
    return await (await import("./directory_node.ts")).openDirectoryNode(node, { ...adapters, log, events });
  }
  return await (await import("./node.ts")).openNode(node, { ...adapters, log, events });
}

/** Only for a node: a controller may not load the C library. */
async function kernelFiles(): Promise<KernelFiles> {
  const { Libc } = await import("../../host/libc.ts");
  return new Libc();
}

async function openControllerOf(
  config: ServeConfig,
  adapters: DriverAdapters,
  log: Logger,
  telemetry: Telemetry,
): Promise<Controller | undefined> {
  if (!servesController(config)) return undefined;
  const { cluster, driverName, directories } = config;
  const given = {
    ...adapters,
    log,
    cluster,
    driverName,
    routerEvents: (backend: string) => telemetry.routerEvents(backend),
    ...cluster && {
      leads: telemetry.leaderEvents(),
      showClaims: (claimOf: ClaimLookup) => telemetry.showClaims(claimOf),
    },
  };
  if (directories !== undefined) {
    const { openDirectoryController } = await import("./directory_controller.ts");
    const events = telemetry.directoryEvents(directories.backend);
    return await openDirectoryController(directories, { ...given, events });
  }
  const { openController } = await import("./controller.ts");
  return await openController(config.routers, {
    ...given,
    events: (backend) => telemetry.controllerEvents(backend),
    audit: config.audit,
    healthIntervalMs: config.healthIntervalMs,
  });
}

function servesController({ routers, directories }: ServeConfig): boolean {
  return routers.length > 0 || directories !== undefined;
}

function hasTopology({ routers, node }: ServeConfig): boolean {
  return [...routers, ...node === undefined ? [] : [node]].some(({ topology }) =>
    Object.keys(topology).length > 0
  );
}

/** One router that cannot is enough: a caller asks about the driver, not about a volume. */
function growsOnline({ kind, routers }: ServeConfig): boolean {
  // Nothing holds a directory to its size.
  if (kind === "directory") return true;
  return routers.length > 0 && routers.every(({ settings }) => settings.growth === "live");
}

function servicesOf(
  config: ServeConfig,
  { controller, node }: Roles,
  router: FirstAnswer | undefined,
): CsiServices {
  const identity = identityMethods({
    driverName: config.driverName,
    vendorVersion: version,
    controllerServed: controller !== undefined,
    hasTopology: hasTopology(config),
    growsOnline: growsOnline(config),
    ...(router === undefined ? {} : {
      ready: async (context: CallContext) => {
        await controller?.lead?.held(context);
        await router.ask(context);
      },
    }),
  });
  return {
    identity,
    ...(controller === undefined
      ? {}
      : { controller: controller.methods, controllerLocks: controller.locks }),
    ...(node === undefined ? {} : { node: node.methods, nodeLocks: node.locks }),
  };
}

async function stopDriver(
  server: RunningServer,
  roles: RegisteredRoles,
  telemetry: Telemetry,
  log: Logger,
  graceMs: number,
): Promise<void> {
  log.info("stopping", { running: server.running });
  telemetry.stopping();
  // A controller that waits for the lead need not wait for the callers that ask about it.
  if (isWaiting(roles)) roles.controller?.lead?.end("the driver is shutting down");
  // First, so that the kubelet does not look for a driver that is gone.
  await roles.registration?.stop();
  await Promise.all([server.stop({ graceMs }), roles.node?.close()]);
  // Otherwise the end of this process releases it: hung calls go on until then.
  if (server.running === 0) roles.node?.release();
  await roles.controller?.close();
  await telemetry.close();
  log.info("stopped");
}

/** Whether its controller waits until another one stops leading: it is ready for that. */
function isWaiting({ controller }: Roles): boolean {
  return controller?.lead !== undefined && !controller.lead.isHeld;
}

/** Creating a socket again counts as network. */
function needsNoNetwork(config: ServeConfig): boolean {
  const { kind, node, registration } = config;
  // Shares are mounted by a tool.
  const dialsNothing = kind === "directory" || node?.connector === "loop";
  return !servesController(config) && dialsNothing && registration === undefined;
}
