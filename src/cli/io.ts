import type { FlagTable } from "./flags.ts";
import type { LogFields, Logger } from "../telemetry/log.ts";

/** What a command has of the world: where it prints, what it may ask, and when it is to stop. */
export interface CommandIo {
  /** Prints a line of the command's result. */
  out(line: string): void;
  /** Prints a line about what goes wrong or on. */
  err(line: string): void;
  /**
   * Shows a text in the place of the one that this showed before, none if it is empty, until the next line is printed;
   * undefined where no terminal is to be written over.
   */
  readonly rewrite?: ((text: string) => void) | undefined;
  /** Reads an environment variable; undefined when it is not set or not allowed. */
  env(name: string): string | undefined;
  /** Aborted by SIGTERM and SIGINT: finish what runs, clean up, return. */
  readonly signal: AbortSignal;
}

/** Prints what a part of the driver would log as a warning. */
export function commandNotes(
  name: string,
  io: Pick<CommandIo, "err">,
): { warn(message: string, fields: Readonly<Record<string, unknown>>): void } {
  return {
    warn(message, fields) {
      const facts = Object.entries(fields).map(([key, value]) => ` ${key}=${value}`);
      io.err(`${name}: ${message}${facts.join("")}`);
    },
  };
}

/** A log for people at a terminal: warnings and errors, in the words of {@linkcode commandNotes}. */
export function commandLog(name: string, io: Pick<CommandIo, "err">): Logger {
  const notes = commandNotes(name, io);
  const reported = (own: Readonly<Record<string, unknown>>): Logger => {
    const report = (message: string, fields: LogFields = {}) =>
      notes.warn(message, { ...own, ...(typeof fields === "function" ? fields() : fields) });
    return {
      debug() {},
      info() {},
      warn: report,
      error: report,
      with: (fields) => reported({ ...own, ...fields }),
    };
  };
  return reported({});
}

/** Resolves when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<undefined> {
  if (signal.aborted) return Promise.resolve(undefined);
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(undefined), { once: true }));
}

/** Exit codes that mean something: done, failed, not understood, or about something that is not here. */
export const exitCodes = { ok: 0, failed: 1, usage: 2, unknown: 3 } as const;

/** One of {@linkcode exitCodes}. */
export type ExitName = keyof typeof exitCodes;

/** What the exit codes of every command mean, where a command does not say more. */
export const exitMeanings: Readonly<Record<ExitName, string>> = {
  ok: "It succeeded.",
  failed: "It failed, or was refused.",
  usage: "The command line cannot be used; nothing was done.",
  unknown: "The subject is not here.",
};

/** A subcommand of `rds-csi`. */
export interface Command {
  /** What it is for, as the end of a sentence. */
  readonly help: string;
  /** Whether it is about a volume, which in a cluster may be named by its claim or its PersistentVolume. */
  readonly isAboutVolume?: true;
  /** What its exit codes mean, where it is more than what they mean for every command. */
  readonly exits?: Readonly<Partial<Record<ExitName, string>>>;
  /** What `--help` says before the flags: how it is called, and what it does. */
  usage(): Promise<string>;
  /** Its flags, beside `--help`. */
  flags(): Promise<FlagTable>;
  /** Does it, see `runCommand()`; answers the exit code. */
  run(args: string[], io: CommandIo): Promise<number>;
}
