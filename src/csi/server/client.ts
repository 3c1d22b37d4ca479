import { Client, credentials, status } from "@grpc/grpc-js";
import type { ControllerRpcs, IdentityRpcs, NodeRpcs } from "../generated/csi.ts";
import { guardClientSessions } from "./http2_guard.ts";
import type { CsiPackage, Definition, Messages, Sent } from "./proto.ts";
import type { Clock } from "../../volume/ports/system.ts";

/** Default time limit of a call, in milliseconds: as long as the sidecars of a cluster wait. */
export const callTimeoutMs = 60_000;

/** Calls the methods of one service, typed by its generated interface, by the names of the proto. */
export class ServiceClient<Service extends Messages<Service>> {
  readonly #client: Client;
  readonly #definition: Definition<Service>;
  readonly #clock: Clock;

  constructor(client: Client, definition: Definition<Service>, clock: Clock) {
    this.#client = client;
    this.#definition = definition;
    this.#clock = clock;
  }

  /** Makes one call; the promise fails with the gRPC `ServiceError`. */
  call<Name extends keyof Service & string>(
    name: Name,
    request: Sent<Service[Name]["request"]>,
    timeoutMs = callTimeoutMs,
  ): Promise<Service[Name]["response"]> {
    const method = this.#definition[name];
    const options = { deadline: this.#clock.now() + timeoutMs };
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        options,
        (error, response) => {
          if (error !== null || response === undefined) {
            reject(error ?? new Error(`${name} ended without a response`));
          } else resolve(response);
        },
      );
    });
  }
}

/** Clients of one endpoint. */
export interface CsiClients {
  readonly identity: ServiceClient<IdentityRpcs>;
  readonly controller: ServiceClient<ControllerRpcs>;
  readonly node: ServiceClient<NodeRpcs>;
  close(): void;
}

/** Dials an endpoint such as `unix:///path` or `tcp://127.0.0.1:1234`. */
export function dial(csi: CsiPackage, address: string, clock: Clock): CsiClients {
  guardClientSessions();
  const target = address.replace(/^tcp:\/\//, "").replace(/^unix:\/\//, "unix:");
  const client = new Client(target, credentials.createInsecure());
  return {
    identity: new ServiceClient(client, csi.Identity.service, clock),
    controller: new ServiceClient(client, csi.Controller.service, clock),
    node: new ServiceClient(client, csi.Node.service, clock),
    close: () => client.close(),
  };
}

/** The name of the gRPC code with which a call failed, such as FAILED_PRECONDITION; undefined for any other error. */
export function codeOf(error: unknown): string | undefined {
  const { code } = error as { readonly code?: unknown };
  return typeof code === "number" ? status[code] : undefined;
}
