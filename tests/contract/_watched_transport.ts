// Shared by the contract tests of the probe that stop it or cut its connection.
import type { Command } from "../../src/routeros/console/command.ts";
import type { ExecEnd, SshConnection, SshTransport } from "../../src/routeros/ssh/transport.ts";
import { ConnectError } from "../../src/routeros/ssh/transport.ts";

/** A transport that runs a function of the test at one of the commands. */
export class WatchedTransport implements SshTransport {
  readonly target: string;
  /** The commands sent so far. */
  readonly commands: string[] = [];
  /** Whether every new connection is refused. */
  gone = false;
  readonly #inner: SshTransport;
  readonly #at: number;
  readonly #occurs: (transport: WatchedTransport) => void;
  readonly #connections = new Set<SshConnection>();

  constructor(inner: SshTransport, at = Infinity, occurs: (transport: WatchedTransport) => void = () => {}) {
    this.target = inner.target;
    this.#inner = inner;
    this.#at = at;
    this.#occurs = occurs;
  }

  /** How many commands were sent so far. */
  get sent(): number {
    return this.commands.length;
  }

  async connect(signal: AbortSignal): Promise<SshConnection> {
    if (this.gone) throw new ConnectError("it is gone", { lasting: true });
    const connection = await this.#inner.connect(signal);
    this.#connections.add(connection);
    return {
      closed: connection.closed,
      close: () => connection.close(),
      exec: (command, signal) => this.#exec(connection, command, signal),
    };
  }

  /** Breaks every connection. */
  drop(): void {
    for (const connection of this.#connections) connection.close();
    this.#connections.clear();
  }

  #exec(connection: SshConnection, command: Command, signal: AbortSignal): Promise<ExecEnd> {
    const isIt = this.commands.push(command.text) === this.#at;
    const end = connection.exec(command, signal);
    if (isIt) this.#occurs(this);
    return end;
  }
}
