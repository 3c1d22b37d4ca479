import { limitSignal } from "../../async/deadline.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { Clock, Random } from "../../volume/ports/system.ts";
import { type Command, command, type Fragment } from "../../routeros/console/command.ts";
import { explainRefusal, framed, newFrameNonce, parseReply } from "../../routeros/console/reply.ts";
import {
  ConnectError,
  type ExecEnd,
  type SshConnection,
  type SshTransport,
} from "../../routeros/ssh/transport.ts";

/** What an exec printed, to the byte. */
export interface Printed {
  readonly stdout: string;
  readonly stderr: string;
}

/** What became of statements with frames behind them. */
export interface Ran {
  /** Whether every statement ran through. */
  readonly done: boolean;
  /** The frames; none unless all of them are whole. */
  readonly frames: readonly string[];
  /** What the router said beside, for people: a refusal, or noise. */
  readonly texts: string;
}

/** A channel or a connection ended without a word: whether the command ran is not known. */
export class LostAnswer extends VolumeError {
  constructor(target: string, reason: string) {
    super("unavailable", `Cannot know what the router did because ${reason}: router=${target}`);
  }
}

/** The router does not let anybody in any more. */
export class RouterGone extends VolumeError {
  constructor(target: string, reason: string) {
    super("unavailable", `Cannot connect to the router because ${reason}: router=${target}`);
  }
}

/** What a {@linkcode Line} needs. */
export interface ProbeSessionOptions {
  readonly transport: SshTransport;
  readonly clock: Clock;
  readonly random: Random;
  /** Aborted when no further command is to be sent. */
  readonly signal: AbortSignal;
  readonly limits?: ProbeSessionLimits;
}

/** How long a {@linkcode Line} waits, in milliseconds. */
export interface ProbeSessionLimits {
  /** Until a command counts as unanswered. */
  readonly commandMs: number;
  /** For connecting. */
  readonly connectMs: number;
  /** For the command that runs when no further one is to be sent. */
  readonly lastCommandMs: number;
}

const defaultLimits: ProbeSessionLimits = { commandMs: 60_000, connectMs: 15_000, lastCommandMs: 10_000 };
const connectAttempts = 3;
const channelAttempts = 5;
const pauseMs = 1000;

/**
 * One SSH connection, one command at a time, to the byte: for what a client that has to be right hides on purpose. It
 * connects again when it was lost. Nothing is ever sent twice.
 */
export class ProbeSession {
  readonly #options: ProbeSessionOptions;
  readonly #limits: ProbeSessionLimits;
  #connection: SshConnection | undefined;
  #lost = 0;

  constructor(options: ProbeSessionOptions) {
    this.#options = options;
    this.#limits = options.limits ?? defaultLimits;
  }

  /** How many commands have ended without a word: they may run late. */
  get lost(): number {
    return this.#lost;
  }

  /**
   * Connects, unless it is connected.
   *
   * @throws {RouterGone} when that fails
   * @throws {VolumeError} cancelled when no further command is to be sent
   */
  async connect(): Promise<SshConnection> {
    this.#options.signal.throwIfAborted();
    this.#connection ??= await this.#dial();
    return this.#connection;
  }

  /** Ends the connection. */
  close(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }

  /**
   * Sends a command as it is.
   *
   * @throws {LostAnswer} when its end is not known
   * @throws {VolumeError} unavailable when it cannot be sent; cancelled when no further command is to be sent
   */
  async exec(command: Command): Promise<Printed> {
    for (let attempt = 1;; attempt++) {
      const end = await this.#send(await this.connect(), command);
      if (end.state === "ended") return printedOf(end);
      if (end.state === "torn") {
        this.#lost++;
        throw new LostAnswer(this.#options.transport.target, "the answer was lost");
      }
      if (attempt === channelAttempts) throw this.#unavailable(`it gives no channel (${end.reason})`);
      await this.#options.clock.sleep(pauseMs, this.#options.signal);
    }
  }

  /**
   * Runs statements and reads queries in frames behind them.
   *
   * @throws {LostAnswer} when its end is not known
   * @throws {VolumeError} unavailable when a frame came cut, though the statements ran; or when it cannot be sent
   */
  async run(statements: readonly Fragment[], queries: readonly Fragment[]): Promise<Ran> {
    const nonce = newFrameNonce(this.#options.random);
    const frames = queries.map((query, index) => framed(nonce, index, query));
    const { stdout, stderr } = await this.exec(command(...statements, ...frames));
    const reply = parseReply(`${stdout}\n${stderr}`, nonce, frames.length);
    const text = reply.text === "" ? "" : explainRefusal(reply.text);
    if (reply.complete) return { done: true, frames: reply.frames.map((frame) => frame ?? ""), texts: text };
    if (reply.begun) throw this.#unavailable("its answer was cut off");
    return { done: false, frames: [], texts: text || "it gave no message" };
  }

  /**
   * Reads the result of one query.
   *
   * @throws {VolumeError} unavailable when the router refuses or cannot be asked
   */
  async read(query: Fragment): Promise<string> {
    const { done, frames, texts } = await this.run([], [query]);
    if (done) return frames[0]!;
    throw new VolumeError("unavailable", `Cannot read from the router because it refused: ${texts}`);
  }

  /** Gives the channel up after a while, and with it the connection: nothing may go on behind. */
  async #send(connection: SshConnection, command: Command): Promise<ExecEnd> {
    const { clock, signal } = this.#options;
    const { commandMs, lastCommandMs } = this.#limits;
    const giveUp = () => connection.close();
    let cancelLast = () => {};
    const onAbort = () => {
      cancelLast = clock.timer(lastCommandMs, giveUp);
    };
    const cancelTimeout = clock.timer(commandMs, giveUp);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await connection.exec(command, new AbortController().signal);
    } finally {
      cancelTimeout();
      cancelLast();
      signal.removeEventListener("abort", onAbort);
    }
  }

  async #dial(): Promise<SshConnection> {
    for (let attempt = 1;; attempt++) {
      try {
        return await this.#dialOnce();
      } catch (error) {
        this.#options.signal.throwIfAborted();
        if (!(error instanceof ConnectError)) throw error;
        if (error.lasting || attempt === connectAttempts) {
          throw new RouterGone(this.#options.transport.target, error.message);
        }
      }
      await this.#options.clock.sleep(pauseMs, this.#options.signal);
    }
  }

  async #dialOnce(): Promise<SshConnection> {
    const { transport, clock, signal } = this.#options;
    using limited = limitSignal(clock, signal, this.#limits.connectMs);
    const connection = await transport.connect(limited.signal);
    void connection.closed.then(() => {
      if (this.#connection === connection) this.#connection = undefined;
    });
    return connection;
  }

  #unavailable(reason: string): VolumeError {
    const { target } = this.#options.transport;
    return new VolumeError("unavailable", `Cannot ask the router because ${reason}: router=${target}`);
  }
}

function printedOf({ output, errors = "" }: ExecEnd & { readonly state: "ended" }): Printed {
  const stdout = errors === "" ? output : output.slice(0, -errors.length - 1);
  return { stdout, stderr: errors };
}
