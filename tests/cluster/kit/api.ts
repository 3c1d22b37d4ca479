/** The common fields of the API's objects. */
export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: Metadata;
}

/** The part of an object's metadata that the tests read. */
export interface Metadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly deletionTimestamp?: string;
}

/** The address of an API server, and a user's credentials. */
export interface ApiAccess {
  /** Such as `https://127.0.0.1:6443`. */
  readonly url: string;
  /** Its certificates, as PEM. */
  readonly caPem: string;
  readonly token: string;
}

/** How long one request may take, in milliseconds. */
const requestMs = 30_000;

/** The API server refuses a request, or cannot be reached. */
export class ApiError extends Error {
  /** The HTTP status; 0 when there was no answer. */
  readonly status: number;

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

/** A client of one API server: plain HTTPS and JSON. */
export class Api implements Disposable {
  readonly access: ApiAccess;
  readonly #client: Deno.HttpClient;

  constructor(access: ApiAccess) {
    this.access = access;
    this.#client = Deno.createHttpClient({ caCerts: [access.caPem] });
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }

  /** Reads an object by its path. */
  async get<T>(path: string): Promise<T> {
    return JSON.parse(await this.text("GET", path)) as T;
  }

  /** Reads an object; undefined when there is none at this path. */
  async find<T>(path: string): Promise<T | undefined> {
    try {
      return await this.get<T>(path);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  }

  /** Reads all objects of a collection. */
  async list<T extends KubeObject>(path: string): Promise<readonly T[]> {
    return (await this.get<{ readonly items: readonly T[] }>(path)).items;
  }

  /** Adds an object to a collection. */
  async create<T>(path: string, object: object): Promise<T> {
    return JSON.parse(await this.text("POST", path, object)) as T;
  }

  /** Changes an object by a JSON merge patch. */
  async patch<T>(path: string, change: object): Promise<T> {
    return JSON.parse(await this.text("PATCH", path, change, "application/merge-patch+json")) as T;
  }

  /** Requests an object's deletion; a missing one counts as deleted. */
  async remove(path: string): Promise<void> {
    try {
      await this.text("DELETE", path);
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 404)) throw error;
    }
  }

  /** Whether the API server serves. */
  async isReady(): Promise<boolean> {
    try {
      await this.text("GET", "/readyz");
      return true;
    } catch (error) {
      if (error instanceof ApiError) return false;
      throw error;
    }
  }

  /**
   * Sends one request, and returns the answer's text.
   *
   * @throws {ApiError} unless it succeeds
   */
  async text(method: string, path: string, body?: object, type = "application/json"): Promise<string> {
    const response = await this.#fetch(method, path, body, type);
    const text = await response.text();
    if (response.ok) return text;
    throw new ApiError(response.status, `${method} ${path} is answered with ${response.status}: ${text}`);
  }

  async #fetch(method: string, path: string, body: object | undefined, type: string): Promise<Response> {
    try {
      return await fetch(this.access.url + path, {
        method,
        headers: { authorization: `Bearer ${this.access.token}`, "content-type": type },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        client: this.#client,
        signal: AbortSignal.timeout(requestMs),
      });
    } catch (error) {
      if (error instanceof TypeError || (error as Error).name === "TimeoutError") {
        throw new ApiError(0, `${method} ${path} is not answered: ${(error as Error).message}`, {
          cause: error,
        });
      }
      throw error;
    }
  }
}

/** A kubeconfig with these credentials, as JSON, which is YAML too. */
export function kubeconfig({ url, caPem, token }: ApiAccess): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server: url, "certificate-authority-data": btoa(caPem) } }],
    users: [{ name: "me", user: { token } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "me" } }],
    "current-context": "test",
  });
}
