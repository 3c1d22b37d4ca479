/** Shared by the tests of the server: a server in a scratch folder, and clients that work on every Deno. */
import type { Buffer } from "node:buffer";
import { Client, credentials, type ServiceError, status } from "@grpc/grpc-js";
import { loadSync, type ServiceDefinition } from "@grpc/proto-loader";
import { SeededRandom } from "../fakes/random.ts";
import { systemClock } from "../../src/host/clock.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { method } from "../../src/csi/server/call.ts";
import { guardClientSessions } from "../../src/csi/server/http2_guard.ts";
import { type CsiPackage, defaultProtoPath, loadCsi, LOADER_OPTIONS } from "../../src/csi/server/proto.ts";
import {
  type CsiServices,
  type RunningServer,
  type ServerOptions,
  startServer,
} from "../../src/csi/server/server.ts";
import { carryBothWays, close, isClosed } from "./carry.ts";

/**
 * Registers a test with a server in it. Timers and other resources are not checked for leaks: grpc-js and node:http2
 * keep some (backoff, the cached Date header) past the end of a test. Another test counts open sockets.
 */
export function serverTest(name: string, test: () => Promise<void>): void {
  Deno.test({ name, sanitizeOps: false, sanitizeResources: false, fn: test });
}

/**
 * How many sockets the kernel has at an endpoint: listening, accepted or dialled. Sockets of the whole process would
 * include those of other tests, which run at the same time.
 *
 * @param endpoint `tcp://host:port`, or the path of a unix socket or of its folder
 */
export function openSockets(endpoint: string): number {
  const port = /^tcp:.*:(\d+)$/.exec(endpoint)?.[1];
  if (port === undefined) return linesOf("unix").filter((line) => line.includes(endpoint)).length;
  const end = `:${Number(port).toString(16).toUpperCase().padStart(4, "0")}`;
  const timeWait = "06";
  return ["tcp", "tcp6"].flatMap(linesOf).map((line) => line.trim().split(/\s+/))
    .filter(([, local, remote, state]) =>
      state !== timeWait && (local?.endsWith(end) || remote?.endsWith(end))
    ).length;
}

function linesOf(protocol: string): readonly string[] {
  return Deno.readTextFileSync(`/proc/self/net/${protocol}`).split("\n");
}

/** Services in which only Probe is implemented. */
export function probeOnly(): CsiServices {
  return {
    identity: {
      Probe: method({ changing: false, handler: () => Promise.resolve({ ready: { value: true } }) }),
    },
  };
}

/** A scratch folder with its servers and their log. */
export class TestBench implements AsyncDisposable {
  readonly folder: string;
  readonly lines: Record<string, unknown>[] = [];
  readonly csi: CsiPackage;
  readonly #cleanups: (() => void | Promise<void>)[] = [];
  readonly #connections = new Set<Deno.Conn>();

  private constructor(folder: string, csi: CsiPackage) {
    this.folder = folder;
    this.csi = csi;
  }

  static async make(): Promise<TestBench> {
    guardClientSessions();
    return new TestBench(await Deno.makeTempDir({ prefix: "rds-csi-test-" }), loadCsi());
  }

  get socketPath(): string {
    return `${this.folder}/csi.sock`;
  }

  async start(options: Partial<ServerOptions> = {}): Promise<RunningServer> {
    const server = await startServer({
      endpoint: `unix://${this.socketPath}`,
      services: probeOnly(),
      csi: this.csi,
      clock: systemClock,
      random: new SeededRandom(),
      log: createLogger({
        clock: systemClock,
        level: "debug",
        sink: (line) => void this.lines.push(JSON.parse(line)),
      }),
      ...options,
    });
    this.#cleanups.push(() => server.stop({ graceMs: 0 }));
    return server;
  }

  /**
   * An address that a client of this Deno can dial: a bridge on loopback TCP that copies to and from the server's
   * endpoint, because node:http2 clients below 2.7.14 hang on a unix socket.
   */
  dial(server: RunningServer): string {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const carrying = new Set<Promise<void>>();
    const accepting = (async () => {
      for await (const tcp of listener) carrying.add(this.#carry(tcp, server.address));
    })();
    this.#cleanups.push(async () => {
      close(listener);
      await this.cutConnections();
      await Promise.all([accepting, ...carrying]);
    });
    return `127.0.0.1:${(listener.addr as Deno.NetAddr).port}`;
  }

  async #carry(client: Deno.TcpConn, address: string): Promise<void> {
    client.setNoDelay(true);
    this.#connections.add(client);
    let server: Deno.Conn | undefined;
    try {
      server = await connect(address);
      this.#connections.add(server);
      await carryBothWays(client, server);
    } catch (error) {
      if (!isClosed(error)) throw error;
    } finally {
      close(client);
    }
  }

  /** Cuts every connection between a client and the server. */
  async cutConnections(): Promise<void> {
    for (const connection of this.#connections) close(connection);
    this.#connections.clear();
    await systemClock.sleep(0);
  }

  clients(server: RunningServer): Clients {
    return this.clientsAt(this.dial(server));
  }

  clientsAt(address: string): Clients {
    const clients = new Clients(address);
    this.#cleanups.push(() => clients.close());
    return clients;
  }

  /** Registers a cleanup that runs at the end, whatever happens. */
  defer(cleanup: () => void | Promise<void>): void {
    this.#cleanups.push(cleanup);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const cleanup of this.#cleanups.toReversed()) await cleanup();
    await Deno.remove(this.folder, { recursive: true });
  }
}

/** The result of a call. */
export interface CallResult {
  readonly code: string;
  readonly details: string;
  readonly response?: unknown;
}

/** Options of a call. */
export interface CallOptions {
  readonly timeoutMs?: number;
  readonly cancel?: AbortSignal;
}

/** Every service of the file; the driver defines only those that it serves. */
const definitions = loadSync(defaultProtoPath(), LOADER_OPTIONS);

/** A client of all services over one connection. */
export class Clients {
  readonly #client: Client;

  constructor(address: string) {
    this.#client = new Client(address, credentials.createInsecure(), {
      "grpc.enable_retries": 0,
      "grpc.enable_channelz": 0,
      "grpc.use_local_subchannel_pool": 1,
      "grpc.max_receive_message_length": -1,
    });
  }

  /** Makes one call; never rejects. */
  call(path: string, request: unknown = {}, options: CallOptions = {}): Promise<CallResult> {
    const [service, name] = path.split("/");
    const definition = definitions[`csi.v1.${service}`] as ServiceDefinition;
    const { path: wirePath, requestSerialize, responseDeserialize } = definition[name!]!;
    const deadline = systemClock.now() + (options.timeoutMs ?? 60_000);
    return new Promise((resolve) => {
      const call = this.#client.makeUnaryRequest(
        wirePath,
        requestSerialize as (value: unknown) => Buffer,
        responseDeserialize as (bytes: Buffer) => unknown,
        request,
        { deadline },
        (error: ServiceError | null, response?: unknown) => {
          if (error === null) resolve({ code: "OK", details: "", response });
          else resolve({ code: status[error.code], details: error.details });
        },
      );
      options.cancel?.addEventListener("abort", () => call.cancel(), { once: true });
    });
  }

  close(): void {
    this.#client.close();
  }
}

/** Dials an endpoint in the form of {@linkcode RunningServer.address}. */
export function connect(address: string): Promise<Deno.Conn> {
  if (address.startsWith("unix://")) {
    return Deno.connect({ transport: "unix", path: address.slice("unix://".length) });
  }
  const { hostname, port } = new URL(address.replace("tcp:", "http:"));
  return Deno.connect({ hostname, port: Number(port) });
}
