import { logVerbosity, Server, ServerCredentials, setLogVerbosity } from "@grpc/grpc-js";
import type { Logger } from "../../telemetry/log.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { Clock, Random } from "../../volume/ports/system.ts";
import type { Endpoint } from "./endpoint.ts";
import { guardSessions } from "./http2_guard.ts";
import { type LegacyListener, listenLegacy, needsLegacyListener } from "./legacy_unix_listener.ts";
import { placeSocket } from "./unix_socket.ts";

/**
 * Requests are small; responses go up to a page of ListVolumes, which the controller keeps under the 4 MiB that clients
 * accept. Channelz would record every connection, and nothing reads its records.
 */
const SERVER_OPTIONS = {
  "grpc.max_receive_message_length": 8 * 1024 * 1024,
  "grpc.max_send_message_length": 32 * 1024 * 1024,
  "grpc.enable_channelz": 0,
};

/** The adapters for binding an endpoint. */
export interface TransportAdapters {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** The Deno version, which decides how a unix socket is served. @default {Deno.version.deno} */
  readonly denoVersion?: string;
}

/** A bound endpoint. */
export interface Transport {
  /** The endpoint for clients, with the real port. */
  readonly address: string;
  /**
   * Whether a client that dials the address now reaches this server: whether a unix socket is still the one that it
   * placed.
   */
  isInPlace(): Promise<boolean>;
  /** Refuses new connections and asks the open ones to close when their calls are done; resolves when all have. */
  drain(graceMs: number): Promise<void>;
  /** Closes the remaining connections. */
  destroy(): void;
}

/** A gRPC server without services, which does not listen yet. */
export function makeServer(): Server {
  // grpc-js prints plain text to standard error, where every line must be JSON; relevant failures are also thrown as
  // errors.
  setLogVerbosity(logVerbosity.NONE);
  return new Server(SERVER_OPTIONS);
}

/**
 * Binds an endpoint for a server.
 *
 * @throws {VolumeError} precondition when another process serves there, or when something other than a socket is there
 * @throws {VolumeError} unavailable when it cannot be bound
 */
export function listen(endpoint: Endpoint, server: Server, options: TransportAdapters): Promise<Transport> {
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
    isInPlace: () => Promise.resolve(true),
    drain: () => shutdown(server),
    destroy: () => server.forceShutdown(),
  };
}

async function listenUnix(path: string, server: Server, { random }: TransportAdapters): Promise<Transport> {
  const socket = await placeSocket(path, random, async (temporary) => {
    await bind(server, `unix:${temporary}`);
  });
  return {
    address: `unix://${path}`,
    isInPlace: () => socket.isInPlace(),
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
  { random, clock, log, denoVersion }: TransportAdapters,
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
    isInPlace: () => socket.isInPlace(),
    async drain(graceMs) {
      await socket.remove();
      // Shutting down the server at once would cut the injected connections.
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
    // The library's message with the number of resolved addresses is left out.
    const reason = /\[listen (.*)\]$/s.exec(error.message)?.[1] ?? error.message;
    throw new VolumeError("unavailable", `Cannot listen because binding failed: ${reason}`, { cause: error });
  });
  guardSessions(server);
  return port;
}

function shutdown(server: Server): Promise<void> {
  return new Promise((resolve) => server.tryShutdown(() => resolve()));
}
