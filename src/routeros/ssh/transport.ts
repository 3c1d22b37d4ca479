import { messageOf } from "../../volume/error_messages.ts";
import type { Command } from "../console/command.ts";

/** How one exec request ended. */
export type ExecEnd =
  /**
   * The router closed the channel properly, with an exit status or a signal. Only the output shows the result: a failed
   * command exits with status 0 too. `errors` is the part of the output that came on stderr, at its end.
   */
  | {
    readonly state: "ended";
    readonly output: string;
    readonly exitStatus: number | undefined;
    readonly errors?: string;
  }
  /**
   * The channel or the connection ended without notice. The command may have run, or not, or still run. `isOverlong`: it was
   * closed here, because its output was longer than what can be kept, and nothing of that is.
   */
  | { readonly state: "torn"; readonly output: string; readonly isOverlong?: true }
  /** The request was certainly never sent: sending it again is safe. */
  | { readonly state: "not-run"; readonly reason: string };

/** A connection that has been authenticated, to a router whose host key was checked. */
export interface SshConnection {
  /**
   * Sends one exec request on its own channel. Never rejects.
   *
   * An aborted `signal` closes the channel. The promise still resolves only when the channel is gone, so that the
   * caller's count of channels is right.
   */
  exec(command: Command, signal: AbortSignal): Promise<ExecEnd>;
  /** Resolves once, when the connection is gone, with the reason for people. Never rejects. */
  readonly closed: Promise<string>;
  /** Ends the connection at once; running execs end as torn. */
  close(): void;
}

/** Opens connections to one router. */
export interface SshTransport {
  /** The router's address, for messages: `user@host:port`. */
  readonly target: string;
  /**
   * Connects, checks the host key and authenticates.
   *
   * @throws {ConnectError} when that fails; aborting `signal` makes it fail soon
   */
  connect(signal: AbortSignal): Promise<SshConnection>;
}

/** Why a connection could not be opened. */
export class ConnectError extends Error {
  override readonly name = "ConnectError";
  /** Whether another attempt soon is pointless: a wrong key or password, another host key. */
  readonly lasting: boolean;

  constructor(message: string, options: { readonly lasting: boolean; readonly cause?: unknown }) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.lasting = options.lasting;
  }
}

/**
 * A transport that calls `open` for each connection, which reads the files of credentials and host keys again: an
 * exchanged key needs no restart.
 *
 * It keeps nothing of earlier reads. A file that cannot be read now could not be read after a restart either, and a
 * host key that was removed from the file must not be trusted any more. An open connection stays.
 */
export function freshTransport(target: string, open: () => Promise<SshTransport>): SshTransport {
  return {
    target,
    connect: async (signal) => await (await openInTime(open, signal)).connect(signal),
  };
}

/** A file on a hanging share must not keep a connection attempt beyond its time. */
async function openInTime(open: () => Promise<SshTransport>, signal: AbortSignal): Promise<SshTransport> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(new Error("they were not read in time"));
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([open(), aborted]);
  } catch (cause) {
    const reason = messageOf(cause);
    throw new ConnectError(`its credentials cannot be used: ${reason}`, { lasting: true, cause });
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
