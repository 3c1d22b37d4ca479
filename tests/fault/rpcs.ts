// Every call that the controller serves, in each situation in which it sends the router other commands.
import { status } from "@grpc/grpc-js";
import type { CsiClients } from "../../src/csi/server/client.ts";
import type { StackOptions } from "../support/stack.ts";
import type { Strand } from "./faults.ts";
import type { Scene } from "./scene.ts";

/** One call, repeated until it is answered OK, as a sidecar of Kubernetes repeats it. */
export interface Attempt {
  /**
   * Makes the call once. On OK, checks at that moment that the router is as the answer says, and records what
   * Kubernetes was told.
   *
   * @throws the gRPC error of the answer
   */
  readonly call: (clients: CsiClients, timeoutMs: number) => Promise<void>;
}

/** A call in one situation. */
export interface Rpc {
  readonly name: string;
  /** The options of router and driver, when they differ from the default. */
  readonly options?: StackOptions;
  /** Whether it needs a router of its own, because objects of earlier trials would change the situation. */
  readonly alone?: boolean;
  /** Whether it needs a driver without a probed profile. The drivers of the kill matrix have one. */
  readonly unprobed?: boolean;
  readonly strands?: Strand;
  /** Codes that it may return, in addition to those for an unreachable router. */
  readonly codes?: readonly (keyof typeof status)[];
  /** Sets up the situation, on a healthy router. */
  readonly prepare: (scene: Scene) => Promise<Attempt>;
  /**
   * For each command of a controller that remembers nothing of the volume, whether the command changes something.
   *
   * @default {as counted where it remembers}
   */
  readonly unremembered?: readonly boolean[];
}

/** How long calls without faults may take, in milliseconds. */
export const quietMs = 20_000;

/** Returns the error for an answer that means "not yet": the call is repeated, as after an error. */
export function notYet(what: string): Error {
  return Object.assign(new Error(what), { code: status.UNAVAILABLE });
}

/** Makes a call without faults. */
export async function made(scene: Scene, attempt: Attempt): Promise<void> {
  await attempt.call(scene.clients, quietMs);
}
