import { lookup } from "node:dns/promises";
import { connect } from "node:net";
import { messageOf } from "../volume/error_messages.ts";
import type { Clock } from "../volume/ports/system.ts";

/** The result of an attempt to open a TCP connection. */
export type Reach =
  | {
    readonly state: "open";
    readonly ms: number;
    /** This machine's own address of the connection; undefined when the system does not say. */
    readonly from?: string | undefined;
  }
  /** The host answers, and nothing listens there. */
  | { readonly state: "refused"; readonly reason: string }
  /** No answer at all. */
  | { readonly state: "silent"; readonly reason: string }
  /** The name has no address. */
  | { readonly state: "unresolved"; readonly reason: string }
  | { readonly state: "failed"; readonly reason: string };

/** The network as this machine sees it. */
export interface Network {
  /**
   * The addresses of a name; an address itself.
   *
   * @throws {Error} when it has none, with the reason in words
   */
  resolve(name: string): Promise<readonly string[]>;
  /** Opens a TCP connection and closes it again. Never rejects. */
  reach(address: string, port: number, timeoutMs: number): Promise<Reach>;
}

/** The machine's network. */
export function systemNetwork(clock: Clock): Network {
  return {
    resolve,
    reach: (address, port, timeoutMs) => reach(clock, address, port, timeoutMs),
  };
}

async function resolve(name: string): Promise<readonly string[]> {
  try {
    return (await lookup(name, { all: true })).map(({ address }) => address);
  } catch (error) {
    throw error instanceof Error ? new Error(describeFailure(error), { cause: error }) : error;
  }
}

function reach(clock: Clock, host: string, port: number, timeoutMs: number): Promise<Reach> {
  return new Promise((resolve) => {
    const startedMs = clock.monotonicMs();
    const socket = connect({ host, port });
    const end = (reach: Reach) => {
      cancel();
      socket.destroy();
      resolve(reach);
    };
    const silence: Reach = { state: "silent", reason: `no answer within ${timeoutMs / 1000} s` };
    const cancel = clock.timer(timeoutMs, () => end(silence));
    socket.once(
      "connect",
      () => end({ state: "open", ms: clock.monotonicMs() - startedMs, from: socket.localAddress }),
    );
    // The listener stays: another error may follow the first, and would be unhandled.
    socket.on(
      "error",
      (error: Error & { code?: string }) =>
        end({ state: stateOf(error.code), reason: describeFailure(error) }),
    );
  });
}

function stateOf(code: string | undefined): "refused" | "silent" | "unresolved" | "failed" {
  if (code === "ECONNREFUSED") return "refused";
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "unresolved";
  return code === "ETIMEDOUT" ? "silent" : "failed";
}

const failures: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the connection was cut off",
  ENOTFOUND: "the DNS of this machine does not know it",
  EAI_AGAIN: "the DNS of this machine does not answer",
  ETIMEDOUT: "no answer",
  EHOSTUNREACH: "there is no route to it",
  ENETUNREACH: "there is no route to it",
  EINVAL: "this machine cannot use the address",
};

/** Why a name or an address cannot be used, in words; of an unknown error its message. */
export function describeFailure(error: Error & { readonly code?: string }): string {
  return failures[error.code ?? ""] ?? messageOf(error);
}
