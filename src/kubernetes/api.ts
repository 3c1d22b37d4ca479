/** One request to the API server. */
export interface ApiCall {
  readonly method: "GET" | "POST" | "PUT" | "PATCH";
  /** Absolute, without a query. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON; with PATCH as a merge patch. */
  readonly body?: unknown;
  /** Ends the request. */
  readonly signal?: AbortSignal;
  /** How long it may take, in milliseconds. @default {10000} */
  readonly timeoutMs?: number;
}

/** The part of the API server that this driver uses. */
export interface KubernetesApi {
  /**
   * Sends a request and returns the object in the answer.
   *
   * @throws {ApiError} when there was no answer, or one that is no success
   */
  request<T>(call: ApiCall): Promise<T>;
}

/** A client of one cluster with a number of connections, for which its requests wait. */
export interface ConnectedApi extends KubernetesApi {
  /** A client of the same cluster with connections of its own, for which no request of this one is waited. */
  apart(connections: number): ConnectedApi;
  /** Closes the idle connections. */
  close(): void;
}

/** Why a request to the API server has failed. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** The HTTP status; 0 when there was no answer. */
  readonly status: number;
  /** In the server's words, such as `Conflict`; "" when it gives none. */
  readonly reason: string;
  /** How long the server asks clients to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(
    status: number,
    message: string,
    options: {
      readonly reason?: string;
      readonly retryAfterMs?: number | undefined;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.status = status;
    this.reason = options.reason ?? "";
    this.retryAfterMs = options.retryAfterMs;
  }

  /** Whether `error` is an answer with one of these statuses. */
  static is(error: unknown, ...statuses: readonly number[]): error is ApiError {
    return error instanceof ApiError && statuses.includes(error.status);
  }
}
