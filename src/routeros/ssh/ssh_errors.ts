import { ConnectError } from "./transport.ts";

/** What else is known about an attempt that failed. */
export interface Attempt {
  readonly target: string;
  /** Why the host key was refused, if it was. */
  readonly mismatch: string | undefined;
}

interface Known {
  readonly form: RegExp;
  readonly reason: string;
  readonly lasting?: boolean;
}

const known: readonly Known[] = [
  {
    form: /ECONNREFUSED/,
    reason:
      "the connection was refused (ECONNREFUSED): check the address and port, that /ip/service has ssh enabled " +
      "for this machine's address, and that this process was started with --allow-net for it: a missing permission looks the same",
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
 */
export function describeConnectFailure(error: unknown, attempt: Attempt): ConnectError {
  if (attempt.mismatch !== undefined) {
    return new ConnectError(attempt.mismatch, { lasting: true, cause: error });
  }
  const message = error instanceof Error ? `${codeOf(error)}${error.message}` : String(error);
  const match = known.find(({ form }) => form.test(message));
  const reason = match === undefined ? `the connection failed (${message})` : `${match.reason} (${message})`;
  return new ConnectError(reason, { lasting: match?.lasting ?? false, cause: error });
}

function codeOf(error: Error): string {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  return code === "" || error.message.includes(code) ? "" : `${code}: `;
}
