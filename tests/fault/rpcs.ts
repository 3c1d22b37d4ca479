// Every call that the controller serves, in each situation that makes it act differently at the router.
import { status } from "@grpc/grpc-js";
import type { CsiClients } from "../../src/csi/server/client.ts";
import type { StackOptions } from "../support/stack.ts";
import type { Strand } from "./faults.ts";
import type { Scene } from "./scene.ts";

/** One call, repeated as a sidecar of Kubernetes repeats it until the answer is OK. */
export interface Attempt {
  /**
   * Makes the call once. When the answer is OK, checks at that moment that the router is as the answer says, and
   * records what Kubernetes was told.
   *
   * @throws the gRPC error of any other answer
   */
  readonly call: (clients: CsiClients, timeoutMs: number) => Promise<void>;
}

/** A call in one situation. */
export interface Rpc {
  readonly name: string;
  /** The router and the driver that the call needs, where they are not the usual ones. */
  readonly options?: StackOptions;
  /** Whether the call needs a router of its own: objects of earlier trials would change the situation. */
  readonly alone?: boolean;
  /** Whether the call needs a driver without a profile of the router. Drivers that are killed have one. */
  readonly unprobed?: boolean;
  readonly strands?: Strand;
  /** Codes that the call may return besides those of an unreachable router. */
  readonly codes?: readonly (keyof typeof status)[];
  /** Prepares the situation, on a router without faults. */
  readonly prepare: (scene: Scene) => Promise<Attempt>;
  /**
   * For each command of a controller that remembers nothing of the volume, whether the command changes something.
   *
   * @default {as counted where it remembers}
   */
  readonly unremembered?: readonly boolean[];
}

/** How long calls may take without a fault, in milliseconds. */
export const quietMs = 20_000;

/** An error for an answer that means "not yet": the call is repeated, as after any error. */
export function notYet(what: string): Error {
  return Object.assign(new Error(what), { code: status.UNAVAILABLE });
}

/** Makes a call without a fault. */
export async function made(scene: Scene, attempt: Attempt): Promise<void> {
  await attempt.call(scene.clients, quietMs);
}
