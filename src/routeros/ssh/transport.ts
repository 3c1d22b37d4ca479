import type { Command } from "../console/command.ts";

/** How one exec request ended. */
export type ExecEnd =
  /**
   * The router closed the channel in order, with an exit status or a signal. What it means is in the output alone: a
   * failed command exits with status 0 too. `errors` is what of the output came on stderr, at its end.
   */
  | {
    readonly state: "ended";
    readonly output: string;
    readonly exitStatus: number | undefined;
    readonly errors?: string;
  }
  /** The channel or the connection ended without a word. The command may have run, or not, or still run. */
  | { readonly state: "torn"; readonly output: string }
  /** The request was certainly never sent: sending it again is safe. */
  | { readonly state: "not-run"; readonly reason: string };

/** A connection that has been authenticated, to a router whose host key was checked. */
export interface SshConnection {
  /**
   * Sends one exec request on a channel of its own. Never rejects.
   *
   * An aborted `signal` closes the channel; the promise still resolves only when the channel is gone, so that whoever
   * counts channels counts right.
   */
  exec(command: Command, signal: AbortSignal): Promise<ExecEnd>;
  /** Resolves once, when the connection is gone, with the reason in words. Never rejects. */
  readonly closed: Promise<string>;
  /** Ends the connection at once; running execs end as torn. */
  close(): void;
}

/** Opens connections to one router. */
export interface SshTransport {
  /** What it connects to, for messages: `user@host:port`. */
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
  /** Whether trying again soon is pointless: a wrong key or password, another host key. */
  readonly lasting: boolean;

  constructor(message: string, options: { readonly lasting: boolean; readonly cause?: unknown }) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.lasting = options.lasting;
  }
}

/**
 * A transport that calls `open` for each connection, which reads the files of credentials and host keys anew: an
 * exchanged key needs no restart.
 *
 * It keeps nothing of what the files said before. What cannot be read now would not be used after a restart either, and a
 * host key that was taken out of the file must not be believed again. An open connection stays.
 */
export function freshTransport(target: string, open: () => Promise<SshTransport>): SshTransport {
  return {
    target,
    connect: async (signal) => await (await openInTime(open, signal)).connect(signal),
  };
}

/** A file on a share that hangs must not hold a connection attempt past its time. */
async function openInTime(open: () => Promise<SshTransport>, signal: AbortSignal): Promise<SshTransport> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(new Error("they were not read in time"));
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([open(), aborted]);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ConnectError(`its credentials cannot be used: ${reason}`, { lasting: true, cause });
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
