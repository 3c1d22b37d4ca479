/** The form of a value, which `help` shows and the parser checks. */
export type FlagForm = "text" | "list" | "switch" | "integer" | "number" | "duration";

/** One flag of the command line, which an environment variable can set as well. */
export interface Flag {
  readonly form: FlagForm;
  /** Its help, as a sentence. */
  readonly help: string;
  /** Its key for each of several routers, in the file of `--config`. */
  readonly key?: string;
  /** Other names of it on the command line, without the dashes. */
  readonly aliases?: readonly string[];
  /** Whether the help leaves it out: it is taken, and what it sets does not matter to the command. */
  readonly hidden?: boolean;
  /** Why the flag has no effect, as a clause, for a warning when it is given. */
  readonly ignored?: string;
  /** The default in its written form; left out when there is none. */
  readonly fallback?: string;
  /**
   * Environment variables that set it: the first that is not empty wins, and the flag itself wins over them. A variable
   * of a list contains several values, separated by commas.
   */
  readonly env?: readonly string[];
  /** Whether a comma is part of a value, so that a variable gives a single one. */
  readonly hasCommas?: boolean;
  /** The only values allowed. */
  readonly choices?: readonly string[];
  /** Bounds of an integer, a number, or a duration in milliseconds. */
  readonly least?: number;
  readonly most?: number;
}

/** Flags by name, without the dashes. */
export type FlagTable = Readonly<Record<string, Flag>>;

/** How flags and their environment variables relate, for help and documentation. */
export const FLAG_DEFAULT_NOTE =
  "Write a flag with one dash or two, and its value after `=` or as the next word; a switch takes a value only " +
  "after `=`. A flag wins over its environment variable; in a variable the values of a list are separated by commas.";

/** The values of a switch: the words of Go's package flag, which the legacy driver and the sidecars use. */
const onWords: readonly string[] = ["true", "TRUE", "True", "t", "T", "1"];
const offWords: readonly string[] = ["false", "FALSE", "False", "f", "F", "0"];

/** A command line that cannot be used: all problems, each naming its flag. */
export class FlagError extends Error {
  override readonly name = "FlagError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

/** Values of flags by name; collects all problems instead of stopping at the first. */
export class FlagValues {
  readonly #table: FlagTable;
  readonly #given: ReadonlyMap<string, readonly string[]>;
  readonly #problems: string[];
  /** The name by which the person gave a value. */
  readonly nameOf: (name: string) => string;

  constructor(
    table: FlagTable,
    given: ReadonlyMap<string, readonly string[]>,
    problems: readonly string[],
    nameOf: (name: string) => string = (name) => `--${name}`,
  ) {
    this.#table = table;
    this.#given = given;
    this.#problems = [...problems];
    this.nameOf = nameOf;
  }

  /** All problems so far, each once: a flag may be read several times. */
  get problems(): readonly string[] {
    return [...new Set(this.#problems)];
  }

  /** Adds problems that were found elsewhere. */
  addProblems(problems: readonly string[]): void {
    this.#problems.push(...problems);
  }

  /** Adds the problems of given flags that have not their form, whether or not the command uses them. */
  checkForms(): void {
    for (const name of this.#given.keys()) {
      const { form, ignored } = this.#flag(name);
      if (ignored !== undefined) continue;
      if (form === "integer" || form === "number") this.number(name);
      else if (form === "duration") this.durationMs(name);
      else if (form === "switch") this.switch(name);
      else this.text(name);
    }
  }

  /** The last given value, or the default; "" when there is neither. */
  text(name: string): string {
    const value = this.list(name).at(-1) ?? "";
    const { choices } = this.#flag(name);
    if (choices !== undefined && value !== "" && !choices.includes(value)) {
      this.problem(name, value, `one of ${choices.join(", ")}${didYouMean(value, choices)}`);
    }
    return value;
  }

  /** Returns the value, and adds a problem when there is none; `when` ends the sentence "--flag is required …". */
  required(name: string, when: string): string {
    const value = this.text(name);
    if (value === "") this.#problems.push(`${this.nameOf(name)} is required ${when}`);
    return value;
  }

  /** Every given value, or only the default. */
  list(name: string): readonly string[] {
    const { fallback } = this.#flag(name);
    return this.#given.get(name) ?? (fallback === undefined ? [] : [fallback]);
  }

  /** Whether the command line or a variable gives it; otherwise it has its default, or nothing. */
  isGiven(name: string): boolean {
    return this.#given.has(name);
  }

  /** Whether a switch is on. */
  switch(name: string): boolean {
    const value = this.text(name);
    if (value === "" || offWords.includes(value)) return false;
    if (!onWords.includes(value)) this.problem(name, value, "true or false");
    return onWords.includes(value);
  }

  /** Returns a warning for each given flag that has no effect. */
  warnings(): readonly string[] {
    return Object.entries(this.#table).flatMap(([name, { ignored }]) =>
      ignored !== undefined && this.isGiven(name) ? [`--${name} has no effect: ${ignored}`] : []
    );
  }

  /** A number within the flag's bounds. */
  number(name: string): number {
    const { form, least = -Infinity, most = Infinity } = this.#flag(name);
    const value = this.text(name);
    const pattern = form === "integer" ? /^-?[0-9]{1,15}$/ : /^[0-9]{1,9}(?:\.[0-9]{1,9})?$/;
    const number = pattern.test(value) ? Number(value) : NaN;
    if (number >= least && number <= most) return number;
    this.problem(
      name,
      value,
      `${form === "integer" ? "a whole number" : "a number"} from ${least} to ${most}`,
    );
    return least;
  }

  /** A duration in milliseconds, written as `250ms`, `10s`, `5m`, `1h` or `1h30m`. */
  durationMs(name: string): number {
    const { least = 0, most = Infinity } = this.#flag(name);
    const value = this.text(name);
    const ms = parseDuration(value);
    if (ms >= least && ms <= most) return ms;
    const bound = (least === 0 ? "" : `, at least ${formatDuration(least)}`) +
      (most === Infinity ? "" : `, at most ${formatDuration(most)}`);
    this.problem(name, value, `a duration such as 250ms, 10s, 5m or 1h${bound}`);
    return least;
  }

  /** Adds the problem that a flag's value cannot be used. */
  problem(name: string, value: string, allowed: string): void {
    this.#problems.push(`${this.nameOf(name)} cannot be ${JSON.stringify(value)}; use ${allowed}`);
  }

  /**
   * Adds the problem that a flag's value cannot be used, without repeating the value: it may be a secret given by
   * mistake.
   */
  hiddenProblem(name: string, allowed: string): void {
    this.#problems.push(
      `${this.nameOf(name)} has an invalid value, which is hidden because it may be a secret; use ${allowed}`,
    );
  }

  /** @throws {FlagError} when there are problems, of the forms too */
  assertNoProblems(): void {
    this.checkForms();
    if (this.#problems.length > 0) throw new FlagError(this.problems);
  }

  #flag(name: string): Flag {
    const flag = this.#table[name];
    if (flag === undefined) throw new TypeError(`Cannot read a flag that was never declared: --${name}`);
    return flag;
  }
}

/** The units of a duration in milliseconds, the largest first, as Go and Kubernetes write them. */
const durationUnits = [["h", 3_600_000], ["m", 60_000], ["s", 1000], ["ms", 1]] as const;

/** A duration in milliseconds; NaN for a text of another form. */
function parseDuration(text: string): number {
  const match = /^(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?(?:([0-9]{1,9})ms)?$/.exec(text);
  if (match === null || text === "") return NaN;
  return durationUnits.reduce((sum, [, ms], at) => sum + Number(match[at + 1] ?? 0) * ms, 0);
}

/** A duration as a person writes it, such as `1h` or `1h30m`. */
function formatDuration(ms: number): string {
  let rest = ms;
  const parts = durationUnits.map(([unit, size]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return count === 0 ? "" : `${count}${unit}`;
  });
  return parts.join("") || "0s";
}

/** Parses a command line and the environment by a table. Problems are kept until `assertNoProblems()`. */
export function readFlags(
  table: FlagTable,
  args: readonly string[],
  env: (name: string) => string | undefined,
): FlagValues {
  const { given, problems } = readArguments(table, args);
  for (const [name, flag] of Object.entries(table)) {
    const value = given.has(name) ? undefined : flag.env?.map(env).find(Boolean);
    const splits = flag.form === "list" && flag.hasCommas !== true;
    if (value !== undefined) given.set(name, splits ? value.split(",") : [value]);
  }
  return new FlagValues(table, given, problems);
}

/** One or two dashes, a name, and perhaps a value in the same word. */
const flagPattern = /^(--?([^=-][^=]*))(?:=(.*))?$/s;

function readArguments(table: FlagTable, args: readonly string[]) {
  const names = namesOf(table);
  const given = new Map<string, string[]>();
  const problems: string[] = [];
  let afterUnknown = false;
  for (let at = 0; at < args.length; at++) {
    const match = flagPattern.exec(args[at]!);
    if (match === null) {
      // The word after an unknown flag counts as its value and is not shown: it may be a password.
      if (!afterUnknown) problems.push(`${JSON.stringify(args[at])} is not a flag`);
      afterUnknown = false;
      continue;
    }
    const [, written = "", spelled = "", own] = match;
    const name = names.get(spelled);
    afterUnknown = name === undefined && own === undefined;
    if (name === undefined) {
      const hint = didYouMean(spelled, [...names.keys()], "--");
      problems.push(`${written} is not a flag of this command${hint}`);
      continue;
    }
    // The next word is the value even if it begins with a dash; for a switch it never is.
    const value = own ?? (table[name]!.form === "switch" ? "true" : args[++at]);
    if (value === undefined) problems.push(`${written} needs a value`);
    else given.set(name, [...given.get(name) ?? [], value]);
  }
  return { given, problems };
}

/**
 * Moves the first word that is neither a flag nor a flag's value to the front: the subject of the command, such as a
 * volume, may be anywhere.
 */
export function subjectFirst(table: FlagTable, args: readonly string[]): string[] {
  const names = namesOf(table);
  for (let at = 0; at < args.length; at++) {
    const match = flagPattern.exec(args[at]!);
    if (match === null) return [args[at]!, ...args.slice(0, at), ...args.slice(at + 1)];
    const [, , spelled = "", own] = match;
    const name = names.get(spelled);
    const isSwitch = name !== undefined && table[name]!.form === "switch";
    // The word after an unknown flag counts as its value.
    if (own === undefined && !isSwitch) at++;
  }
  return [...args];
}

/**
 * `; did you mean …?` where two letters, or a third of the letters, turn the written word into a known one; else "".
 */
export function didYouMean(written: string, words: readonly string[], prefix = ""): string {
  const [nearest] = words.map((word) => ({ word, letters: distance(written.toLowerCase(), word) }))
    .toSorted((a, b) => a.letters - b.letters);
  const isNear = nearest !== undefined && nearest.letters <= Math.max(2, nearest.word.length / 3);
  return isNear ? `; did you mean ${prefix}${nearest.word}?` : "";
}

/** How many letters have to be added, left out or changed to turn one word into the other (Levenshtein). */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (const [line, letter] of [...from].entries()) {
    const next = [line + 1];
    for (const [at, wanted] of [...to].entries()) {
      next.push(Math.min(next[at]! + 1, row[at + 1]! + 1, row[at]! + (letter === wanted ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1)!;
}

/** The flag of each spelling. */
function namesOf(table: FlagTable): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(table).flatMap(([name, { aliases = [] }]) =>
      [name, ...aliases].map((spelled): [string, string] => [spelled, name])
    ),
  );
}

/** The flags of a table as help text, one paragraph each. */
export function describeFlags(table: FlagTable): string {
  const used = Object.entries(table).filter(([, flag]) => flag.ignored === undefined && flag.hidden !== true);
  return used.map(([name, flag]) => {
    const form = flag.form === "switch" ? "" : ` ${flag.choices?.join("|") ?? flag.form.toUpperCase()}`;
    const notes = [
      ...(flag.form === "list" ? ["repeatable"] : []),
      ...(flag.fallback === undefined ? [] : [`default ${flag.fallback}`]),
      ...(flag.env === undefined ? [] : [`env ${flag.env.join(", ")}`]),
      ...(flag.aliases === undefined ? [] : [`also --${flag.aliases.join(", --")}`]),
    ];
    return `  --${name}${form}\n      ${flag.help}${notes.length === 0 ? "" : ` (${notes.join("; ")})`}\n`;
  }).join("");
}
