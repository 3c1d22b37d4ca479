import { limitCall } from "../../async/deadline.ts";
import { SingleFlight } from "../../async/single_flight.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { HostIdentity } from "../../volume/model/host/identity.ts";
import type { CallContext, Clock } from "../../volume/ports/system.ts";
import type { discover } from "../discover.ts";
import type { PathAddress } from "./nvme_tool.ts";

/** How long a target may take to answer, in milliseconds: one that works takes a few. */
const answerMs = 3_000;
/** How long an answer counts, in milliseconds. */
const answerKeptMs = 2_000;
/** How long a silence counts, in milliseconds. */
const silenceKeptMs = 5_000;

/** What a target said when it was asked. */
export type Asked =
  | { readonly silent: true }
  /** `offered` are the NQNs that it offers to this node; undefined where it answered without a list. */
  | { readonly silent: false; readonly offered: readonly string[] | undefined };

/** The adapters of {@linkcode AskedTargets}. */
export interface AskingAdapters {
  readonly clock: Clock;
  readonly host: HostIdentity;
  readonly discover: typeof discover;
}

/**
 * Asks targets in this process whether they answer, before the kernel is let connect: a connect to a silent target holds
 * the one lock of all connects for a minute, and cannot be ended.
 *
 * Any end but silence counts as an answer, a refusal too: the kernel meets the same end as soon, and says why. Each
 * address is asked once at a time, for all volumes.
 */
export class AskedTargets {
  readonly #adapters: AskingAdapters;
  readonly #flights = new SingleFlight<Asked>();
  /** By address and port, of which there are as many as routers have. */
  readonly #known = new Map<string, { readonly asked: Asked; readonly untilMs: number }>();

  constructor(adapters: AskingAdapters) {
    this.#adapters = adapters;
  }

  /**
   * What the target said, a moment ago or now.
   *
   * @throws {VolumeError} deadline or cancelled when the call ends first
   */
  async ask(at: PathAddress, { requestId, signal }: CallContext): Promise<Asked> {
    const known = this.#known.get(keyOf(at));
    if (known !== undefined && this.#adapters.clock.monotonicMs() < known.untilMs) return known.asked;
    const ask = (own: AbortSignal) => this.#ask(at, { requestId, signal: own });
    return await this.#flights.runDuringCall(signal, ask, keyOf(at));
  }

  async #ask(at: PathAddress, context: CallContext): Promise<Asked> {
    const { clock } = this.#adapters;
    const asked = await this.#read(at, context);
    const keptMs = asked.silent ? silenceKeptMs : answerKeptMs;
    this.#known.set(keyOf(at), { asked, untilMs: clock.monotonicMs() + keptMs });
    return asked;
  }

  async #read(at: PathAddress, context: CallContext): Promise<Asked> {
    const { clock, host, discover } = this.#adapters;
    const late = new VolumeError("unavailable", "The target is silent");
    using limited = limitCall(clock, context, answerMs, late);
    try {
      const subsystems = await discover({ ...at, ...host }, limited.context, { clock });
      return { silent: false, offered: subsystems.map(({ nqn }) => nqn) };
    } catch (error) {
      context.signal.throwIfAborted();
      if (!VolumeError.is(error)) throw error;
      return error === late ? { silent: true } : { silent: false, offered: undefined };
    }
  }
}

function keyOf({ address, port }: PathAddress): string {
  return `${address} ${port}`;
}
