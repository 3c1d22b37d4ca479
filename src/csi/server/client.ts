import { Client, credentials, type MethodDefinition, type ServiceDefinition, status } from "@grpc/grpc-js";
import type { ControllerDefinition } from "../generated/csi/v1/Controller.ts";
import type { IdentityDefinition } from "../generated/csi/v1/Identity.ts";
import type { NodeDefinition } from "../generated/csi/v1/Node.ts";
import { guardClientSessions } from "./http2_guard.ts";
import type { CsiPackage } from "./proto.ts";
import type { Clock } from "../../volume/ports/system.ts";

type RequestOf<Method> = Method extends { requestSerialize(value: infer Request): unknown } ? Request : never;
type ResponseOf<Method> = Method extends { responseDeserialize(bytes: never): infer Response } ? Response
  : never;

/** Longest a call may take unless said otherwise, in milliseconds: as long as the sidecars of a cluster wait. */
export const callTimeoutMs = 60_000;

/** Calls the methods of one CSI service by the names of the proto. */
export class ServiceClient<Definition extends ServiceDefinition> {
  readonly #client: Client;
  readonly #definition: Definition;
  readonly #clock: Clock;

  constructor(client: Client, definition: Definition, clock: Clock) {
    this.#client = client;
    this.#definition = definition;
    this.#clock = clock;
  }

  /** Makes one call; the promise fails with the gRPC `ServiceError`. */
  call<Name extends keyof Definition & string>(
    name: Name,
    request: RequestOf<Definition[Name]>,
    timeoutMs = callTimeoutMs,
  ): Promise<ResponseOf<Definition[Name]>> {
    const method = this.#definition[name] as unknown as MethodDefinition<
      RequestOf<Definition[Name]>,
      ResponseOf<Definition[Name]>
    >;
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
  readonly identity: ServiceClient<IdentityDefinition>;
  readonly controller: ServiceClient<ControllerDefinition>;
  readonly node: ServiceClient<NodeDefinition>;
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

/** The name of the gRPC code that a call failed with, as FAILED_PRECONDITION; undefined for any other error. */
export function codeOf(error: unknown): string | undefined {
  const { code } = error as { readonly code?: unknown };
  return typeof code === "number" ? status[code] : undefined;
}
