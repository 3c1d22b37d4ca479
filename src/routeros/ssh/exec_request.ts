import { endOf } from "../../async/waiting.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { Command } from "../console/command.ts";

/** One exec request of a caller. */
export interface ExecRequest {
  /** Its purpose in a word, for logs and metrics. */
  readonly kind: string;
  /** Requests of one key wait for one another; keys take turns. */
  readonly key: string;
  readonly command: Command;
  readonly context: CallContext;
  /**
   * Sends it only on this connection: its conclusions were read on that connection, and the router may have rebooted
   * since.
   */
  readonly onlyOn?: number;
  /**
   * Milliseconds after which a long request counts as unanswered: few of those run at a time, and their silence does
   * not count as a sign of the router's state. Without it the session's own limit.
   */
  readonly timeoutMs?: number;
  /** Called each time right before it is handed to a connection. */
  readonly onSent?: () => void;
}

/** The reply to an exec request that may have run. */
export interface ExecReply {
  readonly output: string;
  /** Whether the router closed the channel properly. If not, the output may be cut and the command may still run. */
  readonly ended: boolean;
  /** Whether its channel was closed here because the output was too long to be kept. */
  readonly isOverlong?: true;
  /** The connection it ran on: connections are numbered from 1. */
  readonly connection: number;
  /** `Clock.monotonicMs()` when it arrived. */
  readonly receivedMs: number;
}

/** A request on its way through a session. It is settled once, by an answer or by the end of its call. */
export class Pending {
  readonly request: ExecRequest;
  /** How often the router refused a channel for it. */
  refusals = 0;
  /** Set while it runs: closes its channel. */
  giveUp: (() => void) | undefined;
  /** `Clock.monotonicMs()` when it was last handed to a connection. */
  sentMs: number | undefined;
  #settled = false;
  readonly #outcome = Promise.withResolvers<ExecReply>();
  readonly #release: () => void;

  /**
   * @param onEnd called when the call ends first: the request is rejected already
   * @param causeOfDelay what it is waiting for when the call's time is up, as words that follow "and"
   */
  constructor(
    request: ExecRequest,
    onEnd: (pending: Pending) => void,
    causeOfDelay: (pending: Pending) => string,
  ) {
    this.request = request;
    const { signal } = request.context;
    const onAbort = () => {
      const error = endOf(signal)!;
      this.fail(error.kind === "deadline" ? lateBecause(causeOfDelay(this), error) : error);
      onEnd(this);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    this.#release = () => signal.removeEventListener("abort", onAbort);
  }

  /** Its outcome. */
  get promise(): Promise<ExecReply> {
    return this.#outcome.promise;
  }

  /** Whether it was answered or failed already. */
  get settled(): boolean {
    return this.#settled;
  }

  /** Resolves it, unless it was settled before. */
  answer(reply: ExecReply): void {
    this.#settle();
    this.#outcome.resolve(reply);
  }

  /** Rejects it, unless it was settled before. */
  fail(error: VolumeError): void {
    this.#settle();
    this.#outcome.reject(error);
  }

  #settle(): void {
    this.#settled = true;
    this.#release();
  }
}

function lateBecause(cause: string, error: VolumeError): VolumeError {
  return new VolumeError(
    "deadline",
    `Cannot wait any longer because the call's time is up and ${cause}; try again`,
    { cause: error },
  );
}
