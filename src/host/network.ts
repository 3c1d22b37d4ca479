import { lookup } from "node:dns/promises";
import { connect } from "node:net";
import type { Clock } from "../volume/ports/system.ts";

/** The result of an attempt to open a TCP connection. */
export type Reach =
  | { readonly state: "open"; readonly ms: number }
  /** The host answers, and nothing listens there. */
  | { readonly state: "refused"; readonly reason: string }
  /** No answer at all. */
  | { readonly state: "silent"; readonly reason: string }
  | { readonly state: "failed"; readonly reason: string };

/** The network as this machine sees it. */
export interface Network {
  /**
   * The addresses of a name; an address itself.
   *
   * @throws {Error} when it has none
   */
  resolve(name: string): Promise<readonly string[]>;
  /** Opens a TCP connection and closes it again. Never rejects. */
  reach(address: string, port: number, timeoutMs: number): Promise<Reach>;
}

/** The machine's network. */
export function systemNetwork(clock: Clock): Network {
  return {
    resolve: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
    reach: (address, port, timeoutMs) => reach(clock, address, port, timeoutMs),
  };
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
    socket.once("connect", () => end({ state: "open", ms: clock.monotonicMs() - startedMs }));
    // The listener stays: another error may follow the first, and would be unhandled.
    socket.on(
      "error",
      (error: Error & { code?: string }) => end({ state: stateOf(error.code), reason: error.message }),
    );
  });
}

function stateOf(code: string | undefined): "refused" | "silent" | "failed" {
  if (code === "ECONNREFUSED") return "refused";
  return code === "ETIMEDOUT" ? "silent" : "failed";
}
