import type { Statement } from "../grammar/syntax.ts";
import type { Scanner } from "../grammar/scanner.ts";
import type { Row, Values, Verb } from "../menu/menu.ts";
import type { Behaviours } from "../behaviours.ts";
import type { Policies } from "../ssh/users.ts";
import type { Span } from "../timing.ts";
import type { Value } from "../value.ts";

/**
 * A point at which another session could take its turn, with the time that the step before it takes on a real router.
 */
export interface Turn {
  readonly span: Span;
  /** Additional time in milliseconds, which is not scaled. */
  readonly moreMs?: number;
}

/** A computation that stops at every {@linkcode Turn}. Between two turns nothing else happens on the router. */
export type Program<Result> = Generator<Turn, Result, void>;

/** Called with every change before it is made. */
export type ChangeObserver = (menu: string, verb: Verb, row: Row | undefined, values: Values) => void;

/** The user that runs a command, and the observer of its changes. */
export interface Caller extends Policies {
  readonly observe: ChangeObserver;
  /** Whether a new size is accepted without effect. @default {false} */
  readonly ignoresResize?: boolean;
  /** Called with every line once it was parsed, before it runs. */
  understood(statements: readonly Statement[]): void;
}

/** The shared state of the interpreter while a line runs. */
export interface Run {
  readonly behaviours: Behaviours;
  /** For the positions in refusals. */
  readonly scanner: Scanner;
  readonly caller: Caller;
  /** Prints a line. */
  print(line: string): void;
  /** Runs a statement and returns its value. */
  statement(statement: Statement): Program<Value>;
}
