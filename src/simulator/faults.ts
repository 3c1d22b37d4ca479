/** What can go wrong with an exec. */
export type FaultAction =
  /** The TCP connection drops before the command runs. */
  | "drop-before"
  /** It drops after the command ran, before any byte of the answer. */
  | "drop-after"
  /** The channel closes after the whole answer, but without an exit status. */
  | "close-no-status"
  /** The answer ends after `value` bytes, with an exit status as if it were whole. */
  | "truncate"
  /** A line comes before the answer: `value`, or one that a router might log. */
  | "noise"
  /** The command runs `value` milliseconds later. */
  | "delay"
  /** No answer ever comes, and the command never runs; with the value "after" it has run. */
  | "hang"
  /** The command does not run, and fails with the text `value`. */
  | "error"
  /** The exec request is refused; with a match that fits the empty text, the opening of the channel already is. */
  | "refuse-channel";

/** A fault, bound to the n-th command that matches. */
export interface Fault {
  /** Regular expression on the command. */
  readonly match: string;
  /** Counts from 1. */
  readonly nth: number;
  /** How many matching commands it strikes, from the n-th on. */
  readonly times: number;
  readonly action: FaultAction;
  readonly value: string | number | undefined;
}

/** A fault that waits, and how far it has come. */
export interface ArmedFault extends Fault {
  readonly seen: number;
  readonly struck: number;
}

/** Every action there is. */
export const faultActions: readonly FaultAction[] = [
  "drop-before",
  "drop-after",
  "close-no-status",
  "truncate",
  "noise",
  "delay",
  "hang",
  "error",
  "refuse-channel",
];

/** The faults that wait for their command. */
export class Faults {
  #armed: ArmedFault[] = [];

  arm(fault: Fault): void {
    this.#armed.push({ ...fault, seen: 0, struck: 0 });
  }

  list(): readonly ArmedFault[] {
    return this.#armed;
  }

  clear(): void {
    this.#armed = [];
  }

  /** The fault that strikes this command, if any. Every armed fault counts the command. */
  strike(command: string): Fault | undefined {
    return this.#strike((fault) => !opensChannel(fault) && new RegExp(fault.match, "s").test(command));
  }

  /** Whether the channel that is about to open is refused. What will run on it is not known yet. */
  refusesChannel(): boolean {
    return this.#strike(opensChannel) !== undefined;
  }

  #strike(concerns: (fault: Fault) => boolean): Fault | undefined {
    let striking: Fault | undefined;
    this.#armed = this.#armed.map((fault) => {
      if (!concerns(fault)) return fault;
      const seen = fault.seen + 1;
      const strikes = striking === undefined && seen >= fault.nth && fault.struck < fault.times;
      if (strikes) striking = fault;
      return { ...fault, seen, struck: fault.struck + (strikes ? 1 : 0) };
    });
    return striking;
  }
}

function opensChannel(fault: Fault): boolean {
  return fault.action === "refuse-channel" && new RegExp(fault.match, "s").test("");
}
