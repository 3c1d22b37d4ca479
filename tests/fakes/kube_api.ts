import type { AccessRule } from "../support/access_rules.ts";

/** An object in the API's form. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: {
    name: string;
    namespace?: string;
    uid?: string;
    resourceVersion?: string;
    creationTimestamp?: string;
    deletionTimestamp?: string;
    annotations?: Record<string, string>;
    labels?: Record<string, string>;
    [key: string]: unknown;
  };
  [key: string]: unknown;
}

/** A fault of matching requests. */
export interface KubeFault {
  /** Matched with `METHOD /path`. */
  readonly match: RegExp;
  /** The status of the answer; without one the request is served, after `delayMs`. */
  readonly status?: number;
  readonly retryAfterSeconds?: number;
  readonly delayMs?: number;
  /** Until when the request waits, before anything else. */
  readonly until?: Promise<void>;
  /** How many requests it affects. @default {Infinity} */
  times?: number;
}

/** A request that was answered. */
export interface KubeRequest {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly status: number;
}

const reasons: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  409: "Conflict",
  410: "Expired",
  415: "UnsupportedMediaType",
  429: "TooManyRequests",
  500: "InternalError",
};

/** The parts of an object's path, such as `/api/v1/namespaces/n/events/e`. */
interface Place {
  readonly group: string;
  readonly namespace: string;
  readonly resource: string;
  readonly name: string;
  /** Path of its collection. */
  readonly collection: string;
}

class Refusal extends Error {
  readonly status: number;
  readonly reason: string;
  constructor(status: number, message: string, reason = reasons[status] ?? "Unknown") {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

/** An API server over real HTTP: gets, lists in pages, creates, updates and merge patches; no admission, no watches. */
export class FakeKubeApi implements AsyncDisposable {
  /** The faults; the first matching one applies. */
  readonly faults: KubeFault[] = [];
  /** Every request, in the order of the answers. */
  readonly requests: KubeRequest[] = [];
  /** The allowed calls; all while undefined. */
  rules: readonly AccessRule[] | undefined;
  /** The only accepted token; all are while undefined. */
  token: string | undefined;
  /** The most requests that were served at the same time. */
  maxAtOnce = 0;

  readonly #objects = new Map<string, Map<string, KubeObject>>();
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #scheme: "http" | "https";
  #version = 1;
  #oldestToken = 0;
  #atOnce = 0;

  /** @param tls its certificate and key; without, it serves plain HTTP */
  constructor(tls?: { readonly cert: string; readonly key: string }) {
    const handler = (request: Request) => this.#serve(request);
    const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
    this.#server = tls === undefined
      ? Deno.serve(options, handler)
      : Deno.serve({ ...options, cert: tls.cert, key: tls.key }, handler);
    this.#scheme = tls === undefined ? "http" : "https";
  }

  /** Its port on 127.0.0.1. */
  get port(): number {
    return this.#server.addr.port;
  }

  /** `http://127.0.0.1:port`, or `https`. */
  get url(): string {
    return `${this.#scheme}://127.0.0.1:${this.port}`;
  }

  /** A kubeconfig for this server, as text. Without TLS the client has to be told that this is intended. */
  kubeconfig(token = this.token ?? "t"): string {
    return JSON.stringify({
      "apiVersion": "v1",
      "kind": "Config",
      "current-context": "test",
      "clusters": [{ name: "c", cluster: { server: this.url, "insecure-skip-tls-verify": true } }],
      "users": [{ name: "u", user: { token } }],
      "contexts": [{ name: "test", context: { cluster: "c", user: "u", namespace: "storage" } }],
    });
  }

  /** Puts an object there as another client would. */
  put(collection: string, object: KubeObject): KubeObject {
    const version = String(++this.#version);
    const whole = {
      ...object,
      metadata: {
        uid: `uid-${version}`,
        creationTimestamp: "2026-01-01T00:00:00Z",
        ...object.metadata,
        resourceVersion: version,
      },
    };
    this.#of(collection).set(object.metadata.name, whole);
    return whole;
  }

  /** An object; undefined when there is none. */
  get(collection: string, name: string): KubeObject | undefined {
    return this.#objects.get(collection)?.get(name);
  }

  /** Deletes an object. */
  delete(collection: string, name: string): void {
    this.#objects.get(collection)?.delete(name);
  }

  /** Every object of a collection, by name. */
  all(collection: string): KubeObject[] {
    return [...this.#of(collection).values()].toSorted((a, b) => a.metadata.name < b.metadata.name ? -1 : 1);
  }

  /** Makes the pages of lists that have begun go out of date. */
  expireLists(): void {
    this.#oldestToken = ++this.#version;
  }

  /** How many requests are being served. */
  get atOnce(): number {
    return this.#atOnce;
  }

  /** How many answered requests match. */
  count(match: RegExp): number {
    return this.requests.filter(({ method, path }) => match.test(`${method} ${path}`)).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }

  #of(collection: string): Map<string, KubeObject> {
    const found = this.#objects.get(collection) ?? new Map<string, KubeObject>();
    this.#objects.set(collection, found);
    return found;
  }

  async #serve(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const text = await request.text();
    const query = Object.fromEntries(searchParams);
    const body: unknown = text === "" ? undefined : JSON.parse(text);
    this.maxAtOnce = Math.max(this.maxAtOnce, ++this.#atOnce);
    try {
      const response = await this.#answer(request, pathname, query, body);
      this.requests.push({ method: request.method, path: pathname, query, body, status: response.status });
      return response;
    } finally {
      this.#atOnce--;
    }
  }

  async #answer(
    request: Request,
    path: string,
    query: Record<string, string>,
    body: unknown,
  ): Promise<Response> {
    try {
      const fault = this.#fault(`${request.method} ${path}`);
      await fault?.until;
      if (fault?.delayMs !== undefined) await new Promise((resolve) => setTimeout(resolve, fault.delayMs));
      if (fault?.status !== undefined) return refused(fault.status, "made to fail", fault.retryAfterSeconds);
      this.#authorize(request, path);
      return Response.json(this.#run(request, path, query, body));
    } catch (error) {
      if (error instanceof Refusal) return refused(error.status, error.message, undefined, error.reason);
      throw error;
    }
  }

  #fault(request: string): KubeFault | undefined {
    const fault = this.faults.find(({ match, times }) => match.test(request) && (times ?? 1) > 0);
    if (fault?.times !== undefined) fault.times--;
    return fault;
  }

  #authorize(request: Request, path: string): void {
    if (this.token !== undefined && request.headers.get("authorization") !== `Bearer ${this.token}`) {
      throw new Refusal(401, "who is that?");
    }
    if (this.rules === undefined) return;
    const { group, resource, name } = locationOf(path);
    const verbs = { GET: name === "" ? "list" : "get", POST: "create", PUT: "update", PATCH: "patch" };
    const verb = verbs[request.method as keyof typeof verbs];
    const allowed = this.rules.some((rule) =>
      rule.apiGroups.includes(group) && rule.resources.includes(resource) && rule.verbs.includes(verb) &&
      (rule.resourceNames === undefined || rule.resourceNames.includes(name))
    );
    if (!allowed) throw new Refusal(403, `may not ${verb} ${resource}.${group}`);
  }

  #run(request: Request, path: string, query: Record<string, string>, body: unknown): unknown {
    const location = locationOf(path);
    switch (request.method) {
      case "GET":
        return location.name === "" ? this.#list(path, location, query) : this.#existing(location);
      case "POST":
        return this.#create(location, body as KubeObject);
      case "PUT":
        return this.#update(location, body as KubeObject);
      case "PATCH":
        if (request.headers.get("content-type") !== "application/merge-patch+json") {
          throw new Refusal(415, "only merge patches");
        }
        return this.#update(location, merged(this.#existing(location), body) as KubeObject, body);
      default:
        throw new Refusal(400, `no ${request.method} here`);
    }
  }

  /** A collection of all namespaces contains every collection of that resource. */
  #list(path: string, location: Place, query: Record<string, string>): unknown {
    const collections = location.namespace !== "" || this.#objects.has(path)
      ? [path]
      : [...this.#objects.keys()]
        .filter((key) =>
          locationOf(key).group === location.group && locationOf(key).resource === location.resource
        );
    const labels = (query["labelSelector"] ?? "").split(",").filter((part) => part !== "").map((part) =>
      part.split("=")
    );
    const all = collections.flatMap((one) => this.all(one)).filter(({ metadata }) =>
      labels.every(([key = "", value]) =>
        value === undefined ? key in (metadata.labels ?? {}) : metadata.labels?.[key] === value
      )
    );
    const [begun, after] = query["continue"] === undefined
      ? [this.#version, ""]
      : readToken(query["continue"]);
    if (begun < this.#oldestToken) throw new Refusal(410, "the pages are out of date");
    const rest = all.filter(({ metadata }) => metadata.name > after);
    const limit = Number(query["limit"] ?? Infinity);
    const items = rest.slice(0, limit);
    const more = rest.length > items.length;
    return {
      kind: "List",
      metadata: {
        resourceVersion: String(begun),
        ...(more ? { continue: btoa(`${begun} ${items.at(-1)!.metadata.name}`) } : {}),
      },
      items,
    };
  }

  #existing(location: Place): KubeObject {
    const found = this.get(location.collection, location.name);
    if (found === undefined) throw new Refusal(404, `there is no ${location.resource} ${location.name}`);
    return found;
  }

  #create(location: Place, object: KubeObject): KubeObject {
    if (this.get(location.collection, object.metadata.name) !== undefined) {
      throw new Refusal(409, "it is there already", "AlreadyExists");
    }
    if (object.metadata.resourceVersion) throw new Refusal(400, "resourceVersion should not be set");
    return this.put(location.collection, object);
  }

  #update(location: Place, object: KubeObject, patch: unknown = object): KubeObject {
    const before = this.#existing(location);
    const expected = (patch as Partial<KubeObject>).metadata?.resourceVersion;
    if (expected !== undefined && expected !== "" && expected !== before.metadata.resourceVersion) {
      throw new Refusal(409, "the object has been modified");
    }
    return this.put(location.collection, {
      ...object,
      metadata: { ...object.metadata, uid: before.metadata.uid ?? "", name: location.name },
    });
  }
}

function locationOf(path: string): Place {
  const parts = path.split("/").slice(1);
  const rest = parts[0] === "api" ? parts.slice(2) : parts.slice(3);
  const group = parts[0] === "api" ? "" : parts[1] ?? "";
  const namespaced = rest[0] === "namespaces" && rest.length > 2;
  const [resource = "", name = ""] = namespaced ? rest.slice(2) : rest;
  const collection = name === "" ? path : path.slice(0, path.lastIndexOf("/"));
  return { group, namespace: namespaced ? rest[1]! : "", resource, name, collection };
}

function readToken(token: string): [begun: number, after: string] {
  const [begun, after] = atob(token).split(" ");
  return [Number(begun), after ?? ""];
}

/** RFC 7386. */
function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> = typeof target === "object" && target !== null ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merged(result[key], value);
  }
  return result;
}

function refused(
  status: number,
  message: string,
  retryAfterSeconds?: number,
  reason = reasons[status] ?? "Unknown",
): Response {
  const headers: Record<string, string> = retryAfterSeconds === undefined
    ? {}
    : { "retry-after": String(retryAfterSeconds) };
  return Response.json({ kind: "Status", status: "Failure", message, reason, code: status }, {
    status,
    headers,
  });
}
