/**
 * How to resolve a finding. Fixes are defined only in the tables `src/doctor/router/fixes.ts` and
 * `src/doctor/node/fixes.ts`: a test runs the commands of each of their entries.
 */
export interface Fix {
  /** What a person has to know before running the commands. */
  readonly before?: string;
  /** The commands in their order; empty where a flag or a person's judgement resolves the finding. */
  readonly commands: readonly string[];
  /** Anything else to know or to do. */
  readonly after?: string;
}

/** A fix without a command: a flag, or something that only a person can do. */
export function advice(words: string): Fix {
  return { commands: [], after: words };
}

/** Formats a fix for printing. */
export function formatFix({ before = "", commands, after = "" }: Fix): string {
  return `${before}${commands.join("; ")}${after}`;
}

/** The result of one check. */
export interface Finding {
  /** The subject of the check, in a word or two joined by a hyphen. */
  readonly check: string;
  /**
   * A warning needs no action. A problem means that the driver does not work, or a volume is at risk. `skipped` means
   * that the subject was not checked, and `found` says why.
   */
  readonly state: "ok" | "warning" | "problem" | "skipped";
  /** What the check found, for people. */
  readonly found: string;
  /** The command or the flag that resolves it, as {@linkcode formatFix} prints it. */
  readonly fix?: string;
}

/** Receives each finding as it is made. */
export type FindingListener = (finding: Finding) => void;

/** Makes a finding without a problem. */
export function fine(check: string, found: string): Finding {
  return { check, state: "ok", found };
}

/** Makes a finding that needs no action. */
export function warning(check: string, found: string, fix?: Fix): Finding {
  return { check, state: "warning", found, ...(fix === undefined ? {} : { fix: formatFix(fix) }) };
}

/** Makes a finding that has to be resolved. */
export function problem(check: string, found: string, fix?: Fix): Finding {
  return { check, state: "problem", found, ...(fix === undefined ? {} : { fix: formatFix(fix) }) };
}

/** Makes a finding for a subject that was not checked, and says why. */
export function skipped(check: string, found: string, fix?: Fix): Finding {
  return { check, state: "skipped", found, ...(fix === undefined ? {} : { fix: formatFix(fix) }) };
}
