/** What a command has of the world: where it prints, what it may ask, and when it is to stop. */
export interface CommandIo {
  /** Prints a line of the command's result. */
  out(line: string): void;
  /** Prints a line about what goes wrong or on. */
  err(line: string): void;
  /** Reads an environment variable; undefined when it is not set or not allowed. */
  env(name: string): string | undefined;
  /** Aborted by SIGTERM and SIGINT: finish what runs, clean up, return. */
  readonly signal: AbortSignal;
}

/** Exit codes that mean something: done, failed, not understood, or about something that is not here. */
export const exitCodes = { ok: 0, failed: 1, usage: 2, unknown: 3 } as const;
