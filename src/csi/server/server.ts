import { endsWithin } from "../../async/waiting.ts";
import type { Server } from "@grpc/grpc-js";
import type { MethodsOf, ServiceMethods, VolumeLocks } from "./call.ts";
import { CallRunner, type CallRunnerOptions } from "./call_runner.ts";
import { parseEndpoint } from "./endpoint.ts";
import type { ControllerRpcs, IdentityRpcs, NodeRpcs } from "../generated/csi.ts";
import { implementation, withEncodingLog } from "./grpc_service.ts";
import type { CsiPackage } from "./proto.ts";
import { listen, makeServer, type Transport, type TransportAdapters } from "./transport.ts";

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

/** Options of {@linkcode serveAt}. */
export type ServeOptions = TransportAdapters & CallRunnerOptions;

/** Options of {@linkcode startServer}. */
export interface ServerOptions extends ServeOptions {
  /** See {@linkcode parseEndpoint}. */
  readonly endpoint: string;
  readonly services: CsiServices;
  /** From `loadCsi()`. */
  readonly csi: CsiPackage;
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

/** Serves the CSI services, as {@linkcode serveAt} does. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  return await serveAt(
    options.endpoint,
    (server, runner) => registerServices(server, runner, options),
    options,
  );
}

/**
 * Serves gRPC at an endpoint.
 *
 * @param register adds the services
 * @throws {VolumeError} invalid when the endpoint is not allowed
 * @throws {VolumeError} precondition when another process serves there, or when something other than a socket is there
 * @throws {VolumeError} unavailable when it cannot be bound
 */
export async function serveAt(
  address: string,
  register: (server: Server, runner: CallRunner) => void,
  options: ServeOptions,
): Promise<RunningServer> {
  const endpoint = parseEndpoint(address);
  const runner = new CallRunner(options);
  const server = makeServer();
  register(server, runner);
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
    definition: CsiPackage[keyof CsiPackage],
    methods: ServiceMethods,
    locks?: VolumeLocks,
  ) =>
    server.addService(withEncodingLog(definition, log), implementation(definition, methods, runner, locks));
  register(csi.Identity, services.identity);
  if (services.controller !== undefined) {
    register(csi.Controller, services.controller, services.controllerLocks);
  }
  if (services.node !== undefined) {
    register(csi.Node, services.node, services.nodeLocks);
  }
}

async function stop(
  runner: CallRunner,
  transport: Transport,
  graceMs: number,
  { clock, log }: ServeOptions,
): Promise<void> {
  const drained = transport.drain(graceMs + FLUSH_MS)
    .catch((error) => log.warn("cannot close the endpoint cleanly", { error }));
  await runner.stop(graceMs);
  await endsWithin(clock, FLUSH_MS, drained);
  transport.destroy();
}
