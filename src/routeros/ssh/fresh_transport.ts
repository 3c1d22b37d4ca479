import { ConnectError, type SshConnection, type SshTransport } from "./transport.ts";

/** Options of {@linkcode FreshTransport}. */
export interface FreshTransportOptions {
  /** What it connects to, for messages. */
  readonly target: string;
  /** Makes the way to the router from what its files of credentials say just then. */
  readonly open: () => Promise<SshTransport>;
}

/**
 * Connects with credentials and host keys as their files are at that moment, so that a key which was exchanged needs no
 * restart.
 *
 * Nothing is kept of what the files said before. What cannot be read now would not be used after a restart either, and a
 * host key that somebody has taken out of the file must not be believed again. A connection that is open stays.
 */
export class FreshTransport implements SshTransport {
  readonly target: string;
  readonly #open: () => Promise<SshTransport>;

  constructor({ target, open }: FreshTransportOptions) {
    this.target = target;
    this.#open = open;
  }

  async connect(signal: AbortSignal): Promise<SshConnection> {
    const transport = await this.#opened(signal);
    return await transport.connect(signal);
  }

  /** A file on a share that hangs must not hold a connection attempt past its time. */
  async #opened(signal: AbortSignal): Promise<SshTransport> {
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    const onAbort = () => reject(new Error("they were not read in time"));
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      return await Promise.race([this.#open(), aborted]);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new ConnectError(`its credentials cannot be used: ${reason}`, { lasting: true, cause });
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }
}
