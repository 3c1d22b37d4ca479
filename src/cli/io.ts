import type { FlagTable } from "./flags.ts";
import type { LogFields, Logger } from "../telemetry/log.ts";
import { printable } from "../volume/model/printable.ts";

/** A command's connection to the outside: where it prints, its environment, and its stop signal. */
export interface CommandIo {
  /** Prints a line of the command's result. */
  out(line: string): void;
  /** Prints a line about problems or progress. */
  err(line: string): void;
  /**
   * Shows a text in place of the one that it showed before, none if it is empty, until the next line is printed;
   * undefined if there is no terminal to overwrite.
   */
  readonly rewrite?: ((text: string) => void) | undefined;
  /** Reads an environment variable; undefined when it is not set or not allowed. */
  env(name: string): string | undefined;
  /** Reads the standard input to its end. @default {there is none} */
  readonly input?: () => Promise<string>;
  /** Shows a question, and reads one line of the standard input. @default {there is nobody to ask} */
  readonly ask?: (question: string) => Promise<string>;
  /** Aborted by SIGTERM and SIGINT: finish the running work, clean up, return. */
  readonly signal: AbortSignal;
}

/** The same connection, for text with {@linkcode printable} characters only: every command prints through it. */
export function withPrintableOutput(io: CommandIo): CommandIo {
  const { rewrite, ask } = io;
  return {
    ...io,
    out: (line) => io.out(printable(line)),
    err: (line) => io.err(printable(line)),
    rewrite: rewrite && ((text) => rewrite(printable(text))),
    ...ask && { ask: (question: string) => ask(printable(question)) },
  };
}

/** Prints a part of the driver's warnings. */
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

/** A log for people at a terminal: warnings and errors, in the form of {@linkcode commandNotes}. */
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

/** Exit codes: succeeded, failed, wrong usage, or the subject does not exist here. */
export const exitCodes = { ok: 0, failed: 1, usage: 2, unknown: 3 } as const;

/** One of {@linkcode exitCodes}. */
export type ExitName = keyof typeof exitCodes;

/** The meaning of the exit codes of every command, if a command does not say more. */
export const exitMeanings: Readonly<Record<ExitName, string>> = {
  ok: "It succeeded.",
  failed: "It failed, or was refused.",
  usage: "The command line cannot be used; nothing was done.",
  unknown: "The subject is not here.",
};

/** A subcommand of `rds-csi`. */
export interface Command {
  /** Its purpose, as the end of a sentence. */
  readonly help: string;
  /** Whether its subject is a volume, which in a cluster may be named by its claim or its PersistentVolume. */
  readonly isAboutVolume?: true;
  /** Its exit codes with a more specific meaning than for every command. */
  readonly exits?: Readonly<Partial<Record<ExitName, string>>>;
  /** The text of `--help` before the flags: how to call it, and what it does. */
  usage(): Promise<string>;
  /** Its flags, besides `--help`. */
  flags(): Promise<FlagTable>;
  /** Runs it, see `runCommand()`; returns the exit code. */
  run(args: string[], io: CommandIo): Promise<number>;
}
