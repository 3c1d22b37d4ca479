/**
 * What puts a finding right. It is made in the tables `src/doctor/router/fixes.ts` and `src/doctor/node/fixes.ts` only: a
 * test runs the commands of each of their entries.
 */
export interface Fix {
  /** What is to be known before the commands are typed. */
  readonly before?: string;
  /** To be typed in this order; none where a flag or a person's judgement puts it right. */
  readonly commands: readonly string[];
  /** What else there is to know or to do. */
  readonly after?: string;
}

/** A flag, or what only a person can do: no command stands for it. */
export function advice(words: string): Fix {
  return { commands: [], after: words };
}

/** A fix as it is printed. */
export function formatFix({ before = "", commands, after = "" }: Fix): string {
  return `${before}${commands.join("; ")}${after}`;
}

/** What a check has to say. */
export interface Finding {
  /** What was looked at, in a word or two joined by a hyphen. */
  readonly check: string;
  /**
   * A warning can be lived with; with a problem the driver does not work, or a volume is at risk. What was skipped was
   * not looked at, and `found` says why.
   */
  readonly state: "ok" | "warning" | "problem" | "skipped";
  /** What was found, for people. */
  readonly found: string;
  /** The command or the flag that puts it right, as {@linkcode formatFix} prints it. */
  readonly fix?: string;
}

/** Hears of each finding as it comes. */
export type FindingListener = (finding: Finding) => void;

/** All is well. */
export function fine(check: string, found: string): Finding {
  return { check, state: "ok", found };
}

/** Something that can be lived with. */
export function warning(check: string, found: string, fix?: Fix): Finding {
  return { check, state: "warning", found, ...(fix === undefined ? {} : { fix: formatFix(fix) }) };
}

/** Something that has to be put right. */
export function problem(check: string, found: string, fix?: Fix): Finding {
  return { check, state: "problem", found, ...(fix === undefined ? {} : { fix: formatFix(fix) }) };
}

/** Something that was not looked at, and why. */
export function skipped(check: string, found: string, fix?: Fix): Finding {
  return { check, state: "skipped", found, ...(fix === undefined ? {} : { fix: formatFix(fix) }) };
}
