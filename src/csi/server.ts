import { logVerbosity, Server, ServerCredentials, setLogVerbosity } from "@grpc/grpc-js";
import type { Logger } from "../telemetry/log.ts";
import { VolumeError } from "../volume/errors.ts";
import type { Clock, Random } from "../volume/ports.ts";
import type { CallRecord } from "./access_log.ts";
import type { MethodsOf, ServiceMethods } from "./call.ts";
import { CallRunner } from "./call_runner.ts";
import { type Endpoint, parseEndpoint } from "./endpoint.ts";
import type { ControllerHandlers } from "./generated/csi/v1/Controller.ts";
import type { IdentityHandlers } from "./generated/csi/v1/Identity.ts";
import type { NodeHandlers } from "./generated/csi/v1/Node.ts";
import { guardSessions } from "./http2_guard.ts";
import { implementation, withEncodingLog } from "./grpc_service.ts";
import { type LegacyListener, listenLegacy, needsLegacyListener } from "./legacy_unix_listener.ts";
import type { CsiPackage } from "./proto.ts";
import { placeSocket } from "./unix_socket.ts";
import type { VolumeLocks } from "./volume_lock.ts";

/** What is served; a service that is left out answers UNIMPLEMENTED, as does a method that is left out. */
export interface CsiServices {
  readonly identity: MethodsOf<IdentityHandlers>;
  readonly controller?: MethodsOf<ControllerHandlers>;
  readonly node?: MethodsOf<NodeHandlers>;
  /** The locks of the node's calls, where something else changes volumes too; by default nobody else sees them. */
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
  /** Hears of every answered call, for metrics. It must not throw. */
  readonly observe?: (record: CallRecord) => void;
  /** Version that decides how a unix socket is served. @default {Deno.version.deno} */
  readonly denoVersion?: string;
}

/** A server that accepts calls. */
export interface RunningServer {
  /** The endpoint as a client dials it, with the real port. */
  readonly address: string;
  /** Handlers that have not settled. */
  readonly running: number;
  /**
   * Takes no new calls, removes the socket if it is still its own, and lets running calls finish; after `graceMs`
   * their signals are aborted and it resolves all the same. A second call waits for the first.
   */
  stop(options: { readonly graceMs: number }): Promise<void>;
}

/**
 * Requests are small; responses go up to a page of ListVolumes, which the controller keeps under the 4 MiB that clients
 * accept. Channelz would keep books on every connection that nobody reads.
 */
const SERVER_OPTIONS = {
  "grpc.max_receive_message_length": 8 * 1024 * 1024,
  "grpc.max_send_message_length": 32 * 1024 * 1024,
  "grpc.enable_channelz": 0,
};

/** How long the last answers get to leave, once every handler has settled. */
const FLUSH_MS = 500;

/**
 * Serves the CSI services.
 *
 * @throws {VolumeError} invalid when the endpoint is not one that is allowed
 * @throws {VolumeError} precondition when somebody else serves there, or something that is not a socket is in the way
 * @throws {VolumeError} unavailable when it cannot be bound
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const endpoint = parseEndpoint(options.endpoint);
  // grpc-js prints plain text to standard error, where each line is JSON; what matters comes back as an error.
  setLogVerbosity(logVerbosity.NONE);
  const runner = new CallRunner(options);
  const server = new Server(SERVER_OPTIONS);
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
  if (services.controller !== undefined) register(csi.Controller.service, services.controller);
  if (services.node !== undefined) {
    register(csi.Node.service, services.node, services.nodeLocks);
  }
}

/** A bound endpoint. */
interface Transport {
  readonly address: string;
  /** Refuses new connections and asks the open ones to close when their calls are done; resolves when all have. */
  drain(graceMs: number): Promise<void>;
  destroy(): void;
}

function listen(endpoint: Endpoint, server: Server, options: ServerOptions): Promise<Transport> {
  if (endpoint.kind === "tcp") return listenTcp(endpoint.host, endpoint.port, server);
  const legacy = needsLegacyListener(options.denoVersion ?? Deno.version.deno);
  return legacy
    ? listenUnixLegacy(endpoint.path, server, options)
    : listenUnix(endpoint.path, server, options);
}

async function listenTcp(host: string, port: number, server: Server): Promise<Transport> {
  const boundPort = await bind(server, `${host}:${port}`);
  return {
    address: `tcp://${host}:${boundPort}`,
    drain: () => shutdown(server),
    destroy: () => server.forceShutdown(),
  };
}

async function listenUnix(path: string, server: Server, { random }: ServerOptions): Promise<Transport> {
  const socket = await placeSocket(path, random, async (temporary) => {
    await bind(server, `unix:${temporary}`);
  });
  return {
    address: `unix://${path}`,
    async drain() {
      await socket.remove();
      await shutdown(server);
    },
    destroy: () => server.forceShutdown(),
  };
}

async function listenUnixLegacy(
  path: string,
  server: Server,
  { random, clock, log, denoVersion }: ServerOptions,
): Promise<Transport> {
  log.warn(
    "serving the unix socket over loopback connections, as this Deno cannot serve HTTP/2 on one itself",
    {
      deno: denoVersion ?? Deno.version.deno,
      fixedIn: "2.7.14",
    },
  );
  let listener: LegacyListener | undefined;
  const socket = await placeSocket(path, random, (temporary) => {
    listener = listenLegacy(temporary, server, clock, log);
    return Promise.resolve();
  }).catch((error) => {
    listener?.destroy();
    throw error;
  });
  return {
    address: `unix://${path}`,
    async drain(graceMs) {
      await socket.remove();
      // Shutting the server down at once would cut the injected connections.
      await listener?.drain(graceMs);
    },
    destroy() {
      listener?.destroy();
      server.forceShutdown();
    },
  };
}

async function bind(server: Server, target: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.bindAsync(
    target,
    ServerCredentials.createInsecure(),
    (error, port) => error === null ? resolve(port) : reject(error),
  );
  const port = await promise.catch((error: Error) => {
    throw new VolumeError("unavailable", `Cannot listen as binding failed: ${error.message}`, {
      cause: error,
    });
  });
  guardSessions(server);
  return port;
}

function shutdown(server: Server): Promise<void> {
  return new Promise((resolve) => server.tryShutdown(() => resolve()));
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
  const abort = new AbortController();
  await Promise.race([drained, clock.sleep(FLUSH_MS, abort.signal)]);
  abort.abort();
  transport.destroy();
}
