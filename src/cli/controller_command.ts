import type { ControllerConfig } from "./config/router_settings.ts";
import type { ClusterConfig } from "./config/cluster.ts";
import type { ControllerDeps } from "../controller/deps.ts";
import type { Logger } from "../telemetry/log.ts";
import { backendClusterHash } from "../volume/model/ids/cluster_hash.ts";
import type { CallContext } from "../volume/ports/system.ts";
import { type CommandIo, commandLog } from "./io.ts";
import { viewOfRouter } from "./serve/router_cluster.ts";
import { openRouter } from "./serve/router.ts";
import { runLimited } from "../async/deadline.ts";
import { systemClock } from "../host/clock.ts";
import { systemRandom } from "../host/random.ts";
import { controllerDeps } from "./serve/controller_deps.ts";

/** A command that does once what a controller can do. */
export interface ControllerRun {
  /** Replaces a request's id in the log. */
  readonly name: string;
  readonly config: ControllerConfig;
  /** How long it may take, in milliseconds. */
  readonly timeoutMs: number;
  /** The cluster whose use is read, and which provides its id where no flag does. */
  readonly cluster?: {
    readonly address: ClusterConfig["address"];
    readonly driverName: string;
  } | undefined;
}

/**
 * Provides a controller's dependencies to a command, and closes the connection to the router afterwards.
 *
 * @throws {VolumeError} deadline when the time is up, cancelled when it was stopped; whatever `work` rejects with
 */
export async function withController<T>(
  { name, config, timeoutMs, cluster: found }: ControllerRun,
  io: CommandIo,
  work: (deps: ControllerDeps, context: CallContext) => Promise<T>,
): Promise<T> {
  const log = commandLog(`rds-csi ${name}`, io);
  const adapters = { clock: systemClock, random: systemRandom, log, readText: Deno.readTextFile };
  const router = await openRouter(config.router, adapters);
  const cluster = found && await openCluster(found, log);
  try {
    return await runLimited(systemClock, { name, timeoutMs, signal: io.signal }, async (context) => {
      const known = config.settings.cluster !== "" || cluster === undefined
        ? config.settings.cluster
        : backendClusterHash(await cluster.uid(context.signal), config.ids.text);
      const settings = { ...config.settings, cluster: known };
      const collaborators = cluster === undefined ? {} : {
        clusterView: viewOfRouter(config.ids, cluster.use, true),
      };
      const deps = controllerDeps({ ...config, settings }, router, adapters, log, collaborators);
      try {
        return await work(deps, context);
      } finally {
        await deps.copies.close();
      }
    });
  } finally {
    cluster?.close();
    router.close();
  }
}

/** The cluster's client is loaded only where there is a cluster. */
async function openCluster(
  { address, driverName }: NonNullable<ControllerRun["cluster"]>,
  log: Logger,
) {
  const { Cluster } = await import("../kubernetes/cluster.ts");
  const warn = (message: string, fields: Readonly<Record<string, unknown>>) => log.warn(message, fields);
  const machine = { clock: systemClock, random: systemRandom };
  return await Cluster.open({ address, driverName, ...machine, warn, report: () => {} });
}
