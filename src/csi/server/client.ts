import { Client, credentials, type ServiceError, status } from "@grpc/grpc-js";
import type { ControllerRpcs, IdentityRpcs, NodeRpcs } from "../generated/csi.ts";
import { guardClientSessions } from "./http2_guard.ts";
import type { CsiPackage, Definition, Messages, Sent } from "./proto.ts";
import type { Clock } from "../../volume/ports/system.ts";

/** Default time limit of a call, in milliseconds: as long as the sidecars of a cluster wait. */
export const callTimeoutMs = 60_000;

/** Calls the methods of one service, typed by its generated interface, by the names of the proto. */
export class ServiceClient<Service extends Messages<Service>> {
  readonly #connection: Connection;
  readonly #definition: Definition<Service>;
  readonly #clock: Clock;
  readonly #timeoutMs: number;

  constructor(
    connection: Connection,
    definition: Definition<Service>,
    clock: Clock,
    timeoutMs = callTimeoutMs,
  ) {
    this.#connection = connection;
    this.#definition = definition;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /** Makes one call; the promise fails with the gRPC `ServiceError`. */
  call<Name extends keyof Service & string>(
    name: Name,
    request: Sent<Service[Name]["request"]>,
    timeoutMs = this.#timeoutMs,
  ): Promise<Service[Name]["response"]> {
    const method = this.#definition[name];
    const options = { deadline: this.#clock.now() + timeoutMs };
    const { client } = this.#connection;
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        options,
        (error, response) => {
          if (error !== null && endsConnection(error)) this.#connection.leave(client);
          if (error !== null || response === undefined) {
            reject(error ?? new Error(`${name} ended without a response`));
          } else resolve(response);
        },
      );
    });
  }
}

/** Whether no later call can be trusted to the connection: see {@linkcode Connection}. */
function endsConnection({ code }: ServiceError): boolean {
  return code === status.DEADLINE_EXCEEDED || status[code] === undefined;
}

/**
 * A connection to a server, which is left for a new one when a call was given up on it.
 *
 * The server may be gone without a word. And node:http2 of Deno 2.7.11 takes what belongs to such a call for the answers
 * of later ones: they hung, were "cancelled", or ended with a code that is no number. That of 2.9.6 does not.
 */
export class Connection {
  readonly #target: string;
  /** Those before, for calls that still run on them. */
  readonly #left: Client[] = [];
  #client: Client;

  /** @param address such as `unix:///path` or `tcp://127.0.0.1:1234` */
  constructor(address: string) {
    this.#target = address.replace(/^tcp:\/\//, "").replace(/^unix:\/\//, "unix:");
    this.#client = this.#dial();
  }

  get client(): Client {
    return this.#client;
  }

  /** Makes later calls on a new connection. */
  leave(used: Client): void {
    if (used !== this.#client) return;
    this.#left.push(used);
    this.#client = this.#dial();
  }

  close(): void {
    for (const client of [...this.#left, this.#client]) client.close();
  }

  #dial(): Client {
    // Clients of one process would share the connection, the new one with the old one, too.
    return new Client(this.#target, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
  }
}

/** Clients of one endpoint. */
export interface CsiClients {
  readonly identity: ServiceClient<IdentityRpcs>;
  readonly controller: ServiceClient<ControllerRpcs>;
  readonly node: ServiceClient<NodeRpcs>;
  close(): void;
}

/** Dials an endpoint such as `unix:///path` or `tcp://127.0.0.1:1234`, for calls of so many milliseconds unless they say. */
export function dial(
  csi: CsiPackage,
  address: string,
  clock: Clock,
  timeoutMs = callTimeoutMs,
): CsiClients {
  guardClientSessions();
  const connection = new Connection(address);
  return {
    identity: new ServiceClient(connection, csi.Identity, clock, timeoutMs),
    controller: new ServiceClient(connection, csi.Controller, clock, timeoutMs),
    node: new ServiceClient(connection, csi.Node, clock, timeoutMs),
    close: () => connection.close(),
  };
}

/** The name of the gRPC code with which a call failed, such as FAILED_PRECONDITION; undefined for any other error. */
export function codeOf(error: unknown): string | undefined {
  const { code } = error as { readonly code?: unknown };
  return typeof code === "number" ? status[code] : undefined;
}
