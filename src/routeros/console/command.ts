import { minCommand } from "../../router_profile/limits.ts";
import { VolumeError } from "../../volume/errors.ts";

/** The longest command that is ever sent, in bytes: RouterOS is reported to have a small exec buffer. */
export const maxCommandBytes = minCommand;
/** The maximum number of statements in one command; a group made by {@linkcode onlyIf} is one. */
export const maxStatements = 4;

/** The types of values in a command; every value is sent quoted. */
export type CommandValue = string | bigint | number | boolean;

// Access to the private constructors, only within this module.
let makeFragment: (text: string) => Fragment;
let makeCommand: (text: string, statements: number) => Command;

/**
 * A piece of RouterOS grammar with its values quoted. Only {@linkcode ros}, {@linkcode joined}, {@linkcode onlyIf} and
 * {@linkcode unless} make one, so that text from outside never becomes grammar.
 */
export class Fragment {
  readonly #text: string;

  private constructor(text: string) {
    this.#text = text;
  }

  /** The text that is sent. */
  get text(): string {
    return this.#text;
  }

  static {
    makeFragment = (text) => new Fragment(text);
  }
}

/** One exec request: at most {@linkcode maxStatements} statements and {@linkcode maxCommandBytes} bytes. */
export class Command {
  readonly #text: string;
  /** How many statements it has, 1 to 4. */
  readonly statements: number;

  private constructor(text: string, statements: number) {
    this.#text = text;
    this.statements = statements;
  }

  /** The text that is sent: ASCII, one line. */
  get text(): string {
    return this.#text;
  }

  static {
    makeCommand = (text, statements) => new Command(text, statements);
  }
}

/**
 * Makes a statement, or a part of one. The literal parts are grammar. Each `${value}` is sent as a quoted string, and a
 * `${fragment}` unchanged. Booleans become `"yes"` and `"no"`.
 *
 * @throws {VolumeError} invalid when a value cannot be quoted, see {@linkcode quote}
 * @throws {VolumeError} internal when the literal parts are missing, or contain a line end, a control character or a
 *   `;`
 */
export function ros(
  grammar: TemplateStringsArray,
  ...values: readonly (CommandValue | Fragment)[]
): Fragment {
  assertLiteral(grammar);
  let text = grammar[0]!;
  values.forEach((value, index) => {
    text += (value instanceof Fragment ? value.text : quote(spell(value))) + grammar[index + 1]!;
  });
  return makeFragment(text);
}

/** Joins fragments with a word of grammar, as in `a or b`. */
export function joined(fragments: readonly Fragment[], word: " or " | " and " | " " | "," | "."): Fragment {
  return makeFragment(fragments.map((fragment) => fragment.text).join(word));
}

/**
 * Statements that the router runs only if all conditions hold at that point; otherwise it skips them and goes on. As
 * outside, the first failing statement stops the whole chain.
 */
export function onlyIf(conditions: readonly Fragment[], ...statements: readonly Fragment[]): Fragment {
  const texts = conditions.map((condition) => condition.text);
  const all = texts.length === 1 ? texts[0]! : texts.map((text) => `(${text})`).join(" and ");
  return makeFragment(`:if (${all}) do={${chain(statements)}}`);
}

/**
 * A statement that the router runs unless the condition holds; otherwise it prints the text as an error, and stops the
 * whole chain.
 */
export function unless(condition: Fragment, text: string, statement: Fragment): Fragment {
  return makeFragment(`:if (${condition.text}) do={${ros`:error ${text}`.text}} else={${statement.text}}`);
}

/**
 * Chains statements into a command; RouterOS stops at the first that fails.
 *
 * @throws {VolumeError} invalid when it is longer than {@linkcode maxCommandBytes}
 * @throws {VolumeError} internal when it has no statement or more than {@linkcode maxStatements}
 */
export function command(...statements: readonly Fragment[]): Command {
  if (statements.length === 0 || statements.length > maxStatements) {
    throw new VolumeError("internal", `Cannot send a command of ${statements.length} statements`);
  }
  const text = chain(statements);
  if (text.length > maxCommandBytes) {
    throw new VolumeError(
      "invalid",
      `Cannot send the command because it is too long: bytes=${text.length} most=${maxCommandBytes}; ` +
        "shorter base paths, volume ids or comments make room",
    );
  }
  return makeCommand(text, statements.length);
}

/** Whether these statements fit into one command. */
export function fits(statements: readonly Fragment[]): boolean {
  return statements.length <= maxStatements && chain(statements).length <= maxCommandBytes;
}

/** Whether a string can be sent as a value at all: only printable ASCII can. */
export function isSendable(value: string): boolean {
  return /^[\x20-\x7e]*$/.test(value);
}

/**
 * Quotes a value for RouterOS: double quotes, with `\`, `"` and `$` escaped (RouterOS substitutes an unescaped `$`
 * silently).
 *
 * @throws {VolumeError} invalid when it contains anything but printable ASCII
 */
export function quote(value: string): string {
  if (!isSendable(value)) {
    throw new VolumeError(
      "invalid",
      "Cannot send a value to the router because it holds control or non-ASCII characters: " +
        `value=${JSON.stringify(value.slice(0, 64))}`,
    );
  }
  return `"${value.replace(/[\\"$]/g, (character) => `\\${character}`)}"`;
}

function spell(value: CommandValue): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number" && !Number.isSafeInteger(value)) {
    throw new VolumeError(
      "invalid",
      `Cannot send a number to the router because it is not exact: value=${value}`,
    );
  }
  return String(value);
}

function chain(statements: readonly Fragment[]): string {
  return statements.map((statement) => statement.text).join("; ");
}

/** Refuses an array that was made at run time: the parts of a template literal are frozen and have `raw`. */
function assertLiteral(grammar: TemplateStringsArray): void {
  const literal = Array.isArray(grammar) && Object.isFrozen(grammar) && Array.isArray(grammar.raw);
  if (
    !literal || !grammar.every((part) => typeof part === "string" && /^[\x20-\x3a\x3c-\x7e]*$/.test(part))
  ) {
    throw new VolumeError("internal", "Cannot build a command from anything but a literal of one statement");
  }
}
