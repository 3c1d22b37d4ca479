import { readServeConfig, type ServeConfig, serveFlags } from "../config.ts";
import { controllerMethods } from "../csi/controller.ts";
import { identityMethods } from "../csi/identity.ts";
import { loadCsi } from "../csi/proto.ts";
import { type CsiServices, type RunningServer, startServer } from "../csi/server.ts";
import { describeFlags } from "../flags.ts";
import { systemClock } from "../host/clock.ts";
import { systemRandom } from "../host/random.ts";
import type { RouterVolumeStore } from "../routeros/volume_store.ts";
import { createLogger, type Logger, type LogSink } from "../telemetry/log.ts";
import { stderrSink } from "../telemetry/log_stderr.ts";
import { version } from "../version.ts";
import type { Clock, Random } from "../volume/ports.ts";
import { type CommandIo, exitCodes } from "./io.ts";
import { openNode } from "./node.ts";
import { dropControllerPrivileges } from "./privileges.ts";
import { openRouter } from "./router.ts";
import { controllerWorld } from "./world.ts";

/** How long running calls get to finish after SIGTERM, in milliseconds: within the 30 s that Kubernetes gives a pod. */
const stopGraceMs = 25_000;

/** What a driver needs of the machine. */
export interface DriverSeams {
  readonly clock: Clock;
  readonly random: Random;
  readonly sink: LogSink;
  readText(path: string): Promise<string>;
}

/** A driver that serves. */
export interface RunningDriver {
  /** The endpoint as a client dials it. */
  readonly address: string;
  /** Takes no new calls, lets running ones finish within `graceMs`, and closes the connection to the router. */
  stop(graceMs: number): Promise<void>;
}

/** `rds-csi serve`: serves until the signal. */
export async function serveCommand(args: readonly string[], io: CommandIo): Promise<number> {
  if (args.includes("--help")) {
    io.out(
      "Usage: rds-csi serve [flags]\n\nServes the CSI services.\n\nFlags:\n" + describeFlags(serveFlags),
    );
    return exitCodes.ok;
  }
  const config = readServeConfig(args, io.env);
  const seams = { clock: systemClock, random: systemRandom, sink: stderrSink(), readText: Deno.readTextFile };
  const driver = await startDriver(config, seams);
  if (config.node === undefined) await dropControllerPrivileges();
  await aborted(io.signal);
  await driver.stop(stopGraceMs);
  return exitCodes.ok;
}

/**
 * Starts a driver by its configuration.
 *
 * @throws {VolumeError} when a file cannot be read or the endpoint cannot be served
 */
export async function startDriver(config: ServeConfig, seams: DriverSeams): Promise<RunningDriver> {
  const log = createLogger({ clock: seams.clock, sink: seams.sink, level: config.logLevel });
  const router = config.controller === undefined
    ? undefined
    : await openRouter(config.controller.router, { ...seams, log });
  const { csi, services } = await buildServices(config, router, seams, log);
  const server = await startServer({ endpoint: config.endpoint, services, csi, log, ...seams });
  log.info("serving", {
    endpoint: server.address,
    driver: config.driverName,
    version,
    deno: Deno.version.deno,
  });
  return { address: server.address, stop: (graceMs) => stopDriver(server, router, log, graceMs) };
}

async function buildServices(
  config: ServeConfig,
  router: RouterVolumeStore | undefined,
  seams: DriverSeams,
  log: Logger,
) {
  const controller = config.controller === undefined || router === undefined
    ? {}
    : { controller: controllerMethods(controllerWorld(config.controller, router, seams, log)) };
  const node = config.node === undefined ? {} : { node: await openNode(config.node, seams) };
  const identity = identityMethods({
    driverName: config.driverName,
    vendorVersion: version,
    controllerServed: config.controller !== undefined,
    ...(router === undefined ? {} : { ready: (context) => router.probe(context) }),
  });
  const services: CsiServices = { identity, ...controller, ...node };
  return { csi: loadCsi(), services };
}

async function stopDriver(
  server: RunningServer,
  router: RouterVolumeStore | undefined,
  log: Logger,
  graceMs: number,
): Promise<void> {
  log.info("stopping", { running: server.running });
  await server.stop({ graceMs });
  router?.close();
  log.info("stopped");
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
