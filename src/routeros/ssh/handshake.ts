import type { Buffer } from "node:buffer";
import ssh2 from "ssh2";
import type { ConnectConfig, ServerHostKeyAlgorithm } from "ssh2";
import type { HostKey } from "./host_key.ts";
import { ConnectError } from "./transport.ts";

/**
 * What is offered: no chacha20-poly1305 and no group exchange, which the runtime's crypto cannot do, nothing on SHA-1.
 * Of the ciphers those come first that need no separate MAC.
 */
export const algorithms = {
  kex: [
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521",
    "diffie-hellman-group16-sha512",
    "diffie-hellman-group14-sha256",
  ],
  cipher: [
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
  ],
  hmac: ["hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com", "hmac-sha2-256", "hmac-sha2-512"],
  compress: ["none"],
} satisfies ConnectConfig["algorithms"];

const hostKeyAlgorithms: readonly ServerHostKeyAlgorithm[] = [
  "ssh-ed25519",
  "ecdsa-sha2-nistp256",
  "ecdsa-sha2-nistp384",
  "ecdsa-sha2-nistp521",
  "rsa-sha2-512",
  "rsa-sha2-256",
];

/**
 * Pinned types first, so that a router with several keys presents the pinned one; the others too, so that a mismatch
 * can be shown with both fingerprints.
 */
export function preferPinned(hostKeys: readonly HostKey[] | "insecure"): ServerHostKeyAlgorithm[] {
  if (hostKeys === "insecure") return [...hostKeyAlgorithms];
  const types = new Set(hostKeys.map((key) => key.type));
  const rank = (name: string) => types.has(name.startsWith("rsa-") ? "ssh-rsa" : name) ? 0 : 1;
  return hostKeyAlgorithms.toSorted((a, b) => rank(a) - rank(b));
}

/** Failures whose cause is known, and what to do about each. */
const known: readonly { readonly form: RegExp; readonly reason: string; readonly lasting?: boolean }[] = [
  {
    form: /ECONNREFUSED/,
    reason:
      "the connection was refused (ECONNREFUSED): check the address and the port, and that /ip/service has ssh enabled " +
      "for this machine's address. An executable that was built with ALLOW_NET refuses other addresses in the same way",
  },
  {
    form: /ENOTFOUND|EAI_AGAIN|failed to lookup/,
    reason: "its name cannot be resolved: check the address and the DNS of this machine",
  },
  {
    form: /EHOSTUNREACH|ENETUNREACH/,
    reason: "there is no route to it: check the address and the network between",
  },
  {
    form: /ETIMEDOUT|Timed out while waiting for handshake/,
    reason: "it did not answer in time: check the address, and that no firewall drops the connection",
  },
  {
    form: /authentication methods failed/,
    reason:
      "it refused the login: check the user name, the key under /user/ssh-keys (ed25519 or RSA) or the password, " +
      "and that the user's group has the ssh policy",
    lasting: true,
  },
  {
    form: /no matching|Handshake failed/i,
    reason:
      "no algorithm is common: set /ip/ssh/set strong-crypto=yes, and a host key of ed25519 or RSA-2048 or longer",
    lasting: true,
  },
  {
    form: /NotCapable|Requires net access/,
    reason: "this process may not reach it: start it with --allow-net for its address",
    lasting: true,
  },
  {
    form: /Connection lost before handshake|ECONNRESET|closed/,
    reason: "it closed the connection: it may be restarting",
  },
];

/**
 * Puts the failure of a connection attempt into words, with what to do where that is known. An unknown one is shown as
 * it is.
 *
 * @param mismatch why the host key was refused, if it was
 */
export function describeConnectFailure(error: unknown, mismatch?: string): ConnectError {
  if (mismatch !== undefined) return new ConnectError(mismatch, { lasting: true, cause: error });
  const message = error instanceof Error ? `${codeOf(error)}${error.message}` : String(error);
  const match = known.find(({ form }) => form.test(message));
  const reason = match === undefined ? `the connection failed (${message})` : `${match.reason} (${message})`;
  return new ConnectError(reason, { lasting: match?.lasting ?? false, cause: error });
}

function codeOf(error: Error): string {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  return code === "" || error.message.includes(code) ? "" : `${code}: `;
}

/** What an SSH server tells to whoever comes, before any secret is sent. */
export interface Handshake {
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
export interface HandshakeOptions {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  /** Keys to be presented rather than others, where the server has several. */
  readonly pins: readonly HostKey[];
  /** Milliseconds for the whole of it. */
  readonly timeoutMs: number;
}

/** Asks an SSH server for its host key and for its ways to log in, with no credentials. Never rejects. */
export function readHandshake(options: HandshakeOptions, signal: AbortSignal): Promise<Handshake> {
  const { host, port, user, pins, timeoutMs } = options;
  const client = new ssh2.Client();
  let hostKey: Uint8Array | undefined;
  let methods: readonly string[] | undefined;
  const { promise, resolve } = Promise.withResolvers<Handshake>();
  const end = ({ open = false, error }: { readonly open?: boolean; readonly error?: unknown }) => {
    const failure = open || methods !== undefined ? undefined : describeConnectFailure(error).message;
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
