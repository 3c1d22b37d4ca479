// Every call that the controller serves, each in the situations that make it do different things at the router.
import { status } from "@grpc/grpc-js";
import type { CsiClients } from "../../src/csi/server/client.ts";
import type { StackOptions } from "../support/stack.ts";
import type { Strand } from "./faults.ts";
import type { Scene } from "./scene.ts";

/** One call, as often as a sidecar of Kubernetes would make it until it is answered OK. */
export interface Attempt {
  /**
   * Makes the call once. When it is answered OK, checks at that moment that the router is as the answer says, and notes
   * what Kubernetes was told.
   *
   * @throws the gRPC error when it is answered by one
   */
  readonly call: (clients: CsiClients, timeoutMs: number) => Promise<void>;
}

/** A call in one situation. */
export interface Rpc {
  readonly name: string;
  /** The router and the driver that it takes, where that is not the usual one. */
  readonly options?: StackOptions;
  /** Whether it takes a router of its own: what others left would make it another situation. */
  readonly alone?: boolean;
  /** Whether it takes a driver that knows nothing of the router. Those that are killed are told of a probe. */
  readonly unprobed?: boolean;
  readonly strands?: Strand;
  /** Codes that it may be answered with beside those of a router that cannot be asked. */
  readonly codes?: readonly (keyof typeof status)[];
  /** Brings the situation about, on a router that is well. */
  readonly prepare: (scene: Scene) => Promise<Attempt>;
  /**
   * Of the commands of a controller that remembers nothing of the volume whether each changes something.
   *
   * @default {as counted where it remembers}
   */
  readonly unremembered?: readonly boolean[];
}

/** How long calls may take while nothing goes wrong, in milliseconds. */
export const quietMs = 20_000;

/** For an answer that means "not yet": it is asked for again, as after an error. */
export function notYet(what: string): Error {
  return Object.assign(new Error(what), { code: status.UNAVAILABLE });
}

/** Makes a call that nothing gets in the way of. */
export async function made(scene: Scene, attempt: Attempt): Promise<void> {
  await attempt.call(scene.clients, quietMs);
}
