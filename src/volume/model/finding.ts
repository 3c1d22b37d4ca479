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
  /** The command or the flag that puts it right. */
  readonly fix?: string;
}

/** Hears of each finding as it comes. */
export type FindingListener = (finding: Finding) => void;

/** All is well. */
export function fine(check: string, found: string): Finding {
  return { check, state: "ok", found };
}

/** Something that can be lived with. */
export function warning(check: string, found: string, fix?: string): Finding {
  return { check, state: "warning", found, ...(fix === undefined ? {} : { fix }) };
}

/** Something that has to be put right. */
export function problem(check: string, found: string, fix?: string): Finding {
  return { check, state: "problem", found, ...(fix === undefined ? {} : { fix }) };
}

/** Something that was not looked at, and why. */
export function skipped(check: string, found: string, fix?: string): Finding {
  return { check, state: "skipped", found, ...(fix === undefined ? {} : { fix }) };
}
