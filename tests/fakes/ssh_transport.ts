import type { Command } from "../../src/routeros/console/command.ts";
import type { ExecEnd, SshConnection, SshTransport } from "../../src/routeros/ssh/transport.ts";

/** The fake router's handler of a command; `signal` is aborted when the client gives up its channel. */
export type FakeRouter = (command: string, signal: AbortSignal) => ExecEnd | Promise<ExecEnd>;

/** An SSH transport without a network: a function answers each command. */
export class FakeSshTransport implements SshTransport {
  readonly target = "test@router:22";
  /** Every command that reached the router, in order. */
  readonly commands: string[] = [];
  /** The number of attempts to connect. */
  attempts = 0;
  /** Called for each attempt; throwing makes it fail. */
  onConnect: (attempt: number) => void | Promise<void> = () => {};
  /** Answers each command. */
  router: FakeRouter;
  readonly #connections: FakeConnection[] = [];

  constructor(router: FakeRouter = () => ended("")) {
    this.router = router;
  }

  async connect(): Promise<SshConnection> {
    await this.onConnect(++this.attempts);
    const connection = new FakeConnection(this);
    this.#connections.push(connection);
    return connection;
  }

  /** Breaks every connection: running commands end as torn. */
  drop(reason = "the connection was closed"): void {
    for (const connection of this.#connections.splice(0)) connection.end(reason);
  }
}

class FakeConnection implements SshConnection {
  readonly closed: Promise<string>;
  readonly #transport: FakeSshTransport;
  readonly #end: (reason: string) => void;
  #open = true;

  constructor(transport: FakeSshTransport) {
    this.#transport = transport;
    const { promise, resolve } = Promise.withResolvers<string>();
    this.closed = promise;
    this.#end = resolve;
  }

  async exec(command: Command, signal: AbortSignal): Promise<ExecEnd> {
    if (!this.#open) return { state: "not-run", reason: "No response from server" };
    this.#transport.commands.push(command.text);
    const broken = this.closed.then((): ExecEnd => torn());
    return await Promise.race([this.#transport.router(command.text, signal), broken]);
  }

  end(reason: string): void {
    this.#open = false;
    this.#end(reason);
  }

  close(): void {
    this.end("it was closed");
  }
}

/** A channel that ended properly. */
export function ended(output: string): ExecEnd {
  return { state: "ended", output, exitStatus: 0 };
}

/** A channel that ended without notice. */
export function torn(output = ""): ExecEnd {
  return { state: "torn", output };
}

/** A channel that was never opened. */
export function notRun(reason = "(SSH) Channel open failure: session limit"): ExecEnd {
  return { state: "not-run", reason };
}

const frameForm =
  /:put \("([0-9a-f]+)(\d) "\.\[:serialize to=json options=json\.no-string-conversion value=\[(.*?)\]\]\." \1"\)/g;
const sentinelForm = /:put "(([0-9a-f]+)0 - \2)"/;

/** The queries whose frames a command requests. */
export function queriesOf(command: string): string[] {
  return [...command.matchAll(frameForm)].map((match) => match[3]!);
}

/** The statements of a command before its frames. */
export function statementsOf(command: string): string {
  return command.split(/:put [("]/)[0]!.replace(/; $/, "");
}

/** A router's output for a command: a frame for each query, with CRLF, or the mark of its end. */
export function printFrames(command: string, json: (query: string, index: number) => string): string {
  const signed = sentinelForm.exec(command);
  if (signed !== null) return `${signed[1]}\r\n`;
  return [...command.matchAll(frameForm)]
    .map((match, index) => `${match[1]}${match[2]} ${json(match[3]!, index)} ${match[1]}\r\n`)
    .join("");
}

/** A router that answers every frame with the JSON from `json`. */
export function answering(json: (query: string, index: number) => string): FakeRouter {
  return (command) => ended(printFrames(command, json));
}
