import type { Buffer } from "node:buffer";
import ssh2 from "ssh2";
import type { ConnectConfig, ServerHostKeyAlgorithm } from "ssh2";
import type { HostKey } from "./host_key.ts";
import { ConnectError } from "./transport.ts";

/**
 * The offered algorithms: no chacha20-poly1305 and no group exchange, which the runtime's crypto lacks, and nothing on
 * SHA-1. Ciphers that need no separate MAC come first.
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
 * Pinned types first, so that a router with several keys presents the pinned one. The others follow, so that a mismatch
 * can show both fingerprints.
 */
export function preferPinned(hostKeys: readonly HostKey[] | "insecure"): ServerHostKeyAlgorithm[] {
  if (hostKeys === "insecure") return [...hostKeyAlgorithms];
  const types = new Set(hostKeys.map((key) => key.type));
  const rank = (name: string) => types.has(name.startsWith("rsa-") ? "ssh-rsa" : name) ? 0 : 1;
  return hostKeyAlgorithms.toSorted((a, b) => rank(a) - rank(b));
}

/** Failures with a known cause, and what to do about each. */
const known: readonly {
  readonly form: RegExp;
  readonly reason: string;
  readonly lasting?: boolean;
  /** Whether the library's words say more, such as which algorithm. */
  readonly hasDetail?: boolean;
}[] = [
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
      "that the user's group has the ssh policy, and that the user's address, if set, covers this machine (for a pod " +
      "without masquerading: the pod network)",
    lasting: true,
  },
  {
    form: /no matching|Handshake failed/i,
    reason:
      "no algorithm is common: set /ip/ssh/set strong-crypto=yes, and a host key of ed25519 or RSA-2048 or longer",
    lasting: true,
    hasDetail: true,
  },
  {
    form: /NotCapable|Requires net access/,
    reason: "this executable may not reach it, by the ALLOW_NET of its build",
    lasting: true,
  },
  {
    form: /Connection lost before handshake|ECONNRESET|closed/,
    reason:
      "it closed the connection: it may be restarting, or /ip/service limits ssh to addresses without this machine's",
  },
];

/**
 * Describes why a connection attempt failed, and what to do if that is known. An unknown error is shown unchanged.
 *
 * @param mismatch why the host key was refused, if it was
 */
export function describeConnectFailure(error: unknown, mismatch?: string): ConnectError {
  if (mismatch !== undefined) return new ConnectError(mismatch, { lasting: true, cause: error });
  const message = error instanceof Error ? `${codeOf(error)}${error.message}` : String(error);
  const match = known.find(({ form }) => form.test(message));
  const reason = match === undefined
    ? `the connection failed (${message})`
    : match.reason + (match.hasDetail ? ` (${message})` : "");
  return new ConnectError(reason, { lasting: match?.lasting ?? false, cause: error });
}

function codeOf(error: Error): string {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  return code === "" || error.message.includes(code) ? "" : `${code}: `;
}

/** What an SSH server reveals to any client, before any secret is sent. */
export interface Handshake {
  /** The host key it presented, in wire form; undefined when the handshake ended before that. */
  readonly hostKey: Uint8Array | undefined;
  /** Its login methods, such as `publickey`; undefined when the handshake ended before that. */
  readonly methods: readonly string[] | undefined;
  /** Whether it lets this user in without authentication. */
  readonly open: boolean;
  /** Why the handshake failed; undefined when it did not. */
  readonly failure: string | undefined;
}

/** The server of a handshake. */
export interface HandshakeOptions {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  /** Keys that the server should present rather than others, if it has several. */
  readonly pins: readonly HostKey[];
  /** Milliseconds for the whole handshake. */
  readonly timeoutMs: number;
}

/** Reads an SSH server's host key and its login methods, without credentials. Never rejects. */
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
    // No secret follows, so any key is accepted.
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
