import type { ListenAddress } from "./listen_address.ts";

/** What is served over HTTP. */
export interface TelemetryPages {
  /** The metrics as text. It touches neither the network nor a disk. */
  metrics(): string;
  /** Why a restart of the driver would help; undefined when it would not. */
  failure(): Promise<string | undefined>;
  /** Why the driver cannot take calls, or what it needs for them is not known yet; undefined when it is ready. */
  unreadiness(): Promise<string | undefined>;
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

/**
 * Serves `/metrics`, `/healthz` and `/readyz`.
 *
 * @throws {Error} when it cannot listen there
 */
export function serveTelemetry({ hostname, port }: ListenAddress, pages: TelemetryPages): TelemetryServer {
  const server = Deno.serve({ hostname, port, onListen() {} }, (request) => answer(request, pages));
  const { hostname: host, port: bound } = server.addr;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}`,
    stop: () => server.shutdown(),
  };
}

async function answer(request: Request, pages: TelemetryPages): Promise<Response> {
  if (request.method !== "GET" && request.method !== "HEAD") {
    return new Response("only GET and HEAD\n", { status: 405, headers: { allow: "GET, HEAD" } });
  }
  switch (new URL(request.url).pathname) {
    case "/metrics":
      return new Response(pages.metrics(), { headers: { "content-type": metricsType } });
    case "/healthz":
      return verdict(await pages.failure());
    case "/readyz":
      return verdict(await pages.unreadiness());
    default:
      return plain("there are /metrics, /healthz and /readyz", 404);
  }
}

function verdict(problem: string | undefined): Response {
  return problem === undefined ? plain("ok", 200) : plain(problem, 503);
}

function plain(text: string, status: number): Response {
  return new Response(`${text}\n`, { status, headers: { "content-type": plainType } });
}
