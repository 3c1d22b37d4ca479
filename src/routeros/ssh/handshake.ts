import type { Buffer } from "node:buffer";
import ssh2 from "ssh2";
import type { HostKey } from "./host_key.ts";
import { describeConnectFailure } from "./ssh_errors.ts";
import { algorithms, preferPinned } from "./ssh_transport.ts";

/** What an SSH server tells to whoever comes, before any secret is sent. */
export interface Greeting {
  /** The host key it presented, in wire form; undefined when it never came so far. */
  readonly hostKey: Uint8Array | undefined;
  /** How it lets people in, such as `publickey`; undefined when it never came so far. */
  readonly methods: readonly string[] | undefined;
  /** Whether it lets this user in without any proof. */
  readonly open: boolean;
  /** Why it went no further; undefined when it went as far as it should. */
  readonly failure: string | undefined;
}

/** Whom to greet. */
export interface GreetingOptions {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  /** Keys to be presented rather than others, where the server has several. */
  readonly pins: readonly HostKey[];
  /** Milliseconds for the whole of it. */
  readonly timeoutMs: number;
}

/** Asks an SSH server for its host key and for its ways to log in, with no credentials. Never rejects. */
export function askGreeting(options: GreetingOptions, signal: AbortSignal): Promise<Greeting> {
  const { host, port, user, pins, timeoutMs } = options;
  const client = new ssh2.Client();
  let hostKey: Uint8Array | undefined;
  let methods: readonly string[] | undefined;
  const { promise, resolve } = Promise.withResolvers<Greeting>();
  const end = (how: { readonly open?: boolean; readonly error?: unknown }) => {
    const { open = false, error } = how;
    const failure = open || methods !== undefined
      ? undefined
      : describeConnectFailure(error, { target: `${user}@${host}:${port}`, mismatch: undefined }).message;
    resolve({ hostKey, methods, open, failure });
    client.destroy();
  };
  const onAbort = () => end({ error: new Error("aborted") });
  client.on("ready", () => end({ open: true }));
  client.on("error", (error) => end({ error }));
  client.on("close", () => end({ error: new Error("the connection was closed") }));
  signal.addEventListener("abort", onAbort, { once: true });
  client.connect({
    host,
    port,
    username: user,
    readyTimeout: timeoutMs,
    algorithms: {
      ...algorithms,
      serverHostKey: preferPinned(pins.length === 0 ? "insecure" : pins),
    },
    // Nothing secret follows, so any key may be looked at.
    hostVerifier: (presented: Buffer) => {
      hostKey = new Uint8Array(presented);
      return true;
    },
    authHandler: (left, _partial, next) => {
      if (left === null) return next({ type: "none", username: user });
      methods = [...left];
      end({});
    },
  });
  if (signal.aborted) onAbort();
  return promise.finally(() => signal.removeEventListener("abort", onAbort));
}
