import type { Clock } from "../../volume/ports/system.ts";

/** One exec request. */
interface JournalEntry {
  /** ISO 8601, when it arrived. */
  readonly time: string;
  readonly session: number;
  readonly command: string;
  /** `ok`, the refusal as printed, or the fault that was applied. */
  readonly outcome: string;
}

const maxKept = 20_000;

/** The router's requests and their counts. */
export class Journal {
  readonly #clock: Clock;
  #entries: JournalEntry[] = [];
  #execs = 0;
  #statements = 0;
  #bytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Exec requests, their statements, and the bytes printed for them, since the last reset. */
  get counts(): { readonly execs: number; readonly statements: number; readonly bytes: number } {
    return { execs: this.#execs, statements: this.#statements, bytes: this.#bytes };
  }

  list(): readonly JournalEntry[] {
    return this.#entries;
  }

  /** Notes that an exec request arrived; the returned function notes how it ended. */
  open(session: number, command: string): (outcome: string) => void {
    this.#execs++;
    const time = new Date(this.#clock.now()).toISOString();
    return (outcome) => {
      this.#entries.push({ time, session, command, outcome });
      if (this.#entries.length > 2 * maxKept) this.#entries = this.#entries.slice(-maxKept);
    };
  }

  /** Counts statements. */
  count(statements: number): void {
    this.#statements += statements;
  }

  /** Counts printed bytes. */
  countBytes(bytes: number): void {
    this.#bytes += bytes;
  }

  resetCounts(): void {
    this.#bytes = 0;
    this.#execs = 0;
    this.#statements = 0;
  }

  clear(): void {
    this.#entries = [];
  }
}

/** Something that a client of the router must not do. */
export type Rule =
  | "unquoted-value"
  | "command-too-long"
  | "too-many-statements"
  | "file-print-without-proplist"
  | "mount-filesystem"
  | "outside-owner-area"
  | "file-before-disk"
  | "snapshot-changed"
  | "ambiguous-label"
  | "session-limit";

/** One violation of a rule. */
interface Violation {
  /** ISO 8601. */
  readonly time: string;
  readonly session: number;
  readonly command: string;
  readonly rule: Rule;
  readonly sentence: string;
}

const maxViolations = 10_000;

/** The client's violations. */
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
    if (this.#violations.length > maxViolations) this.#violations.shift();
  }

  clear(): void {
    this.#violations = [];
  }
}
