import { Buffer } from "node:buffer";
import {
  Agent as HttpAgent,
  type IncomingMessage,
  request as httpRequest,
  type RequestOptions,
} from "node:http";
import {
  Agent as HttpsAgent,
  request as httpsRequest,
  type RequestOptions as HttpsOptions,
} from "node:https";
import { describeFailure } from "../host/network.ts";
import { VolumeError } from "../volume/errors.ts";
import { messageAbout, messageOf } from "../volume/error_messages.ts";
import type { Clock } from "../volume/ports/system.ts";
import type { ClusterAccess } from "./access.ts";
import { type ApiCall, ApiError, type ConnectedApi } from "./api.ts";
import { podAccess, type PodAddress } from "./pod_access.ts";

/** The address of a cluster's API server, and this driver's identity there. */
export type ClusterAddress = { readonly kubeconfig: string } | PodAddress;

/** Default time limit of a request, in milliseconds. */
const defaultTimeoutMs = 10_000;

/** The longest answer that is read: a page of large objects has a few MiB. */
const maxAnswerBytes = 64 << 20;

/** The maximum number of concurrent requests; the others wait for a connection. */
export const maxConnections = 8;

/** A client of one cluster, which keeps its connections. */
export class KubernetesClient implements ConnectedApi {
  readonly #access: ClusterAccess;
  readonly #clock: Clock;
  readonly #connections: number;
  #agent: { readonly key: string; readonly agent: HttpAgent } | undefined;

  private constructor(access: ClusterAccess, clock: Clock, connections: number) {
    this.#access = access;
    this.#clock = clock;
    this.#connections = connections;
  }

  /**
   * Reads the cluster's address and credentials. It does not connect.
   *
   * @throws {VolumeError} invalid when the configuration cannot be read or names no cluster
   */
  static async open(address: ClusterAddress, clock: Clock): Promise<KubernetesClient> {
    try {
      return new KubernetesClient(await accessTo(address), clock, maxConnections);
    } catch (error) {
      const from = "kubeconfig" in address ? address.kubeconfig : address.folder;
      // The library and this driver's own reading trust the form of a file that a person writes.
      const reason = error instanceof TypeError
        ? "its content has not the form of a kubeconfig"
        : messageAbout(from, error);
      throw new VolumeError("invalid", `Cannot use the cluster's configuration: path=${from}: ${reason}`, {
        cause: error,
      });
    }
  }

  apart(connections: number): KubernetesClient {
    return new KubernetesClient(this.#access, this.#clock, connections);
  }

  /** The namespace of the configuration's context, or of the pod; "" when it has none. */
  get namespace(): string {
    return this.#access.namespace;
  }

  async request<T>(call: ApiCall): Promise<T> {
    const answer = await this.#send(call);
    if (answer.status >= 200 && answer.status < 300) return parseJson<T>(answer.body, call);
    throw refusalOf(answer, call);
  }

  close(): void {
    this.#agent?.agent.destroy();
    this.#agent = undefined;
  }

  async #send(call: ApiCall): Promise<Answer> {
    const over = new AbortController();
    const limitMs = call.timeoutMs ?? defaultTimeoutMs;
    const cancel = this.#clock.timer(
      limitMs,
      () => over.abort(new Error(`no answer within ${limitMs / 1000} s`)),
    );
    const signal = call.signal === undefined ? over.signal : AbortSignal.any([call.signal, over.signal]);
    try {
      signal.throwIfAborted();
      const { options, body } = await this.#options(call);
      return await exchange(this.#access.server.protocol === "https:", options, body, signal);
    } catch (error) {
      const cause = signal.aborted ? signal.reason : error;
      const reason = cause instanceof Error ? describeFailure(cause) : messageOf(cause);
      throw new ApiError(0, `Cannot reach the API server because ${reason}: ${call.method} ${call.path}`, {
        cause,
      });
    } finally {
      cancel();
    }
  }

  async #options(call: ApiCall): Promise<{ options: HttpsOptions; body: string | undefined }> {
    const options: HttpsOptions = { headers: {} };
    const { server } = this.#access;
    await this.#access.apply(options);
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    const headers = {
      ...options.headers as Record<string, string>,
      accept: "application/json",
      "user-agent": "rds-csi",
      ...(body === undefined ? {} : {
        "content-type": call.method === "PATCH" ? "application/merge-patch+json" : "application/json",
        "content-length": String(new TextEncoder().encode(body).length),
      }),
    };
    const query = new URLSearchParams(call.query).toString();
    const base = server.pathname.replace(/\/$/, "");
    return {
      body,
      options: {
        ...options,
        agent: this.#agentFor(options),
        headers,
        method: call.method,
        // A URL has brackets around an IPv6 address, which a connection must not have.
        hostname: server.hostname.replace(/^\[|\]$/g, ""),
        port: server.port || (server.protocol === "https:" ? "443" : "80"),
        path: `${base}${call.path}${query === "" ? "" : `?${query}`}`,
      },
    };
  }

  /** The library makes an agent for every request, which keeps no connection; one for a proxy is used unchanged. */
  #agentFor(options: HttpsOptions): RequestOptions["agent"] {
    if (this.#access.hasProxy) return options.agent;
    const { ca, cert, key, rejectUnauthorized, servername } = options;
    const identity = [ca, cert, key, rejectUnauthorized, servername].map(String).join("\n");
    if (this.#agent?.key === identity) return this.#agent.agent;
    this.#agent?.agent.destroy();
    const common = { keepAlive: true, maxSockets: this.#connections };
    const agent = this.#access.server.protocol === "https:"
      ? new HttpsAgent({ ...common, ...defined({ ca, cert, key, rejectUnauthorized, servername }) })
      : new HttpAgent(common);
    this.#agent = { key: identity, agent };
    return agent;
  }
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: string;
}

/** The library is loaded only for a file of its own form. */
async function accessTo(address: ClusterAddress): Promise<ClusterAccess> {
  if (!("kubeconfig" in address)) return podAccess(address);
  return (await import("./kubeconfig_access.ts")).kubeconfigAccess(address.kubeconfig);
}

function exchange(
  secure: boolean,
  options: HttpsOptions,
  body: string | undefined,
  signal: AbortSignal,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const send = secure ? httpsRequest : httpRequest;
    // A request that is over must not be destroyed: Deno 2.7 then throws, and does not report that it has closed.
    const settled = () => signal.removeEventListener("abort", onAbort);
    const fail = (error: unknown) => {
      settled();
      reject(error);
    };
    const request = send(options, (response) => {
      readAll(response).then((body) => {
        settled();
        resolve({ status: response.statusCode ?? 0, retryAfter: response.headers["retry-after"], body });
      }, fail);
    });
    const onAbort = () => {
      reject(signal.reason);
      request.destroy();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    request.on("error", fail);
    request.end(body);
  });
}

async function readAll(response: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += chunk.length;
    if (bytes > maxAnswerBytes) throw new Error(`the answer is longer than ${maxAnswerBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf-8");
}

function parseJson<T>(text: string, call: ApiCall): T {
  try {
    return JSON.parse(text) as T;
  } catch (error) {
    throw new ApiError(0, `Cannot read the API server's answer: ${call.method} ${call.path}`, {
      cause: error,
    });
  }
}

/** The server's own message from a Status; otherwise the beginning of its answer. */
function refusalOf({ status, retryAfter, body }: Answer, call: ApiCall): ApiError {
  const reported = reportedIn(body);
  const seconds = /^[0-9]{1,5}$/.test(retryAfter ?? "") ? Number(retryAfter) : undefined;
  return new ApiError(
    status,
    `The API server answered ${status} to ${call.method} ${call.path}: ${reported.message}`,
    {
      reason: reported.reason,
      retryAfterMs: seconds === undefined ? undefined : seconds * 1000,
    },
  );
}

function reportedIn(body: string): { message: string; reason: string } {
  try {
    const { message, reason } = JSON.parse(body) as { message?: unknown; reason?: unknown };
    return { message: String(message ?? "").slice(0, 300), reason: String(reason ?? "") };
  } catch {
    // A proxy in between answers in another format.
    return { message: body.slice(0, 300), reason: "" };
  }
}

function defined<T extends object>(options: T): Partial<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Partial<T>;
}
