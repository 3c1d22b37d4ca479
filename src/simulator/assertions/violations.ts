import type { Clock } from "../../volume/ports/ports.ts";

/** What a client of the router must not do. */
export type Rule =
  | "unquoted-value"
  | "command-too-long"
  | "too-many-statements"
  | "file-print-without-proplist"
  | "mount-filesystem"
  | "outside-owner-area"
  | "file-before-disk"
  | "snapshot-changed"
  | "session-limit";

/** One time that a client did. */
export interface Violation {
  /** ISO 8601. */
  readonly time: string;
  readonly session: number;
  readonly command: string;
  readonly rule: Rule;
  readonly sentence: string;
}

const mostKept = 10_000;

/** What the simulator has to say about its client. */
export class Violations {
  readonly #clock: Clock;
  #violations: Violation[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  list(): readonly Violation[] {
    return this.#violations;
  }

  report(session: number, command: string, rule: Rule, sentence: string): void {
    const time = new Date(this.#clock.now()).toISOString();
    this.#violations.push({ time, session, command, rule, sentence });
    if (this.#violations.length > mostKept) this.#violations.shift();
  }

  clear(): void {
    this.#violations = [];
  }
}
