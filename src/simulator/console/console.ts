import { Parser } from "../grammar/parser.ts";
import type { MenuCommand } from "../grammar/syntax.ts";
import { makeMenus } from "../menu/menus.ts";
import type { Menus } from "../menu/menu.ts";
import type { Users } from "../ssh/users.ts";
import type { Router } from "../model/router.ts";
import { randomWords, Refusal } from "../refusal.ts";
import type { Timing } from "../timing.ts";
import type { Caller, Program, Run, Turn } from "./run.ts";
import { runStatement, runStatements } from "./statements.ts";

/** A user whose commands are not checked. */
export const someoneElse: Caller = { observe() {}, understood() {} };

/** The result of a command. */
export interface Outcome {
  /** The printed output with the router's line ends, without the refusal. */
  readonly output: string;
  /** The line that says why it failed, without line end; undefined when it succeeded. */
  readonly refusal: string | undefined;
}

/** The router rebooted while a command ran; the client gets no answer. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
}

/** Runs the text of an exec on a router, and takes the time that a real one takes. */
export class Console {
  readonly #router: Router;
  readonly #timing: Timing;
  readonly #menus: Menus;

  /** @param users the users of `/user`; none by default */
  constructor(router: Router, timing: Timing, users?: Users) {
    this.#router = router;
    this.#timing = timing;
    this.#menus = makeMenus(router, users);
  }

  /** The tree of commands, with their items. */
  get menus(): Menus {
    return this.#menus;
  }

  /**
   * Runs a command to its end or to its first failure.
   *
   * @throws {Interrupted} when the router reboots meanwhile.
   */
  async execute(text: string, caller: Caller): Promise<Outcome> {
    const isHostile = this.#router.behaviours.output === "hostile";
    const lines: string[] = [];
    if (isHostile) lines.push(randomWords(() => this.#router.random.fraction()));
    const progress: Progress = { verb: undefined };
    let refusal: string | undefined;
    try {
      await this.#rateLimiter(this.#program(text, caller, lines, progress), caller);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      refusal = this.#word(error, progress.verb);
    }
    const lineEnd = isHostile ? "\n" : "\r\n";
    return { output: lines.map((line) => line + lineEnd).join(""), refusal };
  }

  *#program(text: string, caller: Caller, lines: string[], progress: Progress): Program<void> {
    const { behaviours } = this.#router;
    const parser = new Parser(text, this.#menus);
    const run: Run = {
      behaviours,
      scanner: parser.scanner,
      caller,
      print: (line) => lines.push(line),
      statement: (statement) => {
        if ("menu" in statement) progress.verb = statement;
        return runStatement(statement, run);
      },
    };
    while (!parser.finished) {
      const statements = parser.line();
      progress.verb = undefined;
      caller.understood(statements);
      for (const statement of statements) {
        progress.verb = "menu" in statement ? statement : undefined;
        yield* runStatements([statement], run);
      }
    }
  }

  /**
   * Runs a program at the router's speed. Usually it runs at once and its time is spent at its end. With the behaviour
   * `interleave` the time is spent where it arises, and other sessions get their turns.
   */
  async #rateLimiter(program: Program<void>, caller: Caller): Promise<void> {
    const { interleave } = this.#router.behaviours;
    const boot = this.#router.boots;
    let owedMs = 0;
    try {
      for (;;) {
        const { done, value: turn } = this.#step(program, caller);
        if (done) break;
        owedMs += this.#timing.draw(turn.span) + (turn.moreMs ?? 0);
        if (!interleave) continue;
        await this.#router.clock.sleep(owedMs);
        owedMs = 0;
        if (this.#router.boots !== boot) throw new Interrupted();
      }
    } finally {
      if (owedMs > 0) await this.#router.clock.sleep(owedMs);
    }
    if (this.#router.boots !== boot) throw new Interrupted();
  }

  /** `ignoresResize` holds only for the caller's own step, not for other sessions between two steps. */
  #step(program: Program<void>, { ignoresResize = false }: Caller): IteratorResult<Turn, void> {
    this.#router.ignoresResize = ignoresResize;
    try {
      return program.next();
    } finally {
      this.#router.ignoresResize = false;
    }
  }

  #word(refusal: Refusal, command: MenuCommand | undefined): string {
    const { behaviours, random } = this.#router;
    if (behaviours.output === "plain") return refusal.message;
    const wording = randomWords(() => random.fraction());
    if (command === undefined) return wording;
    const verb = "verb" in command ? command.verb : command.kind;
    return `${wording} (/${command.menu.path}/${verb}; line 1)`;
  }
}

interface Progress {
  /** The command that runs, for failures that name it. */
  verb: MenuCommand | undefined;
}
