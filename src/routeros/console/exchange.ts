import { contextEnd } from "../../async/deadline.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext, Clock, Random } from "../../volume/ports/ports.ts";
import { backoffMs, type BackoffOptions } from "../ssh/backoff.ts";
import { command, fits, type Fragment, onlyIf } from "./command.ts";
import { explainRefusal } from "./refusal.ts";
import { framed, nonceBytes, parseReply, type Reply, sign } from "./reply.ts";
import type { Session } from "../ssh/session.ts";

/** What is to be read in one exec. */
export interface Question {
  /** What it is for, in a word, for logs and metrics. */
  readonly kind: string;
  /** Requests of one key wait for one another; keys take turns. */
  readonly key: string;
  /** What to print, one frame each; nothing prints a frame with nothing in it, as a sign of the end. */
  readonly queries: readonly Fragment[];
  readonly context: CallContext;
  /** Sends it only on this connection, numbered from 1. */
  readonly onlyOn?: number;
  /** Lets the router look at these first: unless all hold it does and prints nothing. */
  readonly conditions?: readonly Fragment[];
  /** For one that works for long, see `ExecRequest`. */
  readonly timeoutMs?: number;
  /** Called each time right before it is sent. */
  readonly onSent?: () => void;
}

/** A reply with every frame whole. */
export interface Answer {
  readonly frames: readonly string[];
  /** The connection it came on, numbered from 1. */
  readonly connection: number;
  /** `Clock.monotonicMs()` when it had come. */
  readonly receivedMs: number;
}

/** The router's refusal of a read, kind `unavailable`: it answered, and would answer the same again. */
export class ReadRefused extends VolumeError {
  constructor(message: string) {
    super("unavailable", message);
  }
}

/** How a mutation ended, as far as its own exec tells. */
export interface Told {
  /** The frames printed behind it, if all are whole: then every statement ran through. */
  readonly answer: Answer | undefined;
  /** What the router said, for people; undefined when it said nothing or the end is unknown. */
  readonly refusal: string | undefined;
}

/** What an {@linkcode Exchange} needs. */
export interface ExchangeOptions {
  readonly session: Session;
  readonly clock: Clock;
  readonly random: Random;
  /** Milliseconds for settling an unknown outcome when the call itself has no deadline. @default {60000} */
  readonly settleLimitMs?: number;
}

const readAttempts = 5;
const retryBackoff: BackoffOptions = { firstMs: 50, mostMs: 2000 };
const sampleNonce = "0".repeat(nonceBytes * 2);

/** Whether statements and the frames of these queries go into one exec. */
export function fitsOneExec(statements: readonly Fragment[], queries: readonly Fragment[]): boolean {
  return fits([...statements, ...framesOf(sampleNonce, queries)]);
}

function framesOf(nonce: string, queries: readonly Fragment[]): Fragment[] {
  return queries.length === 0 ? [sign(nonce)] : queries.map((query, index) => framed(nonce, index, query));
}

/**
 * Divides statements into execs, in order, each with room for a sign of its end. Mostly that is one. A statement that
 * does not fit even alone is left to fail when it is sent.
 */
export function divideIntoExecs(statements: readonly Fragment[]): Fragment[][] {
  const execs: Fragment[][] = [[]];
  for (const statement of statements) {
    const last = execs.at(-1)!;
    if (last.length === 0 || fitsOneExec([...last, statement], [])) last.push(statement);
    else execs.push([statement]);
  }
  return execs;
}

/** Asks and tells in frames: what it hands on was read whole, and what it sent was sent once. */
export class Exchange {
  readonly #session: Session;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #settleLimitMs: number;

  constructor(options: ExchangeOptions) {
    this.#session = options.session;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#settleLimitMs = options.settleLimitMs ?? 60_000;
  }

  /**
   * Reads; an answer that was lost or cut is asked for again, up to five times.
   *
   * @throws {ReadRefused} when the router refuses
   * @throws {VolumeError} unavailable when the router cannot be asked, or never answers whole
   */
  async ask(question: Question): Promise<Answer> {
    for (let attempt = 1;; attempt++) {
      const tried = await this.#try(question);
      if (typeof tried === "object") return tried;
      await this.#pauseOrFail(question, attempt, tried);
    }
  }

  /**
   * Reads like {@linkcode Exchange.ask}, but gives "cut" where the router ended the channel in order and yet a frame is
   * torn: its output has a limit.
   *
   * @throws {ReadRefused} when the router refuses
   * @throws {VolumeError} unavailable when the router cannot be asked, or never answers whole
   */
  async askOrCut(question: Question): Promise<Answer | "cut"> {
    for (let attempt = 1;; attempt++) {
      const tried = await this.#try(question);
      if (tried !== "lost") return tried;
      await this.#pauseOrFail(question, attempt, tried);
    }
  }

  /**
   * Sends statements that change something, once, with frames behind them. Whatever its end, it is never sent again.
   *
   * @throws {VolumeError} unavailable when it was certainly not sent
   * @throws {VolumeError} deadline or cancelled when the call ends first; what it did is then unknown
   */
  async tell(statements: readonly Fragment[], question: Question): Promise<Told> {
    const { run, reply, answer } = await this.#exec(statements, question);
    if (answer !== undefined) {
      return { answer, refusal: reply.text === "" ? undefined : explainRefusal(reply.text) };
    }
    const refused = run.ended && !reply.begun && reply.text !== "";
    return { answer: undefined, refusal: refused ? explainRefusal(reply.text) : undefined };
  }

  /**
   * Reads until it succeeds, as what was done before has to be known: as long as the call lasts, or a minute where it
   * has no deadline.
   *
   * @throws {VolumeError} unavailable when the router does not answer in that time
   */
  async settle<Result>(read: () => Promise<Result>, context: CallContext): Promise<Result> {
    const limitMs = context.deadlineMs === Infinity
      ? this.#clock.now() + this.#settleLimitMs
      : context.deadlineMs;
    for (let attempt = 1;; attempt++) {
      try {
        return await read();
      } catch (error) {
        if (!VolumeError.is(error, "unavailable") || this.#clock.now() >= limitMs) throw error;
      }
      await this.#pause(attempt, context);
    }
  }

  async #try(question: Question): Promise<Answer | "lost" | "cut"> {
    const { run, reply, answer } = await this.#exec([], question);
    if (answer !== undefined) return answer;
    if (!run.ended) return "lost";
    if (reply.begun) return "cut";
    if (reply.text === "") return "lost";
    throw new ReadRefused(
      `Cannot read from the router as it refused: ${explainRefusal(reply.text)}; ` +
        `router=${this.#session.target} what=${question.kind}`,
    );
  }

  async #exec(statements: readonly Fragment[], question: Question) {
    const nonce = this.#nonce();
    const frames = framesOf(nonce, question.queries);
    const all = [...statements, ...frames];
    const { conditions = [] } = question;
    const sent = conditions.length === 0 ? command(...all) : command(onlyIf(conditions, ...all));
    const run = await this.#session.run({ ...question, command: sent });
    const reply: Reply = parseReply(run.output, nonce, frames.length);
    const whole = reply.frames.filter((frame) => frame !== undefined);
    const answer: Answer | undefined = reply.complete
      ? { frames: whole, connection: run.connection, receivedMs: run.receivedMs }
      : undefined;
    return { run, reply, answer };
  }

  async #pauseOrFail(question: Question, attempt: number, state: "lost" | "cut"): Promise<void> {
    if (attempt < readAttempts) return await this.#pause(attempt, question.context);
    const reason = state === "cut" ? "its answer came cut" : "its answer was lost";
    throw new VolumeError(
      "unavailable",
      `Cannot read from the router as ${reason} ${attempt} times: router=${this.#session.target} what=${question.kind}`,
    );
  }

  async #pause(attempt: number, context: CallContext): Promise<void> {
    const ms = Math.min(
      backoffMs(attempt, this.#random, retryBackoff),
      context.deadlineMs - this.#clock.now(),
    );
    const over = () => contextEnd(context, this.#clock);
    try {
      await this.#clock.sleep(Math.max(0, ms), context.signal);
    } catch (error) {
      throw over() ?? error;
    }
    const end = over();
    if (end !== undefined) throw end;
  }

  #nonce(): string {
    return Array.from(this.#random.bytes(nonceBytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
  }
}
