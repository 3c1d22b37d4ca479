import type { Clock } from "../volume/ports/system.ts";
import type { HttpRequest } from "./http_request.ts";
import { type HttpClient, HttpServer } from "./http_server.ts";
import type { Status, StatusQuery } from "./status/model.ts";

/** The pages that are served over HTTP. */
export interface TelemetryPages {
  /** The metrics as text. It reads neither the network nor a disk. */
  metrics(): string;
  /** Why a restart of the driver would help; undefined when it would not. */
  failure(): Promise<string | undefined>;
  /** Why the driver cannot take calls, or what has not answered yet; undefined when it is ready. */
  unreadiness(): Promise<string | undefined>;
  /** Returns the driver's state for the status page, filtered by the request's query. It makes no call of its own. */
  status(parameters: URLSearchParams): Promise<{ readonly status: Status; readonly query: StatusQuery }>;
}

/** A server of {@linkcode TelemetryPages}. */
export interface TelemetryServer {
  /** `http://host:port`, with the real port. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Prometheus, "Exposition formats". */
const metricsType = "text/plain; version=0.0.4; charset=utf-8";
const plainType = "text/plain; charset=utf-8";

/** Headers of every page: it is not cached, and its type is not guessed. */
const ofThisMoment = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};

/** The allowed readers of the status page. */
export type StatusReaders = "everybody" | "this-machine";

/**
 * Serves the status page at `/`, the same at `/status.json`, `/metrics`, `/healthz` and `/readyz`. Nothing can be
 * changed here, because everyone in the cluster can reach it.
 *
 * @throws {Error} when it cannot listen there
 */
export function serveTelemetry(
  address: ListenAddress,
  pages: TelemetryPages,
  clock: Clock,
  readers: StatusReaders = "everybody",
): TelemetryServer {
  const rendering = new HalfTime(clock);
  return new HttpServer(
    address,
    (request, client) => {
      const showsStatus = readers === "everybody" || isLoopback(client.address);
      return answer(request, pages, showsStatus, (render) => rendering.run(render, client));
    },
    clock,
  );
}

/** The longest rest after work, in milliseconds: what took longer has waited for something. */
const maxRestMs = 1_000;

/** Lets work that may be asked for at any rate take at most half of the time: volumes are served in the other half. */
class HalfTime {
  readonly #clock: Clock;
  /** Resolves when all that was asked for is done. */
  #done: Promise<void> = Promise.resolve();
  /** When the rest after it is over. */
  #nextMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Does the work when it is its turn, which ends with its client; rejects when that has gone by then. */
  async run(work: () => Promise<Response>, { signal }: HttpClient): Promise<Response> {
    const turn = Promise.withResolvers<void>();
    const before = this.#done;
    this.#done = turn.promise;
    await before;
    signal.addEventListener("abort", () => turn.resolve(), { once: true });
    try {
      const waitMs = this.#nextMs - this.#clock.monotonicMs();
      if (waitMs > 0) await this.#clock.sleep(waitMs, signal);
      signal.throwIfAborted();
      return await this.#timed(work);
    } finally {
      turn.resolve();
    }
  }

  async #timed(work: () => Promise<Response>): Promise<Response> {
    const startedMs = this.#clock.monotonicMs();
    try {
      return await work();
    } finally {
      const endedMs = this.#clock.monotonicMs();
      this.#nextMs = endedMs + Math.min(endedMs - startedMs, maxRestMs);
    }
  }
}

/** Also accepts an IPv4 address in the form of a socket for both families. */
function isLoopback(address: string): boolean {
  return /^(?:::ffff:)?127\.|^::1$/.test(address);
}

async function answer(
  { url: { pathname, searchParams } }: HttpRequest,
  pages: TelemetryPages,
  showsStatus: boolean,
  inTurn: (render: () => Promise<Response>) => Promise<Response>,
): Promise<Response> {
  if (!showsStatus && (pathname === "/" || pathname === "/status.json")) {
    return plain(
      "the status page is served to this machine only; set --status-address to serve it elsewhere",
      403,
    );
  }
  switch (pathname) {
    case "/":
      return await inTurn(async () => await page(await pages.status(searchParams)));
    case "/status.json":
      return await inTurn(async () => await document(await pages.status(searchParams)));
    case "/metrics":
      return await inTurn(() => Promise.resolve(metricsOf(pages)));
    case "/healthz":
      return result(await pages.failure());
    case "/readyz":
      return result(await pages.unreadiness());
    default:
      return plain("not found: use /, /status.json, /metrics, /healthz or /readyz", 404);
  }
}

function metricsOf(pages: TelemetryPages): Response {
  return new Response(pages.metrics(), { headers: { "content-type": metricsType } });
}

type Asked = Awaited<ReturnType<TelemetryPages["status"]>>;

/** The page's code is loaded at the first request, because it would take memory on every node. */
async function page({ status, query }: Asked): Promise<Response> {
  const { contentSecurityPolicy, statusPage } = await import("./status/page.ts");
  return new Response(statusPage(status, query), {
    headers: {
      ...ofThisMoment,
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": await contentSecurityPolicy(),
    },
  });
}

async function document({ status }: Asked): Promise<Response> {
  const { statusJson } = await import("./status/page.ts");
  return new Response(statusJson(status), {
    headers: { ...ofThisMoment, "content-type": "application/json; charset=utf-8" },
  });
}

function result(problem: string | undefined): Response {
  return problem === undefined ? plain("ok", 200) : plain(problem, 503);
}

function plain(text: string, status: number): Response {
  return new Response(`${text}\n`, { status, headers: { "content-type": plainType } });
}

/** The address on which to listen for HTTP. */
export interface ListenAddress {
  readonly hostname: string;
  /** 0 chooses a free one. */
  readonly port: number;
}

/** Parses `host:port`, `[IPv6]:port`, or `:port` for every IPv4 address of the machine; undefined for anything else. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]*)):([0-9]{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) return undefined;
  return { hostname: match[1] ?? (match[2] || "0.0.0.0"), port };
}
