import { timeLeftMs } from "../../async/deadline.ts";
import { endOf } from "../../async/waiting.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext, Clock, Random } from "../../volume/ports/system.ts";
import { backoffMs, type BackoffOptions } from "../ssh/circuit_breaker.ts";
import type { ExecRequest } from "../ssh/exec_request.ts";
import type { Session } from "../ssh/session.ts";
import { command, fits, type Fragment, onlyIf } from "./command.ts";
import { explainRefusal, framed, newFrameNonce, parseReply, sampleNonce, sentinelOf } from "./reply.ts";

/** The queries of one exec, and how they are sent. */
export interface Question extends Omit<ExecRequest, "command"> {
  /** The queries to print, one frame each; an empty list prints an empty frame that marks the end. */
  readonly queries: readonly Fragment[];
  /** Conditions that the router checks first: unless all hold it does and prints nothing. */
  readonly conditions?: readonly Fragment[];
}

/** A reply in which every frame is complete. */
export interface Answer {
  readonly frames: readonly string[];
  /** The connection on which it came, numbered from 1. */
  readonly connection: number;
  /** `Clock.monotonicMs()` when it arrived. */
  readonly receivedMs: number;
}

/** The end of one exec, as far as its own output shows. */
export interface ExecOutcome {
  /** The requested frames, if all are complete: then every statement before them succeeded. */
  readonly answer: Answer | undefined;
  /** The router's message, for people; undefined when there is none or the end is unknown. */
  readonly refusal: string | undefined;
  /** Whether the router closed the channel properly and yet a frame is torn. */
  readonly cut: boolean;
  /** Whether the answer was too long to be kept: it would be as long again. */
  readonly isOverlong?: true;
}

/** The options of an {@linkcode Exchange}. */
export interface ExchangeOptions {
  readonly session: Session;
  readonly clock: Clock;
  readonly random: Random;
}

/** Milliseconds for resolving an unknown outcome when the call itself has no deadline. */
const settleLimitMs = 60_000;
const readAttempts = 5;
const retryBackoff: BackoffOptions = { firstMs: 50, maxMs: 2000 };

/** Whether statements and the frames of these queries fit into one exec. */
export function fitsOneExec(statements: readonly Fragment[], queries: readonly Fragment[]): boolean {
  return fits([...statements, ...framesOf(sampleNonce, queries)]);
}

function framesOf(nonce: string, queries: readonly Fragment[]): Fragment[] {
  return queries.length === 0
    ? [sentinelOf(nonce)]
    : queries.map((query, index) => framed(nonce, index, query));
}

/**
 * Divides statements into execs, in order, each with room for a mark of its end. Usually that is one. A statement that
 * does not fit even alone fails when it is sent.
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

/** Sends queries, and statements followed by frames. It returns only complete answers, and sends no statement twice. */
export class Exchange {
  readonly #session: Session;
  readonly #clock: Clock;
  readonly #random: Random;

  constructor(options: ExchangeOptions) {
    this.#session = options.session;
    this.#clock = options.clock;
    this.#random = options.random;
  }

  /**
   * Reads; it repeats a read whose answer was lost, up to five times. It also repeats one whose answer was cut although
   * the router closed the channel properly, unless `whenCut` says to return that as "cut", because the router limits
   * its output. An answer that is too long to be kept is "cut" as well, and is not asked for again.
   *
   * @throws {VolumeError} unavailable when the router refuses or cannot be asked, or its answer is too long or never
   *   complete
   */
  ask(question: Question): Promise<Answer>;
  ask(question: Question, whenCut: "return"): Promise<Answer | "cut">;
  async ask(question: Question, whenCut?: "return"): Promise<Answer | "cut"> {
    for (let attempt = 1;; attempt++) {
      const { answer, refusal, cut, isOverlong } = await this.exec([], question);
      if (answer !== undefined) return answer;
      if ((cut || isOverlong) && whenCut === "return") return "cut";
      const location = `router=${this.#session.target} what=${question.kind}`;
      if (isOverlong) {
        throw new VolumeError(
          "unavailable",
          `Cannot read from the router because its answer is too long: ${location}`,
        );
      }
      if (refusal !== undefined) {
        throw new VolumeError(
          "unavailable",
          `Cannot read from the router because it refused: ${refusal}; ${location}`,
        );
      }
      if (attempt === readAttempts) {
        const reason = cut ? "its answer was cut off" : "its answer was lost";
        throw new VolumeError(
          "unavailable",
          `Cannot read from the router because ${reason} ${attempt} times: ${location}`,
        );
      }
      await this.#pause(attempt, question.context);
    }
  }

  /**
   * Sends statements and queries in one exec, once. Whatever its end, it is never sent again.
   *
   * @throws {VolumeError} unavailable when it was certainly not sent
   * @throws {VolumeError} deadline, cancelled or the reason of the call's signal, which may be unavailable too, when the call
   *   ends first; its effect is then unknown
   */
  async exec(statements: readonly Fragment[], question: Question): Promise<ExecOutcome> {
    const nonce = newFrameNonce(this.#random);
    const frames = framesOf(nonce, question.queries);
    const all = [...statements, ...frames];
    const { conditions = [] } = question;
    const sent = conditions.length === 0 ? command(...all) : command(onlyIf(conditions, ...all));
    const run = await this.#session.run({ ...question, command: sent });
    const reply = parseReply(run.output, nonce, frames.length);
    const hasRefusal = reply.text !== "" && (reply.complete || (run.ended && !reply.begun));
    const whole = reply.frames.filter((frame) => frame !== undefined);
    return {
      answer: reply.complete
        ? { frames: whole, connection: run.connection, receivedMs: run.receivedMs }
        : undefined,
      refusal: hasRefusal ? explainRefusal(reply.text) : undefined,
      cut: run.ended && reply.begun && !reply.complete,
      ...run.isOverlong && { isOverlong: true },
    };
  }

  /**
   * Repeats a read until it succeeds, because the effect of an earlier command has to be known: until the call ends, or
   * for a minute where it has no deadline.
   *
   * @throws {VolumeError} unavailable when the router does not answer in that time
   */
  async settle<Result>(read: () => Promise<Result>, context: CallContext): Promise<Result> {
    const leftMs = timeLeftMs(context, this.#clock);
    const untilMs = this.#clock.now() + (leftMs === Infinity ? settleLimitMs : leftMs);
    for (let attempt = 1;; attempt++) {
      try {
        return await read();
      } catch (error) {
        if (!VolumeError.is(error, "unavailable") || this.#clock.now() >= untilMs) throw error;
      }
      await this.#pause(attempt, context);
    }
  }

  async #pause(attempt: number, context: CallContext): Promise<void> {
    try {
      await this.#clock.sleep(backoffMs(attempt, this.#random, retryBackoff), context.signal);
    } catch (error) {
      throw endOf(context.signal) ?? error;
    }
  }
}
