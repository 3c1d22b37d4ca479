import { messageOf } from "../../volume/error_messages.ts";
import { createServer, type Server as NetServer, type Socket } from "node:net";
import { type Server, ServerCredentials } from "@grpc/grpc-js";
import type { Logger } from "../../telemetry/log.ts";
import type { Clock } from "../../volume/ports/system.ts";
import { guardSessions } from "./http2_guard.ts";

/** The loopback address of the inner connections, which is unlikely to be used by anything else. */
const INNER_ADDRESS = "127.77.0.1";

/** How long an inner connection may take to be accepted. */
const ACCEPT_TIMEOUT_MS = 5_000;

/** How long to wait after a failed accept. */
const ACCEPT_PAUSE_MS = 100;

const COPY_BUFFER_BYTES = 16 * 1024;

/** A unix socket that is served without node:http2. */
export interface LegacyListener {
  /**
   * Stops accepting and closes the connections gracefully, at the latest after `graceMs`; resolves when all are closed.
   */
  drain(graceMs: number): Promise<void>;
  /** Closes the remaining connections. */
  destroy(): void;
}

/**
 * Whether this Deno's node:http2 needs {@linkcode listenLegacy}: before 2.7.14 it sends no SETTINGS on a unix socket,
 * so that every client waits forever.
 */
export function needsLegacyListener(denoVersion: string): boolean {
  const [major = 0, minor = 0, patch = 0] = denoVersion.split(/[.+-]/).map(Number);
  if (major !== 2) return major < 2;
  return minor < 7 || (minor === 7 && patch < 14);
}

/**
 * Serves a unix socket on Denos whose node:http2 cannot. Each connection is forwarded over its own loopback connection,
 * because only a real TCP socket can be injected.
 *
 * Each inner connection has its own listener. An accepted connection is used only if its peer is, by address and port,
 * the socket that this process has just connected: another process of this machine that finds the port first gets
 * nothing. The accepted side is injected; injecting the connecting side makes some connections hang.
 */
export function listenLegacy(path: string, server: Server, clock: Clock, log: Logger): LegacyListener {
  const listener = Deno.listen({ transport: "unix", path });
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  guardSessions(server);
  const open = new Map<Deno.Conn, Promise<void>>();

  const serve = async (outer: Deno.Conn) => {
    try {
      const pair = await innerPair(clock);
      await carry(outer, pair, () => injector.injectConnection(pair.accepted));
    } catch (error) {
      log.debug("connection ended", { error: messageOf(error) });
    } finally {
      open.delete(outer);
      close(outer);
    }
  };
  acceptAll(listener, clock, log, (outer) => open.set(outer, serve(outer)))
    .catch((error) => log.error("can no longer accept connections", { error }));

  return {
    async drain(graceMs) {
      close(listener);
      injector.drain(graceMs);
      await Promise.all(open.values());
    },
    destroy() {
      close(listener);
      injector.destroy();
      for (const connection of open.keys()) close(connection);
    },
  };
}

/**
 * Accepts until the listener is closed. After any other failure (no descriptors left) it tries again a little later.
 */
async function acceptAll(
  listener: Deno.Listener,
  clock: Clock,
  log: Logger,
  accepted: (outer: Deno.Conn) => void,
): Promise<void> {
  for (;;) {
    try {
      accepted(await listener.accept());
    } catch (error) {
      if (error instanceof Deno.errors.BadResource || error instanceof Deno.errors.Interrupted) return;
      log.warn("cannot accept a connection now", { error });
      await clock.sleep(ACCEPT_PAUSE_MS);
    }
  }
}

/** The two ends of a new loopback connection. */
interface InnerPair {
  readonly inner: Deno.TcpConn;
  readonly accepted: Socket;
}

/**
 * Copies between the outer connection and the inner one until either side ends: HTTP/2 has no half-closed connections.
 */
async function carry(outer: Deno.Conn, { inner, accepted }: InnerPair, inject: () => void): Promise<void> {
  inner.setNoDelay(true);
  accepted.setNoDelay(true);
  inject();
  const directions = [copy(outer, inner), copy(inner, outer)];
  try {
    await Promise.race(directions);
  } finally {
    close(outer);
    close(inner);
    accepted.destroy();
    await Promise.allSettled(directions);
  }
}

async function copy(from: Deno.Conn, to: Deno.Conn): Promise<void> {
  const buffer = new Uint8Array(COPY_BUFFER_BYTES);
  for (;;) {
    const count = await from.read(buffer);
    if (count === null) return;
    for (let written = 0; written < count;) written += await to.write(buffer.subarray(written, count));
  }
}

async function innerPair(clock: Clock): Promise<InnerPair> {
  const arrivals = new Arrivals();
  const listener = createServer((socket) => arrivals.add(socket));
  const cancelTimer = clock.timer(ACCEPT_TIMEOUT_MS, () => arrivals.giveUp());
  let inner: Deno.TcpConn | undefined;
  try {
    const port = await listen(listener);
    inner = await Deno.connect({ transport: "tcp", hostname: INNER_ADDRESS, port });
    return { inner, accepted: await arrivals.from(inner.localAddr as Deno.NetAddr) };
  } catch (error) {
    if (inner !== undefined) close(inner);
    throw error;
  } finally {
    cancelTimer();
    arrivals.giveUp();
    listener.close();
  }
}

function listen(listener: NetServer): Promise<number> {
  return new Promise((resolve, reject) => {
    listener.once("error", reject);
    listener.listen({ host: INNER_ADDRESS, port: 0, backlog: 8 }, () => {
      const address = listener.address();
      if (address === null || typeof address === "string") reject(new Error("the listener has no port"));
      else resolve(address.port);
    });
  });
}

/**
 * The connections that an inner listener has accepted. The accept event may come before the connect resolves, so
 * arrivals wait, unread, until the wanted peer is known; every other one is closed.
 */
export class Arrivals {
  #waiting: Socket[] = [];
  #wanted: Deno.NetAddr | undefined;
  #over = false;
  readonly #found = Promise.withResolvers<Socket | undefined>();

  /** Adds a connection that the listener has accepted. */
  add(socket: Socket): void {
    socket.on("error", () => socket.destroy());
    this.#waiting.push(socket);
    this.#sort();
  }

  /** The arrival whose peer is `wanted`, address and port; fails when {@linkcode giveUp} comes first. */
  async from(wanted: Deno.NetAddr): Promise<Socket> {
    this.#wanted = wanted;
    this.#sort();
    const found = await this.#found.promise;
    if (found === undefined) throw new Error("the inner connection was not accepted in time");
    return found;
  }

  /** Closes all waiting connections, and all later ones. */
  giveUp(): void {
    this.#over = true;
    this.#found.resolve(undefined);
    this.#sort();
  }

  #sort(): void {
    if (!this.#over && this.#wanted === undefined) return;
    for (const socket of this.#waiting.splice(0)) {
      const ours = socket.remoteAddress === this.#wanted?.hostname &&
        socket.remotePort === this.#wanted?.port;
      if (this.#over || !ours) {
        socket.destroy();
        continue;
      }
      this.#over = true;
      this.#found.resolve(socket);
    }
  }
}

function close(resource: { close(): void }): void {
  try {
    resource.close();
  } catch (error) {
    if (!(error instanceof Deno.errors.BadResource)) throw error;
  }
}
