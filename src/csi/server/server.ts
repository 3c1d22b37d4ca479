import { endsWithin } from "../../async/waiting.ts";
import type { Server } from "@grpc/grpc-js";
import type { Logger } from "../../telemetry/log.ts";
import type { Clock, Random } from "../../volume/ports/system.ts";
import type { CallRecord } from "./access_log.ts";
import type { MethodsOf, ServiceMethods, VolumeLocks } from "./call.ts";
import { CallRunner } from "./call_runner.ts";
import { parseEndpoint } from "./endpoint.ts";
import type { ControllerRpcs, IdentityRpcs, NodeRpcs } from "../generated/csi.ts";
import { implementation, withEncodingLog } from "./grpc_service.ts";
import type { CsiPackage } from "./proto.ts";
import { listen, makeServer, type Transport } from "./transport.ts";

/** The services to serve. A service or a method that is left out answers UNIMPLEMENTED. */
export interface CsiServices {
  readonly identity: MethodsOf<IdentityRpcs>;
  readonly controller?: MethodsOf<ControllerRpcs>;
  readonly node?: MethodsOf<NodeRpcs>;
  /** The locks of the controller's calls, shared with loops that change volumes; private by default. */
  readonly controllerLocks?: VolumeLocks;
  /** The locks of the node's calls, shared with loops that change volumes; private by default. */
  readonly nodeLocks?: VolumeLocks;
}

/** Options of {@linkcode startServer}. */
export interface ServerOptions {
  /** See {@linkcode parseEndpoint}. */
  readonly endpoint: string;
  readonly services: CsiServices;
  /** From `loadCsi()`. */
  readonly csi: CsiPackage;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Receives every answered call, for metrics. It must not throw. */
  readonly observe?: (record: CallRecord) => void;
  /** The Deno version, which decides how a unix socket is served. @default {Deno.version.deno} */
  readonly denoVersion?: string;
}

/** A server that accepts calls. */
export interface RunningServer {
  /** The endpoint for clients, with the real port. */
  readonly address: string;
  /** The number of handlers that have not settled. */
  readonly running: number;
  /**
   * Whether the endpoint still belongs to this server. After the socket was removed, restarting a client does not help.
   */
  isInPlace(): Promise<boolean>;
  /**
   * Takes no new calls, removes the socket if it is still its own, and lets running calls finish; after `graceMs` it
   * aborts their signals and resolves. A second call waits for the first.
   */
  stop(options: { readonly graceMs: number }): Promise<void>;
}

/** How long the last answers may take to be sent, once every handler has settled. */
const FLUSH_MS = 500;

/**
 * Serves the CSI services.
 *
 * @throws {VolumeError} invalid when the endpoint is not allowed
 * @throws {VolumeError} precondition when another process serves there, or when something other than a socket is there
 * @throws {VolumeError} unavailable when it cannot be bound
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const endpoint = parseEndpoint(options.endpoint);
  const runner = new CallRunner(options);
  const server = makeServer();
  registerServices(server, runner, options);
  const transport = await listen(endpoint, server, options).catch((error) => {
    server.forceShutdown();
    throw error;
  });
  let stopped: Promise<void> | undefined;
  return {
    address: transport.address,
    get running() {
      return runner.running;
    },
    isInPlace: () => transport.isInPlace(),
    stop({ graceMs }) {
      stopped ??= stop(runner, transport, graceMs, options);
      return stopped;
    },
  };
}

function registerServices(server: Server, runner: CallRunner, { csi, services, log }: ServerOptions): void {
  const register = (
    definition: CsiPackage["Node" | "Controller" | "Identity"]["service"],
    methods: ServiceMethods,
    locks?: VolumeLocks,
  ) =>
    server.addService(withEncodingLog(definition, log), implementation(definition, methods, runner, locks));
  register(csi.Identity.service, services.identity);
  if (services.controller !== undefined) {
    register(csi.Controller.service, services.controller, services.controllerLocks);
  }
  if (services.node !== undefined) {
    register(csi.Node.service, services.node, services.nodeLocks);
  }
}

async function stop(
  runner: CallRunner,
  transport: Transport,
  graceMs: number,
  { clock, log }: ServerOptions,
): Promise<void> {
  const drained = transport.drain(graceMs + FLUSH_MS)
    .catch((error) => log.warn("cannot close the endpoint cleanly", { error }));
  await runner.stop(graceMs);
  await endsWithin(clock, FLUSH_MS, drained);
  transport.destroy();
}
