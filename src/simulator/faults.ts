/** The kinds of a fault's value. */
export type FaultValue = "none" | "count" | "text" | "cut" | "moment";

interface FaultKind {
  readonly value: FaultValue;
  /** A sentence for people. */
  readonly what: string;
}

/** The faults of a command, or of a login. */
export const faultKinds = {
  "drop-before": { value: "none", what: "The TCP connection drops before the command runs." },
  "drop-after": { value: "none", what: "It drops after the command ran, before any byte of the answer." },
  "close-no-status": { value: "none", what: "The answer is whole, but no exit status comes." },
  "truncate": {
    value: "cut",
    what: "The answer ends after so many bytes, or with `sentinel` behind its last `]`, as if it were whole.",
  },
  "noise": { value: "text", what: "A line comes before the answer: the value, or one that a router logs." },
  "delay": { value: "count", what: "The command runs so many milliseconds later." },
  "drip": { value: "count", what: "The answer comes byte by byte, so many milliseconds apart." },
  "hang": {
    value: "moment",
    what: "No answer ever comes; the command does not run, or with `after` it has run.",
  },
  "error": { value: "text", what: "The command does not run, and fails with this text." },
  "error-late": { value: "text", what: "The command fails with this text at once, and runs a second later." },
  "refuse-channel": {
    value: "none",
    what: "The exec request is refused; with a match that fits the empty text, the opening of the channel.",
  },
  "refuse-login": { value: "none", what: "A login is refused; the match is on the user's name." },
  "run-before": { value: "text", what: "Another session runs this command just before." },
  "run-after": { value: "text", what: "Another session runs this command just after." },
  "duplicate": {
    value: "moment",
    what:
      "Another session sends the same command at the same time, and is a little faster, or with `after` slower.",
  },
  "ignore-resize": { value: "none", what: "A new `file-size` is accepted and nothing happens." },
} as const satisfies Readonly<Record<string, FaultKind>>;

/** A fault of an exec, or of a login. */
export type FaultAction = keyof typeof faultKinds;

/** A fault that affects the n-th matching command. */
export interface Fault {
  /** Regular expression on the command. */
  readonly match: string;
  /** Counts from 1. */
  readonly nth: number;
  /** How many matching commands it affects, from the n-th on. */
  readonly times: number;
  readonly action: FaultAction;
  readonly value: string | number | undefined;
}

/** A waiting fault, with how many matches it has counted. */
export interface ArmedFault extends Fault {
  readonly seen: number;
  readonly struck: number;
}

/** All actions. */
export const faultActions = Object.keys(faultKinds) as FaultAction[];

/** The waiting faults. */
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

  /** The fault that affects this command, if any. Every waiting fault counts the command. */
  strike(command: string): Fault | undefined {
    return this.#strike((fault) =>
      fault.action !== "refuse-login" && !opensChannel(fault) && matches(fault, command)
    );
  }

  /** Whether the channel that is about to open is refused. Its command is not known yet. */
  refusesChannel(): boolean {
    return this.#strike(opensChannel) !== undefined;
  }

  /** Whether a user's valid login is refused. */
  refusesLogin(user: string): boolean {
    return this.#strike((fault) => fault.action === "refuse-login" && matches(fault, user)) !== undefined;
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
  return fault.action === "refuse-channel" && matches(fault, "");
}

function matches({ match }: Fault, text: string): boolean {
  return new RegExp(match, "s").test(text);
}
