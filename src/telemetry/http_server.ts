import { parseRequestHead } from "./http_request.ts";
import type { HttpRequest } from "./http_request.ts";
import type { Clock } from "../volume/ports/system.ts";

/** The bounds of a {@linkcode HttpServer}: everyone in the cluster can reach it, and it shares a process with volumes. */
export const httpLimits = {
  /** Connections at the same time. */
  connections: 32,
  /** Those of one address. */
  connectionsOfAddress: 8,
  /** Bytes of a request's head. */
  headBytes: 8192,
  /** Milliseconds until a request's head has to be there. */
  headMs: 5_000,
  /** Milliseconds until a client has to have read its answer. */
  answerMs: 10_000,
  /** Milliseconds for which a client may go on sending after its answer. */
  lingerMs: 1_000,
  /** Connections that are dropped for newer ones in a row before other work goes first, such as reading from these. */
  dropsInRow: 32,
} as const;

/** Milliseconds until the next connection is accepted after some were dropped. */
const pauseMs = 1;
/** The same after one could not be accepted, as for lack of file descriptors. */
const failedPauseMs = 100;

/** Bytes that are read at once: one for each connection is small, and holds a usual request. */
const pieceBytes = 1024;

/** Answers a request. */
export type HttpHandler = (request: HttpRequest, client: HttpClient) => Promise<Response>;

/** Who waits for an answer. */
export interface HttpClient {
  readonly address: string;
  /** Aborted when its connection is closed, because it has gone or was dropped. */
  readonly signal: AbortSignal;
}

/** One client's connection. */
class Connection implements HttpClient {
  readonly address: string;
  readonly #closed = new AbortController();
  readonly #tcp: Deno.TcpConn;

  constructor(tcp: Deno.TcpConn) {
    this.#tcp = tcp;
    this.address = tcp.remoteAddr.hostname;
  }

  get signal(): AbortSignal {
    return this.#closed.signal;
  }

  close(): void {
    if (this.signal.aborted) return;
    this.#closed.abort();
    this.#tcp.close();
  }

  /** Reads up to the empty line behind a request's head; undefined when the client ends before, 431 when it is too long. */
  async readHead(): Promise<string | 431 | undefined> {
    const bytes = new Uint8Array(pieceBytes);
    let text = "";
    while (text.length < httpLimits.headBytes) {
      const count = await this.#tcp.read(bytes);
      if (count === null) return undefined;
      // The line end may have been read in part before.
      const from = Math.max(0, text.length - 3);
      text += String.fromCharCode(...bytes.subarray(0, count));
      const end = text.slice(from).search(/\r?\n\r?\n/);
      if (end >= 0) return text.slice(0, from + end);
    }
    return 431;
  }

  async write(bytes: Uint8Array): Promise<void> {
    for (let written = 0; written < bytes.length;) written += await this.#tcp.write(bytes.subarray(written));
  }

  /** Ends the answer. What a client still sends is read: closing at once would take the answer from it. */
  async finish(): Promise<void> {
    await this.#tcp.closeWrite();
    const bytes = new Uint8Array(pieceBytes);
    while (await this.#tcp.read(bytes) !== null);
  }
}

/**
 * A server for GET and HEAD over HTTP/1, with {@linkcode httpLimits}: neither `Deno.serve` nor, in every Deno, `node:http`
 * has any. A connection serves one request. Where there are too many, the newest takes the place of the oldest, so that
 * whoever sends its request at once and reads the answer, as the kubelet does, is served all the same.
 */
export class HttpServer {
  readonly #listener: Deno.TcpListener;
  readonly #handler: HttpHandler;
  readonly #clock: Clock;
  /** The oldest first. */
  readonly #connections = new Set<Connection>();
  readonly #accepting: Promise<void>;
  #isStopped = false;

  /** @throws {Error} when it cannot listen there */
  constructor(
    address: { readonly hostname: string; readonly port: number },
    handler: HttpHandler,
    clock: Clock,
  ) {
    this.#listener = Deno.listen(address);
    this.#handler = handler;
    this.#clock = clock;
    this.#accepting = this.#accept();
  }

  /** `http://host:port`, with the real port. */
  get url(): string {
    const { hostname, port } = this.#listener.addr;
    return `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
  }

  /** Stops listening, and ends all connections. OK when that was done before. */
  async stop(): Promise<void> {
    if (!this.#isStopped) {
      this.#isStopped = true;
      this.#listener.close();
      for (const connection of this.#connections) connection.close();
    }
    await this.#accepting;
  }

  async #accept(): Promise<void> {
    let drops = 0;
    while (!this.#isStopped) {
      const tcp = await this.#listener.accept().catch(() => undefined);
      if (this.#isStopped) return tcp?.close();
      if (tcp === undefined) await this.#clock.sleep(failedPauseMs);
      else if (!this.#take(tcp)) drops = 0;
      else if (++drops % httpLimits.dropsInRow === 0) await this.#clock.sleep(pauseMs);
    }
  }

  /** Takes a connection. Returns whether another one was dropped for it. */
  #take(tcp: Deno.TcpConn): boolean {
    const connection = new Connection(tcp);
    const dropped = this.#oneTooMany(connection.address);
    if (dropped !== undefined) this.#drop(dropped);
    this.#connections.add(connection);
    void this.#serve(connection);
    return dropped !== undefined;
  }

  /** The connection to drop before there is one more from an address; undefined while there is room. */
  #oneTooMany(address: string): Connection | undefined {
    const byAddress = Map.groupBy(this.#connections, (connection) => connection.address);
    const own = byAddress.get(address) ?? [];
    if (own.length >= httpLimits.connectionsOfAddress) return own[0];
    if (this.#connections.size < httpLimits.connections) return undefined;
    return [...byAddress.values()].reduce((a, b) => b.length > a.length ? b : a)[0];
  }

  #drop(connection: Connection): void {
    this.#connections.delete(connection);
    connection.close();
  }

  async #serve(connection: Connection): Promise<void> {
    const limit = (ms: number) => this.#clock.timer(ms, () => connection.close());
    let cancel = limit(httpLimits.headMs);
    try {
      const head = await connection.readHead();
      if (head === undefined) return;
      cancel();
      cancel = limit(httpLimits.answerMs);
      const answer = await this.#answer(head, connection);
      await connection.write(answer);
      cancel();
      cancel = limit(httpLimits.lingerMs);
      await connection.finish();
    } catch {
      // Only the connection fails here: the client has gone, or was dropped.
    } finally {
      cancel();
      this.#drop(connection);
    }
  }

  /** The bytes of the answer to a request with this head. */
  async #answer(head: string | 431, client: HttpClient): Promise<Uint8Array> {
    const request = head === 431 ? head : parseRequestHead(head);
    if (typeof request === "number") return await this.#bytesOf(refusal(request), true);
    const { method } = request;
    const response = method === "GET" || method === "HEAD"
      ? await this.#handler(request, client).catch((error) => refusal(500, String(error)))
      : refusal(405);
    return await this.#bytesOf(response, method !== "HEAD");
  }

  async #bytesOf(response: Response, withBody: boolean): Promise<Uint8Array> {
    const body = new Uint8Array(await response.arrayBuffer());
    const head = [
      `HTTP/1.1 ${response.status} `,
      ...[...response.headers].map(([name, value]) => `${name}: ${value}`),
      `content-length: ${body.length}`,
      `date: ${new Date(this.#clock.now()).toUTCString()}`,
      "connection: close\r\n\r\n",
    ];
    const bytes = new TextEncoder().encode(head.join("\r\n"));
    if (!withBody) return bytes;
    const all = new Uint8Array(bytes.length + body.length);
    all.set(bytes);
    all.set(body, bytes.length);
    return all;
  }
}

const reasons = {
  400: "this is no HTTP/1 request",
  405: "only GET and HEAD",
  431: `the head of a request may have ${httpLimits.headBytes} bytes`,
  500: "internal error",
  505: "only HTTP/1.1 and HTTP/1.0",
};

function refusal(status: keyof typeof reasons, text: string = reasons[status]): Response {
  const headers = {
    "content-type": "text/plain; charset=utf-8",
    ...status === 405 ? { allow: "GET, HEAD" } : {},
  };
  return new Response(`${text}\n`, { status, headers });
}
